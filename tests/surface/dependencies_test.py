"""Everything that the project takes from others is pinned, and stands in docs/dependencies.md with a
reason."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

from tree import ROOT, files, name, run_tests, scripts

PINNED = re.compile(r"([A-Za-z0-9._-]+)==([0-9][0-9A-Za-z.]*)")
# What each call of find_package and find_library stands for. Threads are the C library's.
CMAKE = {
    "CLI11": "CLI11", "CUDAToolkit": "CUDA toolkit", "GTest": "GoogleTest", "MPI": "Open MPI",
    "Python": "Python", "Python3": "Python", "ZLIB": "zlib", "fmt": "fmt",
    "nlohmann_json": "nlohmann-json", "NCCL_LIBRARY": "NCCL", "SENTENCEPIECE_LIBRARY": "sentencepiece",
    "SENTENCEPIECE_TRAIN_LIBRARY": "sentencepiece", "SCALECOM_LIBSTDCXX": "GCC",
}
OWN_PACKAGES = {"scalecom", "Threads"}
# Where a package's modules have another name than it.
MODULES = {"PIL": "pillow"}


def rows() -> list[list[str]]:
    """Of the table: dependency, version, Debian package, used by, why."""
    page = (ROOT / "docs" / "dependencies.md").read_text()
    table = [line.strip("|\n ") for line in page.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.split("|")] for line in table[2:]]


def rows_of(what: str) -> list[list[str]]:
    """Those that name it, as a dependency or as the wheel that it comes from."""
    found = []
    for row in rows():
        named = row[0].split(", ") + re.findall(r"`([^`]+)`", row[2])
        if what.lower() in map(str.lower, named):
            found.append(row)
    return found


def unpinned(lines: list[str]) -> list[str]:
    """Lines of a list of requirements that leave the version open."""
    wanted = [line.split("#")[0].strip() for line in lines]
    return [line for line in wanted if line and not PINNED.fullmatch(line)]


def pins(paths: list[Path]) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in paths:
        for package, version in PINNED.findall(path.read_text()):
            assert found.setdefault(package, version) == version, f"{package} is pinned in two ways"
    return found


def requirement_files() -> list[Path]:
    return list(files("requirements*.txt"))


def test_python_packages_are_pinned() -> None:
    assert unpinned(["torch==2.13.0", "# a remark", "numpy>=2", "pytest"]) == ["numpy>=2", "pytest"]
    assert len(requirement_files()) >= 3
    for path in requirement_files():
        wrong = unpinned(path.read_text().splitlines())
        assert not wrong, f"{name(path)}: {wrong}"


def test_python_packages_are_listed_with_their_versions() -> None:
    for package, version in pins(requirement_files()).items():
        versions = [row[1] for row in rows_of(package)]
        listed = any(version in one for one in versions)
        assert listed, f"docs/dependencies.md has {versions} for {package} {version}"


def test_the_python_package_asks_for_what_is_tested() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    requires, dependencies = (
        re.findall(r'"([^"]+)"', line)
        for line in re.findall(r"^(?:requires|dependencies) = \[(.*)\]$", project, re.MULTILINE)
    )
    tested = pins(requirement_files())
    assert requires and dependencies
    for line in requires:
        match = PINNED.fullmatch(line)
        assert match and tested.get(match[1]) == match[2], f"pyproject.toml: {line}"
    for line in dependencies:
        match = re.fullmatch(r"([a-z]+)>=([0-9.]+),<([0-9.]+)", line)
        assert match, f"pyproject.toml: {line} has no end"
        low, version, end = ([int(n) for n in v.split(".")] for v in (match[2], tested[match[1]], match[3]))
        assert low <= version < end, f"pyproject.toml: {line} is not what is tested"


def test_debian_packages_are_listed() -> None:
    listed = {package for row in rows() for package in row[2].split(", ")}
    wanted = re.findall(r"^(?:dependencies=\"\\\n)?[a-z]+\|([a-z0-9+.-]+)\|",
                        (ROOT / "scripts/lib/dependencies.sh").read_text(), re.MULTILINE)
    assert len(wanted) >= 15, wanted
    assert set(wanted) <= listed, f"docs/dependencies.md lacks {sorted(set(wanted) - listed)}"


def test_what_cmake_looks_for_is_listed() -> None:
    found: set[str] = set()
    for path in files("CMakeLists.txt", "*.cmake"):
        text = re.sub(r"#.*", "", path.read_text())
        assert not re.search(r"FetchContent|ExternalProject|file\(DOWNLOAD", text), f"{name(path)} downloads"
        found |= set(re.findall(r"find_(?:package|library)\((\w+)", text))
    assert len(found) >= 10, found
    unknown = found - CMAKE.keys() - OWN_PACKAGES
    assert not unknown, f"no row of docs/dependencies.md is known for {sorted(unknown)}"
    for package in found & CMAKE.keys():
        assert rows_of(CMAKE[package]), f"docs/dependencies.md does not have {CMAKE[package]}"


def test_what_python_imports_is_listed() -> None:
    own = {part for path in files("*.py") for part in (path.stem, path.parent.name)}
    for path in [*files("*.py"), *scripts("python3")]:
        for node in ast.walk(ast.parse(path.read_text())):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                modules = [node.module or ""]
            for module in {m.split(".")[0] for m in modules} - own - sys.stdlib_module_names:
                listed = rows_of(MODULES.get(module, module))
                assert listed, f"{name(path)} imports {module}, which docs/dependencies.md does not have"


def test_every_dependency_has_a_version_and_a_reason() -> None:
    for row in rows():
        assert len(row) == 5 and all(row), f"docs/dependencies.md: {row}"


if __name__ == "__main__":
    run_tests(globals())
