"""What complete runs came to, and how far that is from dense: over runs that share all but method and seed."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from scalecom.report import methods
from scalecom.report.pairs import Difference, difference
from scalecom.report.sources.runs import Outcome, Run


@dataclass(frozen=True)
class Summary:
    """Runs that differ in nothing but their seeds."""

    runs: tuple[Run, ...]
    against_dense: Difference | None  # None of dense itself, and where no seed has a run of both
    dense: float | None  # the mean of dense over the same seeds

    @property
    def first(self) -> Run:
        return self.runs[0]

    @property
    def outcome(self) -> Outcome:
        """Of the first run: traffic is the same with every seed, or nearly so."""
        assert self.first.outcome is not None
        return self.first.outcome

    @property
    def value(self) -> float | None:
        values = _values(self.runs).values()
        return sum(values) / len(values) if values else None

    @property
    def is_dense(self) -> bool:
        return methods.family(self.first.method) == "dense"


def summarise(runs: Iterable[Run]) -> list[Summary]:
    """In the order of tasks, metrics, learners and, with dense first, methods."""
    groups: dict[tuple[object, ...], list[Run]] = defaultdict(list)
    for run in runs:
        if run.outcome:
            groups[(*_kind(run), run.series)].append(run)
    dense: dict[tuple[object, ...], dict[int, float]] = defaultdict(dict)
    for members in groups.values():
        if methods.family(members[0].method) == "dense":
            dense[_kind(members[0])] |= _values(members)
    found = [_summary(members, dense[_kind(members[0])]) for members in groups.values()]
    return sorted(found, key=lambda one: (one.first.task, one.outcome.metric, one.first.learners,
                                          not one.is_dense))


def _kind(run: Run) -> tuple[object, ...]:
    return (*run.setting, run.outcome.metric if run.outcome else "")


def _values(runs: Sequence[Run]) -> dict[int, float]:
    both = ((run.seed, run.outcome.value) for run in runs if run.outcome)
    return {seed: value for seed, value in both if value is not None}


def _summary(runs: list[Run], dense: dict[int, float]) -> Summary:
    if methods.family(runs[0].method) == "dense":
        return Summary(tuple(runs), None, None)
    values = _values(runs)
    paired = [dense[seed] for seed in values if seed in dense]
    against_dense = _as_scored(difference(values, dense), [run for run in runs if run.seed in dense])
    return Summary(tuple(runs), against_dense, sum(paired) / len(paired) if paired else None)


def _as_scored(found: Difference | None, runs: Sequence[Run]) -> Difference | None:
    """With the interval that a single pair was scored with. That a score is of this very pair is told by its
    difference, as folders may have been moved since."""
    if found is None or found.pairs > 1:
        return found
    for run in runs:
        scored = run.outcome.scored if run.outcome else None
        if scored and math.isclose(scored.mean, found.mean, abs_tol=1e-6):
            return replace(found, over_sentences=scored.over_sentences)
    return found
