"""The figures of docs/theory.md are those that bench/theory.py draws from the data beside them."""

import pathlib
import re
import sys
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "bench"))

import theory  # noqa: E402

for name, draw in theory.FIGURES.items():
    drawn = draw()
    xml.etree.ElementTree.fromstring(drawn)
    assert drawn == (theory.FOLDER / f"{name}.svg").read_text(), f"{name}.svg: draw it again with bench/theory.py draw"

page = (ROOT / "docs" / "theory.md").read_text()
shown = set(re.findall(r"\(theory/(\w+)\.svg\)", page))
assert shown == set(theory.FIGURES), (shown, set(theory.FIGURES))
print("ok")
