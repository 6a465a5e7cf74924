"""No file of the project reads pickles that may run code, starts a shell with somebody's text, runs code
that it finds, or makes temporary files whose names can be guessed.

Each rule is tried on a line that breaks it before it is used."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tree import files, name, run_tests, scripts

# They unpickle, or run, whatever they are given.
PICKLES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
RUNS_TEXT = {"eval", "exec", "compile", "__import__"}
RUNS_SHELL = {"os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput", "pty.spawn"}
GUESSED_NAMES = {"tempfile.mktemp", "os.tempnam", "os.tmpnam"}


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _keyword(call: ast.Call, wanted: str) -> object:
    for keyword in call.keywords:
        if keyword.arg == wanted:
            return keyword.value.value if isinstance(keyword.value, ast.Constant) else "computed"
    return None


def _broken_by_call(call: ast.Call) -> str | None:
    called = _dotted(call.func)
    if called == "torch.load" and _keyword(call, "weights_only") is not True:
        return "torch.load without weights_only=True"
    if called.endswith(".load") and _keyword(call, "allow_pickle") not in (None, False):
        return "allow_pickle"
    if called in RUNS_TEXT:
        return f"{called}() runs text"
    if called in RUNS_SHELL or _keyword(call, "shell") not in (None, False):
        return "a shell is started"
    return f"{called}() makes a name that can be guessed" if called in GUESSED_NAMES else None


def python_rules(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            modules = [node.module or ""]
        for module in modules:
            if module.split(".")[0] in PICKLES:
                yield f"line {node.lineno}: {module} is imported"
        if isinstance(node, ast.Call) and (broken := _broken_by_call(node)):
            yield f"line {node.lineno}: {broken}"
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("/tmp/"):
            yield f"line {node.lineno}: a name under /tmp"


CPP = re.compile(
    r"(?<![\w.>:])(?:std::|::)?(system|popen|tmpnam|tempnam|mktemp|dlopen|exec[lv]p?e?)\s*\(|\"/tmp/"
)
SHELL = re.compile(r"(?:^|[;&|(]\s*|\s)eval\s|(?:>|\s)/tmp/|sh -c \"|xargs.*sh -c '[^']*\{\}|mktemp -u")


def lines_with(pattern: re.Pattern[str], text: str, remark: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        if pattern.search(line) and not line.strip().startswith(remark):
            yield f"line {number}: {line.strip()}"


def _expect_rule(rule: object, bad: list[str], good: list[str]) -> None:
    for line in bad:
        assert list(rule(line)), f"the rule lets this pass: {line}"
    for line in good:
        assert not list(rule(line)), f"the rule refuses this: {line}"


def test_python() -> None:
    _expect_rule(
        python_rules,
        ["import pickle", "from joblib import load", "torch.load(p)", "torch.load(p, weights_only=False)",
         "torch.load(p, weights_only=x)", "numpy.load(p, allow_pickle=True)", "eval(x)", "os.system(x)",
         "subprocess.run(x, shell=True)", "tempfile.mktemp()", "open('/tmp/x')"],
        ["torch.load(p, weights_only=True)", "model.eval()", "subprocess.run([x], shell=False)",
         "tempfile.mkdtemp()", "numpy.load(p)", "re.compile(x)"],
    )
    ours = "tests/surface/sources_test.py"  # its samples
    paths = [path for path in [*files("*.py"), *scripts("python3")] if name(path) != ours]
    assert len(paths) > 50
    broken = [f"{name(path)}: {what}" for path in paths for what in python_rules(path.read_text())]
    assert not broken, "\n".join(broken)


def test_the_installed_package_reads_no_pickle_at_all() -> None:
    """Not even what torch.load takes: its files are safetensors, read in C++."""
    for path in files("python/scalecom/*.py"):
        assert "torch.load" not in path.read_text(), name(path)


def test_cpp() -> None:
    def rule(text: str) -> list[str]:
        return list(lines_with(CPP, text, "//"))

    _expect_rule(
        rule,
        ["std::system(x);", "FILE* f = popen(x, y);", "::execvp(a, b);", "mktemp(x)", "dlopen(x, 1)",
         'open("/tmp/x")'],
        ["mkdtemp(name)", "file_system(x)", "core.system(x)", "posix_spawnp(&c, x)", "// system(x)"],
    )
    paths = list(files("*.cc", "*.h", "*.cu", "*.cuh"))
    assert len(paths) > 200
    broken = [f"{name(path)}: {what}" for path in paths for what in rule(path.read_text())]
    assert not broken, "\n".join(broken)
    # A program that the user names is started, without a shell, and nothing from a run's folder is.
    starts = {name(path) for path in paths if "posix_spawn" in path.read_text()}
    assert starts == {"cli/reproduce.cc", "tests/comm/nccl/processes_test.cc"}, starts


def test_shell() -> None:
    def rule(text: str) -> list[str]:
        return list(lines_with(SHELL, text, "#"))

    _expect_rule(
        rule,
        ["eval $x", "echo a >/tmp/x", "cat /tmp/x", "bash -c \"$1\"", "xargs -I{} bash -c 'f {}'",
         "x=$(mktemp -u)"],
        ["mktemp -d", "xargs -I{} bash -c 'f \"$1\"' _ {}", "# eval $x", "evaluate x"],
    )
    paths = [*scripts("bash"), *scripts("sh"), *files("*.sh")]
    assert len(set(paths)) >= 8, paths
    broken = [f"{name(path)}: {what}" for path in set(paths) for what in rule(path.read_text())]
    assert not broken, "\n".join(sorted(broken))


def test_new_files_are_opened_so_that_no_link_is_followed() -> None:
    """Whatever the library writes goes through state::NewFile."""
    writer = next(files("scalecom/state/file.cc")).read_text()
    opened = re.findall(r"::open\(([^;]*)\)", writer)
    assert all("O_EXCL" in call for call in opened if "O_CREAT" in call) and "O_CREAT" in writer
    for path in files("scalecom/**/*.cc"):
        text = path.read_text()
        assert not re.search(r"std::ofstream|std::fopen|O_CREAT", text) or path.name == "file.cc", name(path)


if __name__ == "__main__":
    run_tests(globals())
