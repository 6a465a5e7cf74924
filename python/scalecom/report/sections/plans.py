"""What `scalecom plan` says a step would take."""

from __future__ import annotations

from scalecom.report import wording
from scalecom.report.figures import plans as figures
from scalecom.report.markup import Markup, Table, code, element, join
from scalecom.report.sections.section import Canvas, Section
from scalecom.report.sources import Findings
from scalecom.report.sources.plans import Plan, Row

_BITS = 8


def plans(findings: Findings, canvas: Canvas) -> Section | None:
    if not findings.plans:
        return None
    return Section("plans", "Plans", join(_of_one(plan, canvas) for plan in findings.plans))


def _of_one(plan: Plan, canvas: Canvas) -> Markup:
    title = _title(plan)
    advice = element("p", plan.advice, class_="advice")
    if plan.sweep:
        return join([canvas.draw(figures.sweep(title, plan)), advice, _sweep_table(title, plan)])
    return join([canvas.draw(figures.parts(title, plan.rows)), advice, _table(title, plan), _notes(plan)])


def _title(plan: Plan) -> str:
    first = plan.rows[0]
    pieces = {
        "workers": wording.count(first.workers, "worker"),
        "batch": f"batch {first.batch:,}",
        "bandwidth": "" if first.bandwidth is None else wording.scaled(_BITS * first.bandwidth, "bit/s"),
    }
    fixed = [text for name, text in pieces.items() if name != plan.sweep and text]
    return ", ".join([plan.model or str(plan.path), *fixed])


def _table(title: str, plan: Plan) -> Markup:
    table = Table(f"{title}: times in ms a step", [
        "Method", "Step", "Computing", "Compressing", "Communication", "Waiting for it", "Share of the step",
        "Speed-up", "Effective rate", "Pays below"])
    for row in plan.rows:
        table.rows.append([
            code(row.method), *(wording.number(ms, 3) for ms in (row.step, row.compute, row.compress, row.comm,
                                                                 row.exposed)),
            wording.percent(row.comm_share), wording.times(row.speedup, 2), wording.times(row.effective_rate),
            _pays_below(row),
        ])
    return table.markup()


def _sweep_table(title: str, plan: Plan) -> Markup:
    values = sorted({plan.swept(row) for row in plan.rows})
    steps = {(row.method, plan.swept(row)): row.step for row in plan.rows}
    heads = [wording.scaled(_BITS * value, "bit/s") if plan.sweep == "bandwidth" else f"{value:,.0f}"
             for value in values]
    table = Table(f"{title}: step time in ms, by {plan.sweep}", ["Method", *heads])
    for method in dict.fromkeys(row.method for row in plan.rows):
        table.rows.append([code(method), *(wording.number(steps.get((method, value))) for value in values)])
    return element("details", element("summary", "These step times as a table"), table.markup())


def _pays_below(row: Row) -> str:
    if row.pays_always:
        return "always"
    return wording.MISSING if row.pays_below is None else wording.scaled(_BITS * row.pays_below, "bit/s")


def _notes(plan: Plan) -> Markup:
    """What compressing takes where it was not measured, the figure says."""
    notes = [f"{row.method}: {row.note}." for row in plan.rows if row.note and row.compress is not None]
    measured = f"; kernels as measured on {plan.device}" if plan.device else ""
    return element("p", " ".join([f"Planned, not measured{measured}.", *notes]), class_="note")
