"""What complete runs came to, and how far that is from dense: over runs that share all but method and seed."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from scalecom.report import methods
from scalecom.report.pairs import Difference, difference
from scalecom.report.settings import order
from scalecom.report.sources.runs import Outcome, Run


@dataclass(frozen=True)
class Summary:
    """Runs that differ in nothing but their seeds."""

    runs: tuple[Run, ...]
    against_dense: Difference | None  # None of dense itself, and where no seed has a run of both
    dense: float | None  # the mean of dense over the same seeds
    is_disputed: bool = False  # of a seed there are several dense runs, of different values: none is compared with
    is_half_scored: bool = False  # scripts/score has scored it and not its dense run, or dense alone

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
    """In the order of tasks, metrics and settings, and in each dense first."""
    complete = [run for run in runs if run.outcome]
    groups: dict[tuple[object, ...], list[Run]] = defaultdict(list)
    for run in complete:
        groups[(*_kind(run), run.series)].append(run)
    dense = [run for run in complete if methods.family(run.method) == "dense"]
    baselines = _baselines(dense)
    counterparts = {(run.setting, run.seed) for run in dense}
    found = []
    for members in groups.values():
        kind, masked = _kind(members[0]), members[0].masked_momentum
        # Where dense has no masked momentum of its own, it is the same without.
        one = _summary(members, baselines.get((kind, masked)) or baselines.get((kind, False)) or {})
        if not (one.is_dense or one.against_dense or one.is_disputed):
            # A score is another metric than what the program itself has found.
            has_dense = any((run.setting, run.seed) in counterparts for run in members)
            one = replace(one, is_half_scored=has_dense)
        found.append(one)
    return sorted(found, key=lambda one: (one.first.task, one.outcome.metric, order(one.first), not one.is_dense))


def _kind(run: Run) -> tuple[object, ...]:
    return (*run.setting, run.outcome.metric if run.outcome else "")


def _baselines(dense: Iterable[Run]) -> dict[tuple[object, bool], dict[int, set[float]]]:
    """All values of a seed, by kind and whether momentum is masked."""
    found: dict[tuple[object, bool], dict[int, set[float]]] = defaultdict(lambda: defaultdict(set))
    for run in dense:
        if run.outcome and run.outcome.value is not None:
            found[_kind(run), run.masked_momentum][run.seed].add(run.outcome.value)
    return found


def _values(runs: Sequence[Run]) -> dict[int, float]:
    """By seed, of which a series has one run each: sources/repeats.py."""
    both = ((run.seed, run.outcome.value) for run in runs if run.outcome)
    return {seed: value for seed, value in both if value is not None}


def _summary(runs: list[Run], baseline: dict[int, set[float]]) -> Summary:
    if methods.family(runs[0].method) == "dense":
        return Summary(tuple(runs), None, None)
    values = _values(runs)
    dense = {seed: min(found) for seed, found in baseline.items() if len(found) == 1}
    is_disputed = any(len(baseline.get(seed, ())) > 1 for seed in values)
    paired = [dense[seed] for seed in values if seed in dense]
    against_dense = _as_scored(difference(values, dense), [run for run in runs if run.seed in dense])
    return Summary(tuple(runs), against_dense, sum(paired) / len(paired) if paired else None, is_disputed)


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
