"""One HTML file that holds all it needs: styles, scripts, data."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib import resources
from typing import Any

from scalecom.report import wording
from scalecom.report.markup import Markup, element, join
from scalecom.report.sections.curves import curves
from scalecom.report.sections.overview import overview
from scalecom.report.sections.plans import plans
from scalecom.report.sections.reproduction import reproduction
from scalecom.report.sections.results import results
from scalecom.report.sections.section import Canvas, Section
from scalecom.report.sections.similarity import similarity
from scalecom.report.sections.sources import sources
from scalecom.report.sections.table1 import table1
from scalecom.report.sections.traffic import traffic
from scalecom.report.sources import Findings

_SECTIONS = (overview, results, reproduction, curves, table1, traffic, similarity, plans, sources)


def page(findings: Findings, plotly: str, version: str) -> str:
    """`plotly` is the text of plotly.js."""
    canvas = Canvas()
    sections = [section for section in (make(findings, canvas) for make in _SECTIONS) if section]
    script = _asset("page.js")
    parts = {
        "contents": join([_contents(findings)]),
        "navigation": _navigation(sections),
        "sections": join([section.markup() for section in sections], "\n"),
        "figures": _json([figure.as_json() for figure in canvas.figures]),
        "version": join([version]),
        "css": _asset("page.css"),
        "plotly": plotly,
        "script": script,
        "script_hashes": f"{_hash(plotly)} {_hash(script)}",
    }
    # In one pass, so that nothing that is put in is looked at again.
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], _asset("page.html"))


def _asset(name: str) -> str:
    return (resources.files("scalecom.report") / "assets" / name).read_text(encoding="utf-8")


def _json(value: Any) -> str:
    """That ends no script element, whatever it holds."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(script: str) -> str:
    """By which the page's policy knows the scripts that may run: these two, and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _contents(findings: Findings) -> str:
    runs = sum(len(found) for _, found in findings.origins())
    counted = ((runs, "run"), (len(findings.comparisons), "comparison"),
               (len(findings.reproductions), "reproduction"), (len(findings.plans), "plan"))
    return ", ".join(wording.count(count, what) for count, what in counted if count)


def _navigation(sections: list[Section]) -> Markup:
    if len(sections) < 2:
        return Markup()
    links = [element("a", section.title, href=f"#{section.name}") for section in sections]
    return element("nav", *links, aria_label="Sections")
