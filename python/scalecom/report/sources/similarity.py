"""How alike a run's learners were: similarity.jsonl of its folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from scalecom.report.sources.fields import Fields, read_lines


@dataclass(frozen=True)
class QQ:
    """The same quantiles of two learners' memories."""

    first: list[float]
    second: list[float]


@dataclass(frozen=True)
class Similarity:
    """At one step. Each figure may be missing."""

    step: int
    cosine_distance: float | None  # the mean over pairs of learners
    cosine_range: tuple[float, float] | None  # the least and the most
    hamming: float | None
    contraction: float | None
    contraction_exact: float | None
    lemma1_bound: float | None
    qq: QQ | None


def read_similarity(folder: Path) -> tuple[Similarity, ...]:
    path = folder / "similarity.jsonl"
    return tuple(_record(line) for line in read_lines(path)) if path.is_file() else ()


def _record(line: Fields) -> Similarity:
    return Similarity(
        step=line.whole("step"),
        cosine_distance=line.number_or_none("cosine_distance"),
        cosine_range=_range(line.number_or_none("cosine_distance_min"),
                            line.number_or_none("cosine_distance_max")),
        hamming=line.number_or_none("hamming"),
        contraction=line.number_or_none("contraction"),
        contraction_exact=line.number_or_none("contraction_exact"),
        lemma1_bound=line.number_or_none("lemma1_bound"),
        qq=_qq(line.object("qq")),
    )


def _range(low: float | None, high: float | None) -> tuple[float, float] | None:
    return None if low is None or high is None else (low, high)


def _qq(fields: Fields | None) -> QQ | None:
    if fields is None:
        return None
    qq = QQ(fields.numbers("first"), fields.numbers("second"))
    # Pairs whose partner is missing say nothing.
    return qq if qq.first and len(qq.first) == len(qq.second) else None
