"""What series are called beside one another: by what tells them apart, and no more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations

from scalecom.report import methods
from scalecom.report.settings import SETTINGS
from scalecom.report.sources.runs import Run, Series

# More options than these are not looked through for the fewest that will do.
_MOST_OPTIONS = 3


def names(runs: Iterable[Run]) -> dict[Series, str]:
    """A recipe has its own name, an entrant that of its comparison, any other series that of its method, each
    with what tells it from its rivals."""
    firsts: dict[Series, Run] = {}
    for run in runs:
        firsts.setdefault(run.series, run)
    found = {series: _name(run, [other for other in firsts.values() if other is not run and _is_rival(run, other)])
             for series, run in firsts.items()}
    # Where what tells two apart is said by nothing below.
    counts, seen = Counter(found.values()), Counter[str]()
    for series, name in found.items():
        if counts[name] > 1:
            seen[name] += 1
            found[series] = f"{name}, no. {seen[name]}"
    return found


def _is_rival(run: Run, other: Run) -> bool:
    """Whether it might be taken for the other. The name of a method says nothing beside recipes of it."""
    own = run.recipe or run.entrant
    if own:
        return own == (other.recipe or other.entrant)
    return methods.family(run.method) == methods.family(other.method)


def _name(run: Run, rivals: Sequence[Run]) -> str:
    """A kind of difference at a time, until there is no rival left that is alike in all so far. Of two that
    are not alike it is enough that one says so."""
    name = run.recipe or run.entrant or methods.family(run.method)
    pieces: list[str] = []
    for kind, alike in _KINDS:
        if rivals:
            pieces += kind(run, rivals)
            rivals = [other for other in rivals if alike(run) == alike(other)]
    if run.version and any(other.version != run.version for other in rivals):
        name = f"{name}@{run.version}"
    return ", ".join([name, *pieces])


def _learners(run: Run, rivals: Sequence[Run]) -> list[str]:
    first, *_ = SETTINGS
    return [first.said(run)] if first.differs([run, *rivals]) else []


def _options(run: Run, rivals: Sequence[Run]) -> list[str]:
    """The fewest that no rival has all of; where all have them, none."""
    own = run.method.split(",")[1:]
    theirs = [set(other.method.split(",")[1:]) for other in rivals]
    theirs = [options for options in theirs if not options.issuperset(own)]
    if not theirs:
        return []
    telling = [option for option in own if not all(option in options for options in theirs)]
    for size in range(1, _MOST_OPTIONS + 1):
        for some in combinations(telling, size):
            if not any(options.issuperset(some) for options in theirs):
                return list(some)
    return telling


def _settings(run: Run, rivals: Sequence[Run]) -> list[str]:
    return [said for said in (one.said(run) for one in SETTINGS if one.differs([run, *rivals])) if said]


def _place(run: Run, _rivals: Sequence[Run]) -> list[str]:
    return [run.place] if run.place else []


# What is said of a run beside these rivals, and what it is alike in with those that are left; what readers look
# for first comes first.
_KINDS: tuple[tuple[Callable[[Run, Sequence[Run]], list[str]], Callable[[Run], object]], ...] = (
    (_learners, lambda run: run.learners),
    (_options, lambda run: set(run.method.split(","))),
    (_settings, lambda run: (run.setting, run.masked_momentum)),
    (_place, lambda run: run.place),
)
