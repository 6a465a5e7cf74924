"""What runs came to, side by side with dense."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from scalecom.report import wording
from scalecom.report.figures.differences import Compared, forest
from scalecom.report.markup import Markup, Table, code, element, join
from scalecom.report.methods import labels
from scalecom.report.outcomes import Summary, summarise
from scalecom.report.sections.section import Canvas, Section
from scalecom.report.sources import Findings
from scalecom.report.sources.runs import Run

# What a row is of, beside its method: the head of its column, its figure and, where all rows agree and it
# stands in the caption, what it is called there.
_SETTINGS: tuple[tuple[str, Callable[[Run], str], str], ...] = (
    ("Learners", lambda run: f"{run.learners:,}", "{} learners"),
    ("Batch a learner", lambda run: wording.number(run.batch, 0), "batch {} each"),
    ("Steps", lambda run: f"{run.steps:,}", "{} steps"),
    ("Learning rate", lambda run: wording.MISSING if run.learning_rate is None else f"{run.learning_rate:.4g}",
     "learning rate {}"),
)


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
    caption, varied = [task], []
    for name, take, phrase in _SETTINGS:
        found = {take(row.first) for row in rows}
        if len(found) > 1:
            varied.append((name, take))
        elif found != {wording.MISSING}:
            caption.append(phrase.format(*found))
    table = Table(", ".join(caption), ["Method", *(name for name, _ in varied), wording.metric(metric), "Seeds",
                                       wording.of_metric("Difference to dense", metric),
                                       "Bytes a rank and step", "Effective rate", "With warm-up", "Time"])
    for row in rows:
        table.rows.append([
            _name(row), *(take(row.first) for _, take in varied), wording.number(row.value), str(len(row.runs)),
            wording.difference(row.against_dense), wording.bytes_text(row.outcome.bytes_per_rank_step),
            wording.times(row.outcome.effective_rate), wording.times(row.outcome.whole_run_rate),
            wording.duration(row.outcome.seconds),
        ])
    return join([table.markup(), element("p", _note(rows), class_="note"), _plot(metric, rows, canvas)])


def _name(row: Summary) -> Markup:
    method = code(row.first.method)
    return join([row.first.recipe, element("br"), method]) if row.first.recipe else method


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
    if any(one.interval is None for one in found):
        notes.append("A difference of one seed has no interval.")
    return " ".join(notes)


def _plot(metric: str, rows: Sequence[Summary], canvas: Canvas) -> Markup:
    """Only where there are intervals to compare."""
    several = len({row.first.learners for row in rows}) > 1
    short = labels([row.first.method for row in rows])
    compared = []
    for row in rows:
        label = row.first.recipe or short[row.first.method]
        if row.against_dense:
            named = f"{label}, {row.first.learners} learners" if several else label
            compared.append(Compared(named, row.first.method, row.against_dense))
    if all(one.difference.interval is None for one in compared):
        return Markup()
    return canvas.draw(forest(f"Difference to dense: {metric}", metric, compared))
