"""The first look: what compression did to accuracy and traffic, a tile each."""

from __future__ import annotations

from scalecom.report import wording
from scalecom.report.markup import Markup, element
from scalecom.report.names import names
from scalecom.report.outcomes import Summary, summarise
from scalecom.report.pairs import Difference
from scalecom.report.sections.section import Canvas, Section
from scalecom.report.sources import Findings
from scalecom.report.sources.comparisons import Comparison, Row

# More would be a table, and there is one.
_MOST_TILES = 4


def overview(findings: Findings, _canvas: Canvas) -> Section | None:
    compared = [row for row in summarise(findings.runs) if row.against_dense]
    tiles = [_of_summary(row, _label(row, compared)) for row in compared]
    tiles += [_of_row(found, row) for found in findings.comparisons for row in _telling(found)]
    if not tiles or len(tiles) > _MOST_TILES:
        return None
    return Section("overview", "At a glance", element("div", *tiles, class_="tiles"))


def _label(row: Summary, rows: list[Summary]) -> str:
    """Beside those whose tiles have the same head."""
    run = row.first
    beside = [other.first for other in rows if (other.first.task, other.first.learners) == (run.task, run.learners)]
    return names(beside)[run.series]


def _of_summary(row: Summary, label: str) -> Markup:
    run, outcome = row.first, row.outcome
    whole = f"{wording.times(outcome.whole_run_rate)} over the whole run" if outcome.whole_run_rate else ""
    if outcome.group:
        whole = f"{whole}; counted between groups of {outcome.group}".removeprefix("; ")
    assert row.against_dense is not None and row.dense is not None
    return _tile(f"{run.task}, {wording.count(run.learners, 'learner')}", label, outcome.metric,
                 outcome.effective_rate, row.dense, row.against_dense, whole)


def _telling(found: Comparison) -> list[Row]:
    """ScaleCom with the most learners, at a standard and at a large batch."""
    rows = [row for row in found.rows
            if row.method == "scalecom" and row.against_dense is not None and row.value is not None]
    by_batch = [[row for row in rows if row.large_batch == large] for large in (False, True)]
    return [max(some, key=lambda row: row.learners) for some in by_batch if some]


def _of_row(found: Comparison, row: Row) -> Markup:
    assert row.against_dense is not None and row.value is not None
    where = f"{found.task}, {row.learners} learners" + (", large batch" if row.large_batch else "")
    return _tile(where, row.method, row.metric, row.effective_rate, row.value - row.against_dense,
                 Difference(row.against_dense, 1, None))


def _tile(where: str, label: str, metric: str, rate: float | None, dense: float, against: Difference,
          whole: str = "") -> Markup:
    """`dense` is the mean of the pairs that `against` is taken over."""
    values = f"{label} {wording.number(dense + against.mean)}, dense {wording.number(dense)}"
    details = [f"{wording.metric(metric)}: {values}", _interval(against), whole]
    return element(
        "article",
        element("h3", where),
        element("p", element("strong", wording.times(rate)), " fewer bytes a rank and step"),
        element("p", element("strong", wording.difference(against)), wording.of_metric(" against dense", metric)),
        element("p", "; ".join(detail for detail in details if detail), class_="note"),
        class_="tile",
    )


def _interval(against: Difference) -> str:
    if against.pairs > 1:
        return f"95% interval, {against.pairs} seeds"
    return "one seed, so no interval" if against.interval is None else "95% interval over sentences, one seed"
