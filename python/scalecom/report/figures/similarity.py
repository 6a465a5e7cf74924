"""How alike the learners' memories are, as a run goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from scalecom.report.figures.figure import MUTED, Figure, View, axis, band, line
from scalecom.report.methods import Look
from scalecom.report.sources.similarity import Similarity

_MOST_QQ = 24

# Of each figure: what it is called, its colour, its dash, and where it is found.
_Curve = tuple[str, str, str, Callable[[Similarity], float | None]]

# What sent entries are measured by, for every selection: scalecom/methods/contraction.cc.
_LARGEST = "the largest of each chunk, or of all with select=exact"

_COSINE = "cosine distance of two memories, mean of pairs"
_DISTANCES: tuple[_Curve, ...] = (
    (_COSINE, "@series-scalecom", "solid", lambda r: r.cosine_distance),
    ("Hamming distance, what is sent to the mean's largest", "@series-topk", "solid", lambda r: r.hamming),
)
_CONTRACTIONS: tuple[_Curve, ...] = (
    ("measured", "@series-scalecom", "solid", lambda r: r.contraction),
    ("had the mean's largest been sent", "@series-dense", "dash", lambda r: r.contraction_exact),
    ("Lemma 1's bound", "@series-dgc", "dot", lambda r: r.lemma1_bound),
)


def distances(title: str, records: Sequence[Similarity]) -> Figure | None:
    figure = _over_time(
        title, records, _DISTANCES, "Distance",
        "0 is alike: memories that point the same way, and entries sent that are the largest of the mean, "
        f"{_LARGEST}. Memories that have nothing to do with one another are at a cosine distance of 1.",
    )
    ranges = [(record.step, *record.cosine_range) for record in records if record.cosine_range]
    if figure and ranges:
        figure.views[0].traces[:0] = band("@series-scalecom", _COSINE, *zip(*ranges, strict=True))
        figure.about += " The band spans all pairs of learners."
    return figure


def contraction(title: str, records: Sequence[Similarity]) -> Figure | None:
    return _over_time(
        title, records, _CONTRACTIONS, "Contraction coefficient",
        "What share of the mean's squared norm is left unsent by a step; under 1, error feedback converges. "
        f"The mean's largest are {_LARGEST}. Lemma 1 bounds what a leader's choice leaves, averaged over leaders.",
    )


def _over_time(title: str, records: Sequence[Similarity], curves: Sequence[_Curve], y_title: str,
               about: str) -> Figure | None:
    traces, legend = [], []
    for label, colour, dash, take in curves:
        points = [(record.step, take(record)) for record in records if take(record) is not None]
        if not points:
            continue
        steps, values = zip(*points, strict=True)
        trace = line(Look(label, "scalecom", 0), label, steps, values, "%{y:.4f} at step %{x:,}")
        trace["line"] = {"color": colour, "dash": dash, "width": 2}
        trace["marker"] = {"color": colour, "size": 6}
        traces.append(trace)
        legend.append({"group": label, "label": label, "colour": colour, "dash": dash})
    if not traces:
        return None
    view = View("", traces, axis("Step", rangemode="tozero"), axis(y_title))
    return Figure(title, about, [view], legend)


def quantiles(title: str, records: Sequence[Similarity]) -> Figure | None:
    """A view a record, the last first; of many, some that are evenly spread."""
    with_qq = [record for record in records if record.qq]
    if not with_qq:
        return None
    every = -(-len(with_qq) // _MOST_QQ)
    shown = with_qq[::-1][::every]
    about = ("Quantiles of the first learner's memory against the same quantiles of the second's. On the "
             "dashed line both are spread alike.")
    return Figure(title, about, [_quantiles_at(record) for record in shown], [], height=420, choice="Step")


def _quantiles_at(record: Similarity) -> View:
    assert record.qq is not None
    ends = [min(record.qq.first + record.qq.second), max(record.qq.first + record.qq.second)]
    diagonal = {"type": "scatter", "mode": "lines", "x": ends, "y": ends, "hoverinfo": "skip",
                "line": {"color": MUTED, "dash": "dash", "width": 1.5}}
    points = {"type": "scatter", "mode": "markers", "x": record.qq.first, "y": record.qq.second,
              "marker": {"color": "@series-scalecom", "size": 7},
              "hovertemplate": "%{x:.3~g} of the first, %{y:.3~g} of the second<extra></extra>"}
    return View(f"{record.step:,}", [diagonal, points], axis("Quantiles of the first learner's memory"),
                axis("Quantiles of the second's", scaleanchor="x"))
