"""How alike learners were during a run."""

from __future__ import annotations

from scalecom.report import wording
from scalecom.report.figures import similarity as figures
from scalecom.report.markup import Markup, code, element, join
from scalecom.report.sections.section import Canvas, Section
from scalecom.report.sources import Findings
from scalecom.report.sources.runs import Run


def similarity(findings: Findings, canvas: Canvas) -> Section | None:
    parts = [_of_run(run, canvas) for _, runs in findings.origins() for run in runs if run.similarity]
    drawn = [part for part in parts if part]
    return Section("similarity", "Similarity of the learners", join(drawn)) if drawn else None


def _of_run(run: Run, canvas: Canvas) -> Markup:
    """Empty where nothing could be measured: dense learners have no memories."""
    figures_of_run = (
        figures.distances("Distances over time", run.similarity),
        figures.contraction("Contraction over time", run.similarity),
        figures.quantiles("One learner against another (Q-Q)", run.similarity),
    )
    drawn = [canvas.draw(figure) for figure in figures_of_run if figure]
    if not drawn:
        return Markup()
    about = element("p", f"{run.task}, {wording.count(run.learners, 'learner')}, seed {run.seed}: ",
                    code(run.method), class_="of-run")
    return join([about, element("div", *drawn, class_="grid")])
