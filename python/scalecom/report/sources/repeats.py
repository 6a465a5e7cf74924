"""Runs that nothing but their place tells apart."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from scalecom.report.sources.runs import Run, Series


def told_apart(runs: Iterable[Run]) -> list[Run]:
    """With a `place` where a series has several runs of one seed, so that none of them stands for another."""
    all_runs = list(runs)
    by_series: dict[Series, list[Run]] = defaultdict(list)
    for run in all_runs:
        by_series[run.series].append(run)
    places: dict[Path, str] = {}
    for members in by_series.values():
        if not _is_enough(members, [Path()] * len(members)):
            places |= _places(members)
    return [replace(run, place=places.get(run.path, "")) for run in all_runs]


def _is_enough(runs: Sequence[Run], places: Sequence[Path]) -> bool:
    return len({(run.seed, place) for run, place in zip(runs, places, strict=True)}) == len(runs)


def _places(runs: Sequence[Run]) -> dict[Path, str]:
    """By path: the folder around it where that is enough, for then seeds stay together, and else itself;
    without what all have in common."""
    own = [Path(os.path.abspath(run.path)) for run in runs]
    around = [path.parent for path in own]
    chosen = around if _is_enough(runs, around) else own
    common = os.path.commonpath([place.parent for place in chosen])
    return {run.path: os.path.relpath(place, common) for run, place in zip(runs, chosen, strict=True)}
