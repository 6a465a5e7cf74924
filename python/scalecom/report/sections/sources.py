"""All runs that were read, complete or not."""

from __future__ import annotations

from scalecom.report import wording
from scalecom.report.markup import Table, breakable, code, element
from scalecom.report.sections.section import Canvas, Section
from scalecom.report.sources import Findings
from scalecom.report.sources.runs import Run


def sources(findings: Findings, _canvas: Canvas) -> Section | None:
    runs = [run for _, runs in findings.origins() for run in runs]
    if not runs:
        return None
    table = Table("Runs, and how far each is", ["Folder", "State", "Value", "Task", "Method", "Learners", "Seed"],
                  words=frozenset({0, 1, 3, 4}))
    for run in runs:
        value = run.outcome.value if run.outcome else (run.epochs[-1].value if run.epochs else None)
        table.rows.append([breakable(str(run.path), "/"), _state(run), wording.number(value), run.task,
                           code(run.method), str(run.learners), str(run.seed)])
    summary = element("summary", f"{wording.count(len(runs), 'run')} read{_unfinished(runs)}")
    return Section("runs", "Runs", element("details", summary, table.markup(), open=len(runs) <= 12))


def _state(run: Run) -> str:
    if run.failure is not None:
        return f"failed: {run.failure}"
    if run.outcome:
        return "complete"
    if not run.epochs:
        return f"no epoch of its {run.steps:,} steps complete yet"
    return f"unfinished: step {run.steps_done:,} of {run.steps:,}"


def _unfinished(runs: list[Run]) -> str:
    unfinished = sum(run.outcome is None and run.failure is None for run in runs)
    failed = sum(run.failure is not None for run in runs)
    counts = ((unfinished, "unfinished"), (failed, "failed"))
    return "".join(f", {count} {word}" for count, word in counts if count)
