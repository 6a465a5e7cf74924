"""What lies at the paths that are given, told by its content."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from scalecom.report.sources import comparisons, plans, reproductions, runs
from scalecom.report.sources.comparisons import Comparison
from scalecom.report.sources.fields import Unreadable, read_object
from scalecom.report.sources.plans import Plan
from scalecom.report.sources.repeats import told_apart
from scalecom.report.sources.reproductions import Reproduction
from scalecom.report.sources.runs import Run

# A folder of rows, each with a folder a seed: an unfinished reproduction.
_DEEPEST = 2


@dataclass
class Findings:
    runs: list[Run] = field(default_factory=list)  # on their own, of nothing below
    comparisons: list[Comparison] = field(default_factory=list)
    reproductions: list[Reproduction] = field(default_factory=list)
    plans: list[Plan] = field(default_factory=list)
    _taken: set[str] = field(default_factory=set)  # folders, each once: one may be in another that is given too

    def origins(self) -> list[tuple[str, list[Run]]]:
        """All runs, by where they come from; "" is on their own."""
        of_more = [(str(one.path), list(one.runs)) for one in (*self.comparisons, *self.reproductions)]
        return [(name, found) for name, found in [("", self.runs), *of_more] if found]


def find(paths: Iterable[Path]) -> Findings:
    """Unreadable, naming it, for a path that is none of what a report is made from, or damaged."""
    findings = Findings()
    # Once each, however often they are given.
    for path in {os.path.realpath(path): path for path in paths}.values():
        try:
            _take(findings, path)
        except OSError as error:
            raise Unreadable(path, f"cannot be read: {error.strerror}") from None
    findings.runs = told_apart(findings.runs)
    return findings


def _take(findings: Findings, path: Path) -> None:
    if not path.exists():
        raise Unreadable(path, "is not there")
    if not path.is_dir():
        _take_file(findings, path)
    elif not _take_folder(findings, path, _DEEPEST):
        raise Unreadable(path, "holds no run, comparison or reproduction")


def _take_folder(findings: Findings, folder: Path, deepest: int) -> bool:
    """Whether there is anything in it."""
    kinds: list[tuple[Callable[[Path], bool], Callable[[Path], object]]] = [
        (runs.is_run, lambda path: findings.runs.append(runs.read_run(path))),
        (comparisons.is_comparison,
         lambda path: findings.comparisons.append(comparisons.read_comparison(path))),
        (reproductions.is_reproduction,
         lambda path: findings.reproductions.append(reproductions.read_reproduction(path))),
    ]
    for is_kind, take in kinds:
        if is_kind(folder):
            place = os.path.realpath(folder)
            if place not in findings._taken:
                findings._taken.add(place)
                take(folder)
            return True
    inner = sorted(path for path in folder.iterdir() if path.is_dir()) if deepest > 0 else []
    return any([_take_folder(findings, path, deepest - 1) for path in inner])


def _take_file(findings: Findings, path: Path) -> None:
    if not path.is_file():
        raise Unreadable(path, "is neither a file nor a folder")
    fields = read_object(path)
    if comparisons.is_comparison_file(fields):
        findings.comparisons.append(comparisons.comparison_of(fields))
    elif plans.is_plan(fields):
        findings.plans.append(plans.plan_of(fields))
    elif reproductions.is_reproduction_file(fields):
        findings.reproductions.append(reproductions.reproduction_of(fields))
    elif runs.is_result(fields):
        findings.runs.append(runs.run_of_result(fields))
    elif plans.is_network(fields):
        raise Unreadable(path, "is a measured network and no plan: give plan a --model too")
    else:
        raise Unreadable(path, "is no JSON that scalecom train, compare, reproduce or plan writes")
