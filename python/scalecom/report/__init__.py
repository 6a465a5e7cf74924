"""Runs, comparisons and plans as one HTML page: `python -m scalecom.report runs/*`.

Needs plotly (`pip install '.[report]'`), and neither torch nor the extension.
"""
