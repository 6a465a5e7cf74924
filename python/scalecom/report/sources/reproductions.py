"""What `scalecom reproduce` writes: a table of recipes against their baselines."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from scalecom.report.pairs import Difference
from scalecom.report.sources.fields import Fields, read_object
from scalecom.report.sources.repeats import told_apart
from scalecom.report.sources.runs import Run, is_run, read_run


@dataclass(frozen=True)
class Row:
    recipe: str
    about: str
    task: str
    learners: int
    method: str  # with its groups
    metric: str
    mean: float | None
    runs: int
    runs_wanted: int | None
    effective_rate: float | None
    between_groups: bool  # what the rate is of; else of all that is sent
    inside_bytes_per_rank_step: float | None  # sent inside a group besides
    baseline: str | None
    difference: Difference | None


@dataclass(frozen=True)
class Reproduction:
    path: Path
    rows: tuple[Row, ...]
    runs: tuple[Run, ...] = ()


def is_reproduction(folder: Path) -> bool:
    return (folder / "table.json").is_file()


def is_reproduction_file(fields: Fields) -> bool:
    if not fields.has("rows"):
        return False
    rows = fields.objects("rows")
    return bool(rows) and rows[0].has("recipe")


def read_reproduction(folder: Path) -> Reproduction:
    runs = told_apart(read_run(path) for path in sorted(folder.glob("*/seed-*")) if is_run(path))
    return replace(reproduction_of(read_object(folder / "table.json")), path=folder, runs=tuple(runs))


def reproduction_of(fields: Fields) -> Reproduction:
    return Reproduction(fields.path, tuple(_row(row) for row in fields.objects("rows")))


def _row(fields: Fields) -> Row:
    groups = fields.whole_or_none("groups")
    # Former tables do not say it.
    rate_of = fields.text_or_none("effective_rate_of") or ("between groups" if groups else "all traffic")
    return Row(
        recipe=fields.text("recipe"),
        about=fields.text_or_none("about") or "",
        task=fields.text("task"),
        learners=fields.whole("learners"),
        method=fields.text("method") + (f",groups={groups}" if groups else ""),
        metric=fields.text("metric"),
        mean=fields.number_or_none("mean"),
        runs=len(fields.objects("runs")),
        runs_wanted=fields.whole_or_none("runs_wanted"),
        effective_rate=fields.number_or_none("effective_rate"),
        between_groups=rate_of == "between groups",
        inside_bytes_per_rank_step=fields.number_or_none("inside_bytes_per_rank_step"),
        baseline=fields.text_or_none("baseline"),
        difference=_difference(fields.object("difference")),
    )


def _difference(fields: Fields | None) -> Difference | None:
    if fields is None:
        return None
    mean = fields.number_or_none("mean")
    if mean is None:
        return None
    pairs = fields.whole("pairs")
    over_sentences = fields.interval("interval_95") if pairs == 1 else None
    return Difference(mean, pairs, fields.number_or_none("half_width_95"), over_sentences)
