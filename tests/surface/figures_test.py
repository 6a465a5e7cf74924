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
    """By the name that the table has: without a rate or rank, which are the default ones."""
    return {re.sub(r",(rate|rank)=[0-9]+", "", spec): figure for spec, figure in STORED.findall(text)}


def test_the_readers_see_what_differs() -> None:
    table = stated("| method | a | b | ns |\n| --- | ---: | ---: | ---: |\n| topk | n | 6.4 | 1.38 | 8.7x |\n")
    assert table == {"topk": "1.38"}, table
    assert stored('{"topk,rate=100", 4e6, 1.41e-9 * 4e6},') == {"topk": "1.41"}


def test_times_of_the_cpu_are_those_of_table_1() -> None:
    table = stated((ROOT / "docs/methods.md").read_text())
    kernels = stored((ROOT / "scalecom/plan/stored_kernels.cc").read_text())
    # Of scalecom itself there are more sizes, from docs/performance.md.
    kernels.pop("scalecom,select=chunk")
    assert len(kernels) == 9, kernels
    differ = {name: (figure, table.get(name)) for name, figure in kernels.items() if table.get(name) != figure}
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
