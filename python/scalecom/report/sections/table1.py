"""The paper's Table 1, as `scalecom compare` measured it."""

from __future__ import annotations

from scalecom.report import wording
from scalecom.report.figures.tradeoff import tradeoff
from scalecom.report.markup import Markup, Table, breakable, element, join
from scalecom.report.sections.section import Canvas, Section
from scalecom.report.sources import Findings
from scalecom.report.sources.comparisons import Comparison, Row


def table1(findings: Findings, canvas: Canvas) -> Section | None:
    if not findings.comparisons:
        return None
    return Section("table1", "Table 1, measured", join(_of_one(found, canvas) for found in findings.comparisons))


def _of_one(found: Comparison, canvas: Canvas) -> Markup:
    if not found.is_complete:
        done = sum(run.outcome is not None or run.failure is not None for run in found.runs)
        text = (f"{found.path} is not complete: {wording.count(len(found.runs), 'run')} begun, {done} over, "
                f"{wording.count(len(found.measured), 'method')} measured. The table comes with the last of them.")
        return element("p", text, class_="note")
    standard, large = _most_learners(found, False), _most_learners(found, True)
    metric = next((row.metric for row in found.rows if row.metric), "")
    head = ["Method", "Traffic in n", "Operations an element", "ns an element", "Of a copy's time",
            "Bytes an element kept", "Effective rate", *_outcome_heads(standard, large)]
    brackets = wording.of_metric("in brackets the difference to dense", metric)
    table = Table(f"{found.task}: {metric}, {brackets}", head, words=frozenset({0, 1}))
    added = {one.method: one.bytes_per_element for one in found.measured}
    for method, growth in found.growth.items():
        rows = [row for row in found.rows if row.method == method]
        if not rows:
            continue
        any_row = next((row for row in rows if row.learners == standard), rows[0])
        table.rows.append([
            breakable(method, ","), growth, wording.number(any_row.ops_per_element, 1),
            wording.number(any_row.ns_per_element), wording.times(_of_copy(any_row)),
            wording.number(added.get(method), 1), wording.times(any_row.effective_rate),
            *(_outcome(rows, learners, is_large) for learners, is_large in ((standard, False), (large, True))
              if learners is not None),
        ])
    note = ("Traffic in n is that of the busiest rank, fitted. Time is that of a method's own step on one rank, "
            "beside a plain copy of the same gradient; the effective rate counts all that is sent.")
    if found.seed is not None:
        note = f"One seed ({found.seed}): differences have no interval. {note}"
    figure = canvas.draw(tradeoff(f"{found.task}: accuracy kept, traffic saved", found.rows))
    return join([table.markup(), element("p", note, class_="note"), figure])


def _most_learners(found: Comparison, large: bool) -> int | None:
    return max((row.learners for row in found.rows if row.large_batch == large), default=None)


def _outcome_heads(standard: int | None, large: int | None) -> list[str]:
    heads = [] if standard is None else [f"{standard} learners"]
    return heads if large is None else [*heads, f"{large} learners, large batch"]


def _of_copy(row: Row) -> float | None:
    if row.ns_per_element is None or not row.copy_ns_per_element:
        return None
    return row.ns_per_element / row.copy_ns_per_element


def _outcome(rows: list[Row], learners: int, large: bool) -> str:
    row = next((row for row in rows if row.learners == learners and row.large_batch == large), None)
    if row is None:
        return wording.MISSING
    if row.failure is not None:
        return "failed"
    if row.against_dense is None or row.method == "dense":
        return wording.number(row.value)
    return f"{wording.number(row.value)} ({wording.signed(row.against_dense)})"
