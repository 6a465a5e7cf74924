"""Differences to a baseline, with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scalecom.report import methods, wording
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


def forest(title: str, metric: str, rows: Sequence[Compared]) -> Figure:
    """A dot a row, the first at the top."""
    found = [row.difference for row in rows]
    sure = _dots(rows, [i for i, one in enumerate(found) if one.half_width is not None])
    single = _dots(rows, [i for i, one in enumerate(found) if one.half_width is None])
    single["marker"]["symbol"] = "circle-open"
    for trace in (sure, single):
        if any(found[i].interval for i in trace["y"]):
            trace["error_x"] = _whiskers([found[i] for i in trace["y"]])
    x_axis = axis(wording.of_metric("Difference", metric), zeroline=True, zerolinecolor="@muted",
                  rangemode="tozero")
    labels = [tick(row.label) for row in rows]
    y_axis = axis("", tickvals=list(range(len(rows))), ticktext=labels,
                  range=[len(rows) - 0.5, -0.5], showgrid=False)
    about = ("A full dot is a mean over paired seeds with its 95% interval by Student's t; an open one is a "
             "single pair, which has no interval, or one over the sentences of the test set.")
    view = View("", [trace for trace in (sure, single) if trace["x"]], x_axis, y_axis)
    lines = max(label.count("<br>") + 1 for label in labels)
    return Figure(title, about, [view], [], height=110 + (_ROW + _LINE * lines) * len(rows))


def _dots(rows: Sequence[Compared], numbers: list[int]) -> Trace:
    """Of the rows of these numbers. They stand where those say, since labels may be alike."""
    looks = [methods.Look(row.label, methods.family(row.method), 0) for row in rows]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [rows[i].difference.mean for i in numbers],
        "y": numbers,
        "marker": {"size": 9, "color": [looks[i].colour for i in numbers]},
        "customdata": [wording.difference(rows[i].difference) for i in numbers],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _whiskers(found: Sequence[Difference]) -> dict[str, Any]:
    """Of no length where there is no interval; one over sentences need not have its middle at the dot."""
    ends = [one.interval or (one.mean, one.mean) for one in found]
    return {
        "type": "data",
        "symmetric": False,
        "array": [max(high - one.mean, 0.0) for one, (_, high) in zip(found, ends, strict=True)],
        "arrayminus": [max(one.mean - low, 0.0) for one, (low, _) in zip(found, ends, strict=True)],
        "color": "@muted",
        "thickness": 1.5,
        "width": 4,
    }
