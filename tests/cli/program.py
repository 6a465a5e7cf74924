"""Runs the scalecom program and says what it did. A test is a function test_...() of a script that
calls run_tests(); the program's path is the script's first argument."""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

# Last, as folders of tests have the names of modules.
sys.path.append(str(pathlib.Path(__file__).parents[1]))
from launched import environment  # noqa: E402: its folder is no package

PROGRAM = sys.argv[1]
MPIRUN = shutil.which("mpirun")
# Against hanging only.
TIMEOUT = 120


def run(*arguments, program=(PROGRAM,), timeout=TIMEOUT):
    command = [*program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=timeout,
                          env=environment())


def mpirun(*parts):
    """mpirun of several programs, each (number of processes, command...)."""
    command = [MPIRUN, "--oversubscribe"]
    for i, (processes, *part) in enumerate(parts):
        command += [":"] * (i > 0) + ["-n", str(processes), *map(str, part)]
    return run(program=command)


def start(*arguments, program=(PROGRAM,)):
    command = [*program, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=environment())


def expect_ok(done):
    assert done.returncode == 0, (done.args, done.returncode, done.stderr)
    return done


def expect_refused(done, *words, status=2):
    """One line on standard error, with these words in it."""
    assert done.returncode == status, (done.args, done.returncode, done.stderr)
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("scalecom"), lines
    for word in words:
        assert word in lines[0], (word, lines[0])


def expect_job_refused(done, *words, status=2):
    """The same under mpirun, which adds lines of its own: ours comes once."""
    assert done.returncode == status, (done.args, done.returncode, done.stderr)
    lines = [line for line in done.stderr.splitlines() if line.startswith("scalecom")]
    assert len(lines) == 1, done.stderr
    for word in words:
        assert word in lines[0], (word, lines[0])


def wait_for(condition, what):
    until = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < until, f"waited in vain for {what}"
        time.sleep(0.002)


def result(run_folder):
    return json.loads((run_folder / "result.json").read_text())


def similarity(run_folder):
    return [json.loads(line) for line in (run_folder / "similarity.jsonl").open()]


def checkpoints(run_folder):
    return sorted((run_folder / "checkpoints").glob("step-*"))


def expect_same_run(one, other):
    """Equal weights, metrics and traffic a step; times differ, and so do the few bytes by which the
    processes agree whenever they start."""
    changing = ("seconds", "peak_bytes", "bytes_per_rank", "whole_run_rate", "device_peak_bytes")

    def timeless(line):
        return {k: v for k, v in line.items() if k not in changing}

    def metrics(folder):
        return [timeless(json.loads(line)) for line in (folder / "metrics.jsonl").open()]

    assert timeless(result(one)) == timeless(result(other)), (result(one), result(other))
    assert metrics(one) == metrics(other)


def write_cifar10(folder, **changes):
    """Three pictures a file; some of the files as `changes` has them."""
    folder.mkdir(parents=True)
    for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
        content = changes.get(name, b"".join(bytes([i]) + bytes(range(256)) * 12 for i in range(3)))
        if content is not None:
            (folder / f"{name}.bin").write_bytes(content)


def run_tests(tests):
    failed = 0
    for name, test in list(tests.items()):
        if not name.startswith("test_"):
            continue
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="scalecom_cli_") as folder:
            try:
                test(pathlib.Path(folder))
                verdict = "ok"
            except Exception:
                traceback.print_exc()
                verdict = "FAILED"
                failed += 1
        print(f"{verdict:6} {name} ({time.monotonic() - began:.1f} s)", flush=True)
    sys.exit(1 if failed else 0)
