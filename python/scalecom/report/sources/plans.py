"""What `scalecom plan --json` writes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from scalecom.report.sources.fields import Fields, Unreadable


@dataclass(frozen=True)
class Row:
    """A method in one setting; times in milliseconds."""

    method: str
    workers: int
    batch: int
    bandwidth: float | None  # bytes a second
    step: float
    compute: float
    compress: float | None  # None where it was not measured
    comm: float
    exposed: float
    comm_share: float
    speedup: float
    effective_rate: float | None
    pays_below: float | None  # bytes a second
    pays_always: bool
    note: str


@dataclass(frozen=True)
class Plan:
    path: Path
    model: str
    parameters: float | None
    device: str  # that compressing was measured on
    sweep: str | None  # the figure that varies: workers, bandwidth or batch
    rows: tuple[Row, ...]
    advice: str

    def swept(self, row: Row) -> float:
        values = {"workers": row.workers, "batch": row.batch, "bandwidth": row.bandwidth}
        value = values.get(self.sweep or "")
        if value is None:
            raise Unreadable(self.path, f"is damaged: a row of the sweep has no '{self.sweep}'")
        return value


def is_plan(fields: Fields) -> bool:
    return fields.has("rows", "advice")


def is_network(fields: Fields) -> bool:
    """What `scalecom plan --measure` writes without a model: nothing is planned."""
    return fields.has("network") and not fields.has("rows")


def plan_of(fields: Fields) -> Plan:
    rows = tuple(_row(row) for row in fields.objects("rows"))
    if not rows:
        raise Unreadable(fields.path, "is damaged: the plan has no rows")
    kernels = fields.object("kernels")
    plan = Plan(
        path=fields.path,
        model=fields.text_or_none("model") or "",
        parameters=fields.number_or_none("parameters"),
        device=(kernels.text_or_none("device") if kernels else None) or "",
        sweep=fields.text_or_none("sweep"),
        rows=rows,
        advice=fields.text("advice"),
    )
    if plan.sweep is not None:
        for row in rows:
            plan.swept(row)
    return plan


def _row(fields: Fields) -> Row:
    measured = fields.flag("compress_measured") or "compress_measured" not in fields
    return Row(
        method=fields.text("method"),
        workers=fields.whole("workers"),
        batch=fields.whole("batch"),
        bandwidth=fields.number_or_none("bandwidth"),
        step=fields.number("step_ms"),
        compute=fields.number("compute_ms"),
        compress=fields.number("compress_ms") if measured else None,
        comm=fields.number("comm_ms"),
        exposed=fields.number("exposed_comm_ms"),
        comm_share=fields.number("comm_share"),
        speedup=fields.number("speedup"),
        effective_rate=fields.number_or_none("effective_rate"),
        pays_below=fields.number_or_none("pays_below"),
        pays_always=fields.flag("pays_always"),
        note=fields.text_or_none("note") or "",
    )
