"""What series are called beside one another: by what tells them apart, and no more."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from scalecom.report import methods
from scalecom.report.settings import SETTINGS, differences
from scalecom.report.sources.runs import Run, Series


def names(runs: Iterable[Run]) -> dict[Series, str]:
    """A recipe has its own name, an entrant that of its comparison, any other series that of its method. Those
    of one name get more, a kind of difference at a time until no two are alike."""
    firsts: dict[Series, Run] = {}
    for run in runs:
        firsts.setdefault(run.series, run)
    found = {series: run.recipe or run.entrant or methods.family(run.method) for series, run in firsts.items()}
    for more in _MORE:
        alike: dict[str, list[Series]] = defaultdict(list)
        for series, name in found.items():
            alike[name].append(series)
        for name, members in alike.items():
            if len(members) > 1:
                added = more([firsts[series] for series in members])
                found |= {series: ", ".join([name, *one]) for series, one in zip(members, added, strict=True)}
    return found


def _learners(runs: Sequence[Run]) -> list[list[str]]:
    first, *_ = SETTINGS
    return [[first.said(run)] for run in runs] if first.differs(runs) else [[] for _ in runs]


def _options(take: Callable[[Run], str]) -> Callable[[Sequence[Run]], list[list[str]]]:
    return lambda runs: methods.own_options([take(run) for run in runs])


def _versions(runs: Sequence[Run]) -> list[list[str]]:
    if len({run.version for run in runs}) == 1:
        return [[] for _ in runs]
    return [[f"version {run.version}"] if run.version else [] for run in runs]


def _places(runs: Sequence[Run]) -> list[list[str]]:
    return [[run.place] if run.place else [] for run in runs]


def _numbers(runs: Sequence[Run]) -> list[list[str]]:
    """Where what tells them apart is said by nothing above."""
    return [[f"no. {i + 1}"] for i in range(len(runs))]


# Of runs of one name, what is said of each besides; what readers look for first comes first.
_MORE: tuple[Callable[[Sequence[Run]], list[list[str]]], ...] = (
    _learners, _options(lambda run: run.method), differences, _versions, _places, _options(lambda run: run.spec),
    _numbers)
