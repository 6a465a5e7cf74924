"""Differences to a baseline, with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scalecom.report import methods
from scalecom.report.figures.figure import Figure, Trace, View, axis, tick
from scalecom.report.pairs import Difference

# Pixels of a row, and of each line of its label.
_ROW = 12
_LINE = 15


@dataclass(frozen=True)
class Compared:
    label: str
    method: str
    difference: Difference


def forest(title: str, rows: Sequence[Compared]) -> Figure:
    """A dot a row, the first at the top."""
    sure = _dots(rows, [i for i, row in enumerate(rows) if row.difference.half_width is not None])
    widths = [rows[i].difference.half_width for i in sure["y"]]
    sure["error_x"] = {"type": "data", "array": widths, "color": "@muted", "thickness": 1.5, "width": 4}
    sure["customdata"] = widths
    sure["hovertemplate"] = "%{x:+.2f} ± %{customdata:.2f}<extra></extra>"
    single = _dots(rows, [i for i, row in enumerate(rows) if row.difference.half_width is None])
    single["marker"]["symbol"] = "circle-open"
    x_axis = axis("Difference", zeroline=True, zerolinecolor="@muted", rangemode="tozero")
    labels = [tick(row.label) for row in rows]
    y_axis = axis("", tickvals=list(range(len(rows))), ticktext=labels,
                  range=[len(rows) - 0.5, -0.5], showgrid=False)
    about = ("A full dot is a mean over paired seeds with its 95% interval by Student's t; an open one is a "
             "single pair, which has no interval.")
    view = View("", [trace for trace in (sure, single) if trace["x"]], x_axis, y_axis)
    lines = max(label.count("<br>") + 1 for label in labels)
    return Figure(title, about, [view], [], height=110 + (_ROW + _LINE * lines) * len(rows))


def _dots(rows: Sequence[Compared], numbers: list[int]) -> Trace:
    """Of the rows of these numbers. They stand where those say, since labels may be alike."""
    looks = methods.looks((row.label, row.label, row.method) for row in rows)
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [rows[i].difference.mean for i in numbers],
        "y": numbers,
        "marker": {"size": 9, "color": [looks[rows[i].label].colour for i in numbers]},
        "hovertemplate": "%{x:+.2f}<extra></extra>",
    }
