"""What stands in several places is the same there: figures that the program carries with it and the
documentation states, and the version."""

from __future__ import annotations

import re

from tree import ROOT, run_tests

# `{"topk,rate=100", 4e6, 1.38e-9 * 4e6},` of the machine whose figures are ns an element.
STORED = re.compile(r'\{"([^"]+)", 4e6, ([0-9.]+)e-9 \* 4e6\}')
# `| topk | n | 6.4 | 1.38 | ...`: method, traffic, operations, ns an element.
ROW = re.compile(r"^\| ([a-z_]+[^|]*?) \| (?:constant|n|log n) \| [0-9.]+ \| ([0-9.]+) \|", re.M)


def stated(text: str) -> dict[str, str]:
    return dict(ROW.findall(text))


def stored(text: str) -> dict[str, str]:
    return dict(STORED.findall(text))


def row_of(spec: str, table: dict[str, str]) -> str | None:
    """The row of a method whose other options, which the table leaves out, are the default ones."""
    options = set(spec.split(","))
    return max((row for row in table if set(row.split(",")) <= options), key=len, default=None)


def test_the_readers_see_what_differs() -> None:
    table = stated("| method | a | b | ns |\n| --- | ---: | ---: | ---: |\n| topk | n | 6.4 | 1.38 | 8.7x |\n")
    assert table == {"topk": "1.38"}, table
    assert stored('{"topk,rate=100", 4e6, 1.41e-9 * 4e6},') == {"topk,rate=100": "1.41"}
    two = {"topk": "", "topk,a=1": ""}
    assert [row_of(spec, two) for spec in ("topk,b=2,a=1", "topk,b=2", "dgc")] == ["topk,a=1", "topk", None]


def test_times_of_the_cpu_are_those_of_table_1() -> None:
    table = stated((ROOT / "docs/methods.md").read_text())
    kernels = stored((ROOT / "scalecom/plan/stored_kernels.cc").read_text())
    # Of scalecom itself there are more sizes, from docs/performance.md.
    kernels.pop("scalecom,rate=100,select=chunk")
    rows = {row_of(spec, table): figure for spec, figure in kernels.items()}
    assert len(rows) == len(kernels) == 9, rows
    differ = {row: (figure, table.get(row)) for row, figure in rows.items() if table.get(row) != figure}
    assert not differ, f"stored, then stated in docs/methods.md: {differ}"


def test_the_version_is_one() -> None:
    places = {
        "CMakeLists.txt": r"^project\(scalecom VERSION ([0-9.]+)",
        "pyproject.toml": r'^version = "([^"]+)"',
        "python/scalecom/__init__.py": r'^__version__ = "([^"]+)"',
    }
    versions = {path: re.findall(line, (ROOT / path).read_text(), re.M) for path, line in places.items()}
    assert len({tuple(found) for found in versions.values()}) == 1 and all(versions.values()), versions


if __name__ == "__main__":
    run_tests(globals())
