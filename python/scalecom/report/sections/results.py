"""What runs came to, side by side with dense."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from scalecom.report import wording
from scalecom.report.figures.differences import Compared, forest
from scalecom.report.markup import Markup, Table, code, element, join
from scalecom.report.names import names
from scalecom.report.outcomes import Summary, summarise
from scalecom.report.sections.section import Canvas, Section
from scalecom.report.settings import SETTINGS
from scalecom.report.sources import Findings
from scalecom.report.sources.runs import Run


def results(findings: Findings, canvas: Canvas) -> Section | None:
    summaries = summarise(findings.runs)
    if not summaries:
        return None
    parts = []
    by_task = groupby(summaries, key=lambda row: (row.first.task, row.outcome.metric))
    for (task, metric), rows in by_task:
        parts.append(_of_task(task, metric, list(rows), canvas))
    return Section("results", "Results", join(parts))


def _of_task(task: str, metric: str, rows: Sequence[Summary], canvas: Canvas) -> Markup:
    firsts = [row.first for row in rows]
    varied = [setting for setting in SETTINGS if setting.differs(firsts)]
    shared = [setting.said(firsts[0]) for setting in SETTINGS if setting.is_always_said and setting not in varied]
    caption = ", ".join([task, *filter(None, shared)])
    table = Table(caption, ["Method", *(setting.head for setting in varied), wording.metric(metric), "Seeds",
                                       wording.of_metric("Difference to dense", metric),
                                       "Bytes a rank and step", "Effective rate", "With warm-up", "Time"])
    for row in rows:
        table.rows.append([
            _name(row.first, firsts), *(setting.text(row.first) for setting in varied), wording.number(row.value),
            str(len(row.runs)), wording.difference(row.against_dense),
            wording.bytes_text(row.outcome.bytes_per_rank_step), wording.times(row.outcome.effective_rate),
            wording.times(row.outcome.whole_run_rate), wording.duration(row.outcome.seconds),
        ])
    return join([table.markup(), element("p", _note(rows), class_="note"), _plot(metric, rows, canvas)])


def _name(run: Run, others: Sequence[Run]) -> Markup:
    """With what no column has: of several versions its own, and where it lies if nothing else is its own."""
    has_versions = len({other.version for other in others if other.recipe == run.recipe}) > 1
    recipe = f"{run.recipe}@{run.version}" if has_versions and run.version else run.recipe
    # The same words may have meant something else to another version of the program.
    has_specs = len({other.spec for other in others if other.method == run.method}) > 1
    parts = [recipe, run.place, code(run.spec if has_specs else run.method)]
    return join([part for part in parts if part], element("br"))


def _note(rows: Sequence[Summary]) -> str:
    notes = ["The effective rate counts all that is sent after the warm-up: values, offsets and dense layers."]
    inside = {wording.bytes_text(row.outcome.inside_bytes_per_rank_step) for row in rows if row.outcome.group}
    if inside:
        notes.append("With groups, bytes and rates are those between groups; inside its group a rank sends "
                     f"{' or '.join(sorted(inside))} more, dense.")
    found = [row.against_dense for row in rows if row.against_dense]
    if any(one.pairs > 1 for one in found):
        notes.append("Differences are means over runs of the same seed, ± the 95% interval by Student's t.")
    if any(one.over_sentences for one in found):
        notes.append(wording.OVER_SENTENCES)
    if any(row.is_disputed for row in rows):
        notes.append("There are several dense runs of one seed that came to different values: no difference is "
                     "taken to them.")
    missing = [row for row in rows if not (row.is_dense or row.against_dense or row.is_disputed)]
    if any(row.is_half_scored for row in missing):
        notes.append("Where a difference is missing, scripts/score has scored the run or its dense counterpart, and "
                     "not both: score the other, too.")
    if any(not row.is_half_scored for row in missing):
        notes.append("Where a difference is missing, there is no dense run of the same settings and seed.")
    if any(one.interval is None for one in found):
        notes.append("A difference of one seed has no interval.")
    return " ".join(notes)


def _plot(metric: str, rows: Sequence[Summary], canvas: Canvas) -> Markup:
    """Only where there are intervals to compare."""
    named = names(row.first for row in rows if row.against_dense)
    compared = [Compared(named[row.first.series], row.first.method, row.against_dense)
                for row in rows if row.against_dense]
    if all(one.difference.interval is None for one in compared):
        return Markup()
    return canvas.draw(forest(f"Difference to dense: {metric}", metric, compared))
