"""Learning curves: a figure for runs that share all but method and seed."""

from __future__ import annotations

from collections import defaultdict

from scalecom.report import wording
from scalecom.report.figures.curves import learning_curves
from scalecom.report.markup import element
from scalecom.report.sections.section import Canvas, Section
from scalecom.report.settings import SETTINGS, order
from scalecom.report.sources import Findings
from scalecom.report.sources.runs import Run


def curves(findings: Findings, canvas: Canvas) -> Section | None:
    origins = findings.origins()
    figures = []
    for origin, runs in origins:
        # Of one task and number of learners, by setting.
        kinds: dict[tuple[str, int], dict[tuple[object, ...], list[Run]]] = defaultdict(lambda: defaultdict(list))
        for run in runs:
            kinds[run.task, run.learners][run.setting].append(run)
        for _, settings in sorted(kinds.items()):
            groups = sorted(settings.values(), key=lambda members: order(members[0]))
            firsts = [members[0] for members in groups]
            for members in groups:
                title = _title(members[0], firsts)
                named = f"{title} ({origin})" if origin and len(origins) > 1 else title
                figures.append(canvas.draw(learning_curves(named, members)))
    drawn = [figure for figure in figures if figure]
    if not drawn:
        return None
    return Section("curves", "Learning curves", element("div", *drawn, class_="grid"))


def _title(run: Run, others: list[Run]) -> str:
    """With what tells it from others of the same task and number of learners."""
    differing = [setting.said(run) for setting in SETTINGS if setting.differs(others)]
    return ", ".join([run.task, wording.count(run.learners, "learner"), *filter(None, differing)])
