"""Figures as plotly.js draws them: plain objects, without the plotly of Python. Colours are the names of
assets/page.css with an @ before them; assets/page.js puts in what they are in the present theme."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from scalecom.report.methods import Look

Trace = dict[str, Any]

MUTED = "@muted"

# Over fewer decades, their powers alone are too few ticks.
_FEW_DECADES = 2.5
_TICK_WIDTH = 20
_TICK_LINES = 6
# As many stand side by side on a phone.
_MOST_LABELS = 7


@dataclass
class View:
    """One of the ways in which a figure shows its data."""

    label: str
    traces: list[Trace]
    x: dict[str, Any]
    y: dict[str, Any]
    layout: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        layout = {"xaxis": self.x, "yaxis": self.y} | self.layout
        return {"label": self.label, "data": self.traces, "layout": layout}


@dataclass
class Figure:
    title: str
    about: str  # how to read it
    views: list[View]
    legend: list[dict[str, str]]
    height: int = 380
    choice: str = "View"  # what tells the views apart

    def as_json(self) -> dict[str, Any]:
        return {"height": self.height, "legend": self.legend, "views": [view.as_json() for view in self.views]}


def plain(text: str) -> str:
    """Text that plotly, which knows some tags, shows as it is."""
    return escape(text, quote=False)


def tick(label: str) -> str:
    """Of a row, in lines that leave room for what it heads on a phone."""
    lines = textwrap.wrap(label, _TICK_WIDTH, max_lines=_TICK_LINES, placeholder="…")
    return "<br>".join(plain(one) for one in lines)


def axis(title: str, **more: Any) -> dict[str, Any]:
    return {"title": {"text": plain(title)}, **more}


def entry(look: Look, group: str) -> dict[str, str]:
    """Of the legend, which the page itself draws."""
    return {"group": group, "label": look.label, "colour": look.colour, "dash": look.dash}


def entries(looks: dict[str, Look]) -> list[dict[str, str]]:
    return [entry(look, key) for key, look in looks.items()]


def line(look: Look, group: str, x: Sequence[float], y: Sequence[float | None], hover: str,
         **more: Any) -> Trace:
    """`hover` is a template of plotly's, of ours alone: what a run is called is not in it."""
    stands_out = look.family in ("dense", "scalecom")
    return {
        "type": "scatter",
        "mode": "lines+markers" if len(x) <= 16 else "lines",
        "name": plain(look.label),
        "legendgroup": group,
        "x": list(x),
        "y": list(y),
        "line": {"color": look.colour, "dash": look.dash, "width": 2.5 if stands_out else 1.75},
        "marker": {"color": look.colour, "size": 6},
        "hovertemplate": f"{hover}<extra>%{{fullData.name}}</extra>",
    } | more


def band(colour: str, group: str, x: Sequence[float], low: Sequence[float], high: Sequence[float]) -> list[Trace]:
    edge = {"type": "scatter", "mode": "lines", "legendgroup": group, "x": list(x), "hoverinfo": "skip",
            "line": {"width": 0, "color": colour}}
    return [edge | {"y": list(low)}, edge | {"y": list(high), "fill": "tonexty", "fillcolor": f"{colour}/0.16"}]


def logarithmic(title: str, values: Iterable[float], label: Callable[[float], str]) -> dict[str, Any]:
    """An axis with ticks at powers of ten, and at 2 and 5 times these where there are few of them."""
    positive = [value for value in values if value > 0]
    low, high = min(positive, default=1), max(positive, default=1)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = (1, 2, 5) if math.log10(high / low) < _FEW_DECADES else (1,)
    ticks = [step * 10.0**power for power in range(first, last + 1) for step in steps]
    # Where the values lie between two ticks, an axis that ends with them would have none.
    is_bare = sum(low <= tick <= high for tick in ticks) < 2
    ends = {"range": [first, max(last, first + 1)]} if is_bare else {}
    return axis(title, type="log", tickvals=ticks, ticktext=[label(tick) for tick in ticks], **ends)


def doubling(title: str, values: Iterable[float]) -> dict[str, Any]:
    """A logarithmic axis whose ticks are the values themselves: of numbers that double."""
    ticks = sorted(set(values))
    every = -(-len(ticks) // _MOST_LABELS)
    labels = [f"{tick:.0f}" if (len(ticks) - 1 - i) % every == 0 else "" for i, tick in enumerate(ticks)]
    return axis(title, type="log", tickvals=ticks, ticktext=labels)
