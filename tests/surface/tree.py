"""The project's own files, for tests that read them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
_NOT_OURS = {"build", ".venv", ".git", "runs", "__pycache__"}


def files(*patterns: str) -> Iterator[Path]:
    """In any folder that is the project's own."""
    for pattern in patterns:
        for path in sorted(ROOT.rglob(pattern)):
            if path.is_file() and not _NOT_OURS.intersection(path.relative_to(ROOT).parts):
                yield path


def scripts(program: str) -> Iterator[Path]:
    """Programs without an extension whose first line names this interpreter."""
    for path in files("*"):
        if not path.suffix and path.stat().st_size < 1 << 20:
            first = path.read_bytes().split(b"\n", 1)[0]
            if first.startswith(b"#!") and program.encode() in first:
                yield path


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def run_tests(module: dict[str, Callable[[], None]]) -> None:
    """Every function of a test's own, or those named on the command line."""
    tests = {n: f for n, f in module.items() if n.startswith("test_")}
    failures = 0
    for wanted in sys.argv[1:] or tests:
        try:
            tests[wanted]()
            print(f"{wanted}: well")
        except AssertionError as error:
            failures += 1
            print(f"{wanted}: {error}")
    sys.exit(failures > 0)
