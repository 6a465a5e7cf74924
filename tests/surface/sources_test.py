"""No file of the project reads pickles that may run code, but for torch's checkpoints in named places, starts
a shell with somebody's text, runs code that it finds, or makes temporary files whose names can be guessed. What
a user runs makes no file where a link may lie.

Each rule is tried on a line that breaks it before it is used."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tree import ROOT, files, name, run_tests, scripts

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


def test_the_installed_package_reads_no_pickle_of_its_own() -> None:
    """Not even what torch.load takes: its files are safetensors, read in C++."""
    for path in files("python/scalecom/*.py"):
        assert "torch.load" not in path.read_text(), name(path)


# Reading a checkpoint of torch.distributed.checkpoint unpickles its .metadata, and what is no tensor in it.
# docs/reliability.md names the first two; tests read what they have written.
READS_CHECKPOINTS = {
    "python/scalecom/fsdp.py", "examples/fsdp/train.py", "tests/python/test_state.py",
    "tests/python/test_fsdp_state.py",
}
CHECKPOINTS = "torch.distributed.checkpoint"
READERS = {"load", "async_load", "load_state_dict", "FileSystemReader", "_load_state_dict_from_keys",
           "dcp_to_torch_save"}


def checkpoint_readers(text: str) -> Iterator[str]:
    """Whatever reads such a checkpoint, by any name that its module is imported under."""
    tree = ast.parse(text)
    modules = {CHECKPOINTS}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.asname for alias in node.names if alias.asname and alias.name.startswith(CHECKPOINTS)}
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                if whole == CHECKPOINTS:
                    modules.add(alias.asname or alias.name)
                if whole.startswith(CHECKPOINTS) and alias.name in READERS:
                    yield f"line {node.lineno}: {whole}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in READERS:
            module = _dotted(node.value)
            if node.attr == "FileSystemReader" or any(module == m or module.startswith(f"{m}.") for m in modules):
                yield f"line {node.lineno}: {_dotted(node)}"


def test_checkpoints_of_torch_are_read_in_named_places_alone() -> None:
    _expect_rule(
        checkpoint_readers,
        ["import torch.distributed.checkpoint as dcp\ndcp.load(x)",
         "import torch.distributed.checkpoint as other\nother.load(x)",
         "from torch.distributed import checkpoint\ncheckpoint.load(x)",
         "import torch.distributed.checkpoint\ntorch.distributed.checkpoint.load(x)",
         "from torch.distributed.checkpoint import load", "x.FileSystemReader(p)",
         "from torch.distributed.checkpoint.filesystem import FileSystemReader"],
        ["import torch.distributed.checkpoint as dcp\ndcp.save(x)", "import checkpoint\ncheckpoint.load(x)",
         "torch.load(p, weights_only=True)",
         "from torch.distributed.checkpoint.state_dict import get_state_dict"],
    )
    found = {
        name(path)
        for path in [*files("*.py"), *scripts("python3")]
        if list(checkpoint_readers(path.read_text()))
    }
    assert found == READS_CHECKPOINTS, found


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
    assert starts == {"cli/scores.cc", "tests/comm/nccl/processes_test.cc"}, starts


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


# What a user runs: the library, the program, the Python package, and the scripts of Python.
USED = {"scalecom", "train", "cli", "comparison", "python", "scripts"}
# The files of C++ that may make others; the second makes an empty one, to be locked.
WRITERS = {"scalecom/state/file.cc", "train/runs/run_lock.cc"}
CPP_WRITES = re.compile(r"std::o?fstream|\bf(?:re)?open\s*\(|\bcreat\s*\(|O_CREAT")


def _used(paths: Iterator[Path]) -> list[Path]:
    return [path for path in paths if path.relative_to(ROOT).parts[0] in USED]


def _mode(call: ast.Call, place: int) -> str:
    """What open() is to do, by its name or in its place."""
    if (named := _keyword(call, "mode")) is not None:
        return str(named)
    if len(call.args) <= place:
        return "r"
    mode = call.args[place]
    return mode.value if isinstance(mode, ast.Constant) and isinstance(mode.value, str) else "computed"


def _follows_links(call: ast.Call) -> bool:
    """Whether it writes to whatever lies at a name. "x" and O_EXCL take none that is there."""
    called = _dotted(call.func)
    if called == "os.open":
        flags = ast.unparse(call)
        return "O_CREAT" in flags and "O_EXCL" not in flags
    if called == "open":
        return not re.fullmatch("[rxbt]+", _mode(call, 1))
    # Of a path; the open() of other modules takes a path there.
    if called.endswith(".open"):
        return bool(re.fullmatch("[rbt]*[wa+][rwabt+]*", _mode(call, 0)))
    return called == "torch.save" or called.endswith((".write_text", ".write_bytes"))


def python_writes(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and _follows_links(node):
            yield f"line {node.lineno}: {ast.unparse(node)}"


def _opened_to_write(text: str) -> list[str]:
    """The flags of every open() of C++ that may make a file."""
    return re.findall(r"[^;{}()]*\bO_CREAT\b[^;()]*", text)


def test_new_files_are_opened_so_that_no_link_is_followed() -> None:
    """Whatever C++ writes goes through state::NewFile and, for the lines of a run, state::append."""

    def rule(text: str) -> list[str]:
        return list(lines_with(CPP_WRITES, text, "//"))

    _expect_rule(
        rule,
        ["std::ofstream file(path);", "std::ofstream(path) << x;", "std::fstream file(path);",
         'std::fopen(path, "w");', "freopen(p, m, stdout);", "creat(p, 0666);", "::open(p, O_CREAT, 0666);"],
        ["std::ifstream file(path);", "File::open(path)", "state::write_text(path, text);", "popen(x)",
         "::open(p, O_RDONLY)", "create(p)", "// std::ofstream"],
    )
    for writer in WRITERS:
        flags = _opened_to_write((ROOT / writer).read_text())
        assert flags, writer
        for one in flags:
            assert "O_EXCL" in one or "O_NOFOLLOW" in one, one
    paths = _used(files("*.cc", "*.h", "*.cu", "*.cuh"))
    assert {path.relative_to(ROOT).parts[0] for path in paths} == USED - {"scripts"}
    broken = [f"{name(path)}: {what}" for path in paths if name(path) not in WRITERS for what in rule(path.read_text())]
    assert not broken, "\n".join(broken)


def test_new_files_of_python_follow_no_link_either() -> None:
    _expect_rule(
        python_writes,
        ["open(p, 'w')", "open(p, mode='a')", "open(p, 'r+')", "open(p, m)", "with p.open('wb') as file: pass",
         "p.write_text(x)", "(p / 'a').write_bytes(x)", "torch.save(x, p)", "os.open(p, os.O_RDWR | os.O_CREAT)"],
        ["open(p)", "open(p, 'rb')", "open(p, 'x')", "p.open()", "p.open('r')", "p.open('xb')", "Image.open(p)",
         "p.read_text()", "os.fdopen(d, 'w')", "os.open(p, os.O_CREAT | os.O_EXCL)"],
    )
    paths = _used(files("*.py")) + _used(scripts("python3"))
    assert {path.relative_to(ROOT).parts[0] for path in paths} == {"python", "scripts"}
    broken = [f"{name(path)}: {what}" for path in paths for what in python_writes(path.read_text())]
    assert not broken, "\n".join(broken)


if __name__ == "__main__":
    run_tests(globals())
