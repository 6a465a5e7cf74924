"""The table of recipes that `scalecom reproduce` writes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from scalecom.report import wording
from scalecom.report.figures.differences import Compared, forest
from scalecom.report.markup import Markup, Table, breakable, code, element, join
from scalecom.report.sections.section import Canvas, Section
from scalecom.report.sources import Findings
from scalecom.report.sources.reproductions import Reproduction, Row


def reproduction(findings: Findings, canvas: Canvas) -> Section | None:
    if not findings.reproductions:
        return None
    return Section("reproduction", "Reproduction",
                   join(_of_one(found, canvas) for found in findings.reproductions))


def _of_one(found: Reproduction, canvas: Canvas) -> Markup:
    if not found.rows:
        return element("p", f"{found.path}: no run is complete yet.", class_="note")
    by_metric: dict[str, list[Row]] = defaultdict(list)
    for row in found.rows:
        by_metric[row.metric].append(row)
    parts = [join([_table(f"{found.path}: {metric}", metric, rows), _plot(metric, rows, canvas)])
             for metric, rows in by_metric.items()]
    return join([element("p", _note(found.rows), class_="note"), *parts])


def _note(rows: Sequence[Row]) -> str:
    notes = ["Differences are means over runs of the same seed as the baseline's, ± the 95% interval by Student's "
             "t; a single pair has none."]
    if any(row.difference and row.difference.over_sentences for row in rows):
        notes.append(wording.OVER_SENTENCES)
    inside = {wording.bytes_text(row.inside_bytes_per_rank_step) for row in rows
              if row.inside_bytes_per_rank_step is not None}
    if inside:
        notes.append(f"Inside its group a rank sends {' or '.join(sorted(inside))} a step besides, dense.")
    return " ".join(notes)


def _table(caption: str, metric: str, rows: list[Row]) -> Markup:
    head = ["Recipe", "Learners", "Method", wording.metric(metric), "Runs", "Effective rate",
            wording.of_metric("Difference to its baseline", metric)]
    table = Table(caption, head, words=frozenset({0, 2}))
    for row in rows:
        runs = str(row.runs) if row.runs_wanted is None else f"{row.runs} of {row.runs_wanted}"
        table.rows.append([_name(row), str(row.learners), code(row.method), wording.number(row.mean), runs,
                           _rate(row), wording.difference(row.difference)])
    return table.markup()


def _rate(row: Row) -> str:
    rate = wording.times(row.effective_rate)
    return f"{rate} between groups" if row.between_groups and row.effective_rate is not None else rate


def _name(row: Row) -> Markup:
    about = element("small", row.about) if row.about else ""
    return join([breakable(row.recipe, "-"), about])


def _plot(metric: str, rows: list[Row], canvas: Canvas) -> Markup:
    compared = [Compared(row.recipe, row.method, row.difference) for row in rows if row.difference]
    title = f"Difference to the baseline: {metric}"
    return canvas.draw(forest(title, metric, compared)) if compared else Markup()
