"""What crosses the network, by the number of learners."""

from __future__ import annotations

from collections import defaultdict

from scalecom.report import wording
from scalecom.report.figures.traffic import measured_traffic, traffic_of_runs
from scalecom.report.markup import Markup, Table, breakable, join
from scalecom.report.sections.section import Canvas, Section
from scalecom.report.sources import Findings
from scalecom.report.sources.comparisons import Comparison
from scalecom.report.sources.runs import Run


def traffic(findings: Findings, canvas: Canvas) -> Section | None:
    parts = [_of_comparison(found, canvas) for found in findings.comparisons if found.measured]
    by_task: dict[str, list[Run]] = defaultdict(list)
    for run in findings.runs:
        by_task[run.task].append(run)
    parts += [canvas.draw(traffic_of_runs(f"{task}: traffic by learners", runs)) for task, runs in by_task.items()]
    drawn = [part for part in parts if part]
    return Section("traffic", "Traffic", join(drawn)) if drawn else None


def _of_comparison(found: Comparison, canvas: Canvas) -> Markup:
    figure = canvas.draw(measured_traffic(f"{found.task}: bytes a step, by learners", found.measured))
    ranks = sorted({moved.ranks for one in found.measured for moved in one.traffic})
    table = Table("Bytes that the busiest of n ranks sends and receives in a step",
                  ["Method", *(f"n = {n}" for n in ranks)])
    for one in found.measured:
        busiest = {moved.ranks: moved.max_rank_bytes for moved in one.traffic}
        table.rows.append([breakable(one.method, ","), *(wording.bytes_text(busiest.get(n)) for n in ranks)])
    return join([figure, table.markup()])
