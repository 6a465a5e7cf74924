"""What each method keeps of the accuracy, against what it saves of the traffic."""

from __future__ import annotations

from collections.abc import Sequence

from scalecom.report import methods, wording
from scalecom.report.figures.figure import Figure, View, axis, entries, line, logarithmic
from scalecom.report.sources.comparisons import Row

_SYMBOLS = ("circle", "circle-open", "diamond", "diamond-open", "square", "square-open")


def tradeoff(title: str, rows: Sequence[Row]) -> Figure | None:
    """A dot a method, a view for each number of learners, the most first; None where nothing has both."""
    placed = [row for row in rows if row.value is not None and row.effective_rate]
    if not placed:
        return None
    looks = methods.looks_of_methods([row.method for row in placed])
    metric = wording.metric(next((row.metric for row in placed if row.metric), ""))
    rates = logarithmic("Effective rate: times fewer bytes than dense",
                        [row.effective_rate or 1 for row in placed], lambda rate: f"{rate:g}×")
    views = []
    for learners, large in sorted({(row.learners, row.large_batch) for row in placed}, reverse=True):
        traces = []
        for row in placed:
            if (row.learners, row.large_batch) != (learners, large):
                continue
            look = looks[row.method]
            marker = {"color": look.colour, "size": 12, "symbol": _SYMBOLS[look.variant % len(_SYMBOLS)],
                      "line": {"width": 2}}
            traces.append(line(look, row.method, [row.effective_rate], [row.value], "%{y:.2f} at %{x:.1f}×",
                               mode="markers", marker=marker))
        label = f"{wording.count(learners, 'learner')}{', large batch' if large else ''}"
        views.append(View(label, traces, rates, axis(metric)))
    better = "Down" if wording.is_error(metric) else "Up"
    about = f"{better} is better. To the right, less is sent. One seed: dots that lie close may change places."
    return Figure(title, about, views, entries(looks), height=420, choice="Learners")
