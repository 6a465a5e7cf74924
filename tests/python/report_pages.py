"""Pages of the report, for its tests to read."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from scalecom.report.page import page
from scalecom.report.sources import find


def shown(*paths: Path) -> str:
    """The page without plotly, whose text is not looked at."""
    return page(find(paths), "/* plotly */", "0")


def words(html: str) -> str:
    """What a reader sees of it, tables cell by cell."""
    body = html[html.index("<body>"):html.index('<script type="application/json"')]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", body.replace("<wbr>", "")))


def figures(html: str) -> list[dict[str, Any]]:
    return json.loads(re.search(r'id="figures">(.*?)</script>', html, re.DOTALL)[1])
