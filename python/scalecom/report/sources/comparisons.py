"""What `scalecom compare` writes: the paper's Table 1, measured."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from scalecom.report.sources.fields import Fields, Unreadable, read_object
from scalecom.report.sources.runs import Run, is_run, read_run


@dataclass(frozen=True)
class Traffic:
    """Of one method, among so many ranks."""

    ranks: int
    bytes_per_rank_step: float | None
    max_rank_bytes: float | None


@dataclass(frozen=True)
class Measured:
    """What was measured of a method besides training."""

    method: str
    growth: str
    traffic: tuple[Traffic, ...]
    bytes_per_element: float | None  # that the method adds


@dataclass(frozen=True)
class Row:
    """A run of a comparison."""

    method: str
    learners: int
    large_batch: bool
    metric: str
    value: float | None
    against_dense: float | None
    effective_rate: float | None
    ops_per_element: float | None
    ns_per_element: float | None
    copy_ns_per_element: float | None
    failure: str | None


@dataclass(frozen=True)
class Comparison:
    path: Path
    task: str
    seed: int | None
    measured: tuple[Measured, ...]
    growth: dict[str, str]  # by method
    rows: tuple[Row, ...]  # none before all runs are complete
    runs: tuple[Run, ...]

    @property
    def is_complete(self) -> bool:
        return bool(self.rows)


def is_comparison(folder: Path) -> bool:
    return (folder / "settings.json").is_file() and (folder / "runs").is_dir()


def is_comparison_file(fields: Fields) -> bool:
    return fields.has("rows", "growth")


def read_comparison(folder: Path) -> Comparison:
    runs = [_run(path) for path in (folder / "runs").iterdir() if is_run(path)]
    runs.sort(key=lambda run: (run.learners, run.entrant))
    whole = folder / "compare.json"
    if whole.is_file():
        return replace(comparison_of(read_object(whole)), path=folder, runs=tuple(runs))
    settings = read_object(folder / "settings.json")
    figures = (read_object(path) for path in sorted((folder / "measured").glob("*.json")))
    measured = tuple(_measured(fields) for fields in figures)
    return Comparison(
        path=folder,
        task=settings.text("task"),
        seed=settings.whole_or_none("seed"),
        measured=measured,
        growth={one.method: one.growth for one in measured},
        rows=(),
        runs=tuple(runs),
    )


def comparison_of(fields: Fields) -> Comparison:
    growth = fields.object("growth")
    rows = tuple(_row(row) for row in fields.objects("rows"))
    if growth is None or not rows:
        raise Unreadable(fields.path, "is damaged: the comparison has no rows")
    return Comparison(
        path=fields.path,
        task=fields.text_or_none("task") or "",
        seed=fields.whole_or_none("seed"),
        measured=tuple(_measured(one) for one in fields.objects("methods")),
        growth={method: growth.text(method) for method in growth.keys()},
        rows=rows,
        runs=(),
    )


def _run(folder: Path) -> Run:
    """Its folder is called METHOD-LEARNERS."""
    failed = folder.with_name(folder.name + ".failed.json")
    failure = read_object(failed).text("failure") if failed.is_file() else None
    return replace(read_run(folder), entrant=folder.name.rpartition("-")[0], failure=failure)


def _measured(fields: Fields) -> Measured:
    traffic = tuple(
        Traffic(one.whole("ranks"), one.number_or_none("bytes_per_rank_step"),
                one.number_or_none("max_rank_bytes"))
        for one in fields.objects("traffic")
    )
    return Measured(fields.text("method"), fields.text("growth"), traffic,
                    fields.number_or_none("method_bytes_per_element"))


def _row(fields: Fields) -> Row:
    return Row(
        method=fields.text("method"),
        learners=fields.whole("learners"),
        large_batch=fields.flag("large_batch"),
        metric=fields.text_or_none("metric") or "",
        value=fields.number_or_none("value"),
        against_dense=fields.number_or_none("against_dense"),
        effective_rate=fields.number_or_none("effective_rate"),
        ops_per_element=fields.number_or_none("ops_per_element"),
        ns_per_element=fields.number_or_none("ns_per_element"),
        copy_ns_per_element=fields.number_or_none("copy_ns_per_element"),
        failure=fields.text_or_none("failure"),
    )
