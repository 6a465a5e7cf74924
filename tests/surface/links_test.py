"""Links between the documents lead somewhere: to a file or folder of the project, and to a heading that is there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from tree import ROOT, files, name, run_tests

LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```|^    .*?$|`[^`\n]*`", re.M | re.S)


def anchors(text: str) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken(text: str, folder: Path) -> Iterator[str]:
    for target in LINK.findall(CODE.sub("", text)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        place = Path(os.path.normpath(folder / path)) if path else None
        if place is not None and not place.exists():
            yield target
        elif anchor and anchor not in anchors(text if place is None else place.read_text()):
            yield target


def test_the_reader_sees_what_is_broken() -> None:
    text = "# One two\n[a](README.md) [b](#one-two) [c](gone.md) [d](#three) [e](https://x.org/y) `[f](code)`\n"
    assert list(broken(text, ROOT)) == ["gone.md", "#three"], list(broken(text, ROOT))


def test_links_lead_somewhere() -> None:
    documents = list(files("*.md"))
    assert len(documents) > 10, documents
    wrong = {name(path): found for path in documents if (found := list(broken(path.read_text(), path.parent)))}
    assert not wrong, wrong


if __name__ == "__main__":
    run_tests(globals())
