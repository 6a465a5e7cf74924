"""Learners divided over the processes of torchrun: the same bits, the same errors, and no hanging.

Processes are started here as torchrun starts them, by its variables, and by torchrun itself where
that is installed: torchrun does not pass on with which status they end."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

from program import (MPIRUN, PROGRAM, TIMEOUT, checkpoints, environment, expect_ok, expect_refused,
                     expect_same_run, mpirun, run, run_tests, wait_for)

SCALECOM = "scalecom,rate=20,beta=0.1,warmup=10"
VENV = pathlib.Path(__file__).parents[2] / ".venv" / "bin" / "torchrun"
TORCHRUN = str(VENV) if VENV.exists() else shutil.which("torchrun")


def train(out, *more, method=SCALECOM):
    return ("train", "--task", "synthetic", "--method", method, "--out", out, *more)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def variables(rank, size, port):
    return {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": port}


def start_with(settings, *arguments):
    return subprocess.Popen([PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True,
                            env=environment() | {k: str(v) for k, v in settings.items()})


def finish(process):
    """What run() returns of it."""
    try:
        out, errors = process.communicate(timeout=TIMEOUT)
    finally:
        process.kill()
    return subprocess.CompletedProcess(process.args, process.returncode, out, errors)


def start_job(*commands):
    """The processes of a job, one for each command."""
    port = free_port()
    return [start_with(variables(rank, len(commands), port), *command)
            for rank, command in enumerate(commands)]


def job(*commands):
    return [finish(process) for process in start_job(*commands)]


def expect_job_refused(processes, *words, status=2):
    """All processes end with this status, and one of them says why."""
    assert [p.returncode for p in processes] == [status] * len(processes), processes
    lines = [line for p in processes for line in p.stderr.splitlines()]
    assert len(lines) == 1, lines
    for word in words:
        assert word in lines[0], (word, lines[0])


def test_any_division_gives_the_same_bits(folder):
    expect_ok(run(*train(folder / "alone")))
    for processes in (1, 2, 3, 4):
        out = folder / f"torchrun{processes}"
        for done in job(*[train(out)] * processes):
            expect_ok(done)
        expect_same_run(folder / "alone", out)


def test_torchrun_itself(folder):
    if TORCHRUN is None:
        print("torchrun is not installed: the variables alone are tested")
        return
    expect_ok(run(*train(folder / "alone")))
    for launch in (("--standalone",), ("--master-addr", "127.0.0.1", "--master-port", free_port())):
        out = folder / launch[0]
        command = [TORCHRUN, *map(str, launch), "--nproc-per-node", "2", "--no-python", PROGRAM]
        expect_ok(run(*train(out), program=command))
        expect_same_run(folder / "alone", out)


def test_the_network_between_its_processes_is_measured(folder):
    path = folder / "network.json"
    first, second = job(*[("plan", "--measure", "--json", path)] * 2)
    assert "bandwidth" in expect_ok(first).stdout and expect_ok(second).stdout == ""
    network = json.loads(path.read_text())["network"]
    assert network["ranks"] == 2 and network["bandwidth"] > 1e6, network
    expect_job_refused(job(*[("plan", "--measure", "--bandwidth", "1GB/s")] * 2), "--measure", "give one")


def test_mpirun_gives_the_same_bits(folder):
    if MPIRUN is None:
        print("mpirun is not installed: nothing to compare with")
        return
    done = mpirun((2, PROGRAM, *train(folder / "mpi")))
    if "this build has no MPI" in done.stderr:
        print("this build has no MPI: nothing to compare with")
        return
    expect_ok(done)
    for one in job(train(folder / "torchrun"), train(folder / "torchrun")):
        expect_ok(one)
    expect_same_run(folder / "mpi", folder / "torchrun")


def test_a_signal_to_one_process_stops_all_and_a_run_goes_on_with_another_division(folder):
    expect_ok(run(*train(folder / "straight", "--steps", 1000)))
    out = folder / "stopped"
    processes = start_job(*[train(out, "--steps", 1000, "--checkpoint-every", 20)] * 2)
    wait_for(lambda: checkpoints(out), "a checkpoint")
    processes[1].send_signal(signal.SIGTERM)
    ended = [finish(process) for process in processes]
    assert [p.returncode for p in ended] == [130, 130], ended
    assert f"scalecom train --resume {out}" in ended[0].stderr, ended[0].stderr
    for done in job(*[("train", "--resume", out)] * 3):
        expect_ok(done)
    expect_same_run(folder / "straight", out)


def test_different_options_are_the_same_error_everywhere(folder):
    out = folder / "run"
    expect_job_refused(job(train(out), train(out, method="dense")), "method", "process 1")
    expect_job_refused(job(train(out), train(out, "--learners", 5)), "learners is 4", "5")
    expect_job_refused(job(*[train(out, "--learners", 2)] * 3), "2 learners", "3 processes")
    assert not out.exists()


def test_variables_that_make_no_sense(folder):
    good = variables(0, 1, free_port())

    def refuse(settings, *words):
        expect_refused(finish(start_with(settings, *train(folder / "run"))), *words)

    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        refuse({k: v for k, v in good.items() if k != name}, name, "is not set")
        refuse(good | {name: ""}, name, "is not set")
    refuse(good | {"RANK": 1}, "RANK", "from 0 to 0")
    refuse(good | {"RANK": -1}, "RANK", "'-1'")
    refuse(good | {"RANK": "1x"}, "RANK", "'1x'")
    refuse(good | {"WORLD_SIZE": 0}, "WORLD_SIZE", "'0'")
    refuse(good | {"MASTER_PORT": 65536}, "MASTER_PORT", "'65536'")
    assert not (folder / "run").exists()


def test_a_master_that_cannot_be_reached(folder):
    port = free_port()
    began = time.monotonic()
    done = finish(start_with(variables(1, 2, port), *train(folder / "run", "--deadline", 2)))
    expect_refused(done, "[torchrun]", f"127.0.0.1:{port}", status=1)
    assert time.monotonic() - began < 60


def test_a_peer_that_never_arrives(folder):
    for command in (train(folder / "run"), ("plan", "--measure"), ("bench", "reduce", "--elements", 1000)):
        began = time.monotonic()
        done = finish(start_with(variables(0, 2, free_port()), *command, "--deadline", 2))
        expect_refused(done, "[torchrun]", "2 processes could not join", status=1)
        assert time.monotonic() - began < 60


def test_a_second_signal_ends_a_process_that_waits(folder):
    process = start_with(variables(0, 2, free_port()), *train(folder / "run", "--deadline", 60))
    wait_for(lambda: caught(process.pid, signal.SIGTERM), "its handler")
    process.send_signal(signal.SIGTERM)
    time.sleep(1.5)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert finish(process).returncode == -signal.SIGTERM


def caught(pid, number):
    """Whether a process has a handler for a signal."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    mask = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(mask, 16) >> (number - 1) & 1)


def test_a_peer_that_stops_or_dies_on_the_way(folder):
    # The deadline is that of meeting too, for which a busy machine takes seconds.
    for number in (signal.SIGSTOP, signal.SIGKILL):
        out = folder / f"run{number}"
        processes = start_job(*[train(out, "--steps", 1000000, "--deadline", 10)] * 2)
        try:
            wait_for(lambda: checkpoints(out), "a checkpoint")
            os.kill(processes[1].pid, number)
            began = time.monotonic()
            expect_refused(finish(processes[0]), "rank", status=1)
            assert time.monotonic() - began < 60
        finally:
            for process in processes:
                process.kill()
                process.communicate()


if __name__ == "__main__":
    run_tests(globals())
