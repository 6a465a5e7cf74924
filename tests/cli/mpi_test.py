"""Learners divided over the processes of mpirun: the same bits, the same errors, and no hanging."""

import json
import os
import signal
import time

from program import (MPIRUN, PROGRAM, checkpoints, expect_job_refused, expect_ok, expect_same_run,
                     mpirun, result, run, run_tests, similarity, start, wait_for, write_cifar10)

SCALECOM = "scalecom,rate=20,beta=0.1,warmup=10"


def train(out, *more, method=SCALECOM):
    return (PROGRAM, "train", "--task", "synthetic", "--method", method, "--out", out, *more)


def test_any_division_gives_the_same_bits(folder):
    expect_ok(run(*train(folder / "alone")[1:]))
    for processes in (1, 2, 3, 4):
        done = expect_ok(mpirun((processes, *train(folder / f"mpi{processes}", "--json", "-"))))
        assert json.loads(done.stdout)["learners"] == 4
        expect_same_run(folder / "alone", folder / f"mpi{processes}")


def test_any_division_sees_the_same_similarity(folder):
    for more in (("--learners", 5), ("--learners", 6, "--groups", 2)):
        name = f"{len(more)}"
        more = (*more, "--steps", 30, "--similarity-every", 4)
        expect_ok(run(*train(folder / f"alone{name}", *more)[1:]))
        for processes in (2, 3):
            out = folder / f"mpi{name}-{processes}"
            expect_ok(mpirun((processes, *train(out, *more))))
            expect_same_run(folder / f"alone{name}", out)
            assert similarity(out) == similarity(folder / f"alone{name}")
        assert len(similarity(folder / f"alone{name}")) == 7


def test_so_do_methods_whose_ranks_choose_for_themselves(folder):
    for method in ("topk,rate=20", "gtopk,rate=20", "dgc,rate=50,warmup=8,clip=1"):
        more = ("--learners", 5, "--steps", 20)
        name = method.split(",", maxsplit=1)[0]
        expect_ok(run(*train(folder / name, *more, method=method)[1:]))
        expect_ok(mpirun((3, *train(folder / f"{name}-mpi", *more, method=method))))
        expect_same_run(folder / name, folder / f"{name}-mpi")


def test_every_process_has_the_figures_of_learner_0(folder):
    """Batch norm's running figures are learner 0's, and all processes take part in the evaluation."""
    write_cifar10(folder / "data")
    command = (PROGRAM, "train", "--task", "cifar10", "--data", folder / "data", "--learners", 2,
               "--batch", 2, "--steps", 2, "--method", "dense", "--out")
    expect_ok(run(*command[1:], folder / "alone"))
    expect_ok(mpirun((2, *command, folder / "mpi")))
    expect_same_run(folder / "alone", folder / "mpi")


def test_a_run_may_be_resumed_with_another_division(folder):
    expect_ok(run(*train(folder / "straight", "--steps", 5000)[1:]))
    out = folder / "stopped"
    process = start(*train(out, "--steps", 5000, "--checkpoint-every", 20),
                    program=(MPIRUN, "--oversubscribe", "-n", "2"))
    wait_for(lambda: checkpoints(out), "a checkpoint")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode != 0 and not (out / "result.json").exists()
    assert f"scalecom train --resume {out}" in errors, errors
    expect_ok(mpirun((3, PROGRAM, "train", "--resume", out)))
    expect_same_run(folder / "straight", out)


def test_a_run_may_be_resumed_with_another_number_of_learners(folder):
    """With as many learners as processes."""
    out = folder / "run"
    expect_ok(run(*train(folder / "straight", "--steps", 2000)[1:]))
    for processes, command in ((4, train(out, "--steps", 2000)), (3, (PROGRAM, "train", "--resume", out)),
                               (8, (PROGRAM, "train", "--resume", out))):
        process = start(*command, "--learners", processes, "--checkpoint-every", 10,
                        program=(MPIRUN, "--oversubscribe", "-n", str(processes)))
        if processes != 8:
            aim = 100 if processes == 4 else 300
            wait_for(lambda: any(int(c.name[5:]) >= aim for c in checkpoints(out)), "a checkpoint")
            process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
        assert (process.returncode == 0) == (processes == 8), errors
    ended = result(out)
    assert ended["learners"] == 8 and ended["steps"] == 2000
    assert ended["value"] > result(folder / "straight")["value"] - 2, ended
    expect_job_refused(mpirun((2, PROGRAM, "train", "--resume", out, "--learners", 0)), "--learners 0")


def test_a_signal_to_one_process_stops_all_after_the_same_step(folder):
    out = folder / "stopped"
    script = f'[ "$OMPI_COMM_WORLD_RANK" = 1 ] && echo $$ > {folder}/pid; exec "$@"'
    process = start(*train(out, "--steps", 100000, "--checkpoint-every", 20),
                    program=(MPIRUN, "--oversubscribe", "-n", "2", "bash", "-c", script, "bash"))
    wait_for(lambda: checkpoints(out), "a checkpoint")
    pid = int((folder / "pid").read_text())
    os.kill(pid, signal.SIGTERM)
    _, errors = process.communicate()
    assert process.returncode == 130, (process.returncode, errors)
    assert "--resume" in errors, errors


def test_different_options_are_the_same_error_everywhere(folder):
    out = folder / "run"

    def differ(one, other, *words):
        expect_job_refused(mpirun((1, *one), (1, *other)), "process 0", "process 1", *words)

    differ(train(out), train(out, method="dense"), "method", "dense")
    differ(train(out, "--learners", 4), train(out, "--learners", 5), "learners is 4", "5")
    differ(train(out, "--seed", 1), train(out, "--seed", 2), "seed")
    differ(train(out), train(folder / "other"), "out")
    differ(train(out), train(out, "--similarity-every", 2), "similarity_every is 0", "2")
    assert not out.exists()


def test_one_process_mistaken_is_an_error_for_all(folder):
    good = train(folder / "run")
    expect_job_refused(mpirun((1, *good), (1, *train(folder / "run", method="nope"))), "nope")
    expect_job_refused(mpirun((1, *good), (1, *good, "--bogus")), "--bogus")
    expect_job_refused(mpirun((3, *train(folder / "run", "--learners", 2))), "2 learners", "3 processes")
    assert not (folder / "run").exists()


def test_a_peer_that_never_arrives(folder):
    for command in (train(folder / "run"), (PROGRAM, "plan", "--measure"),
                    (PROGRAM, "bench", "reduce", "--elements", 1000)):
        began = time.monotonic()
        done = mpirun((1, *command, "--deadline", 1), (1, "sleep", 100))
        expect_job_refused(done, f"scalecom {command[1]}: ", "deadline of 1 s", status=1)
        assert time.monotonic() - began < 10


def test_a_peer_that_is_late_but_in_time(folder):
    late = ("bash", "-c", 'sleep 1; exec "$@"', "bash")
    expect_ok(mpirun((1, *train(folder / "run")), (1, *late, *train(folder / "run"))))


def test_a_peer_that_stops_on_the_way(folder):
    out = folder / "run"
    script = f'[ "$OMPI_COMM_WORLD_RANK" = 1 ] && echo $$ > {folder}/pid; exec "$@"'
    process = start(*train(out, "--steps", 1000000, "--checkpoint-every", 100, "--deadline", 10),
                    program=(MPIRUN, "--oversubscribe", "-n", "2", "bash", "-c", script, "bash"))
    wait_for(lambda: checkpoints(out), "a checkpoint")
    os.kill(int((folder / "pid").read_text()), signal.SIGSTOP)
    began = time.monotonic()
    _, errors = process.communicate()
    assert process.returncode == 1, (process.returncode, errors)
    assert any(line.startswith("scalecom train: [") for line in errors.splitlines()), errors
    assert time.monotonic() - began < 60


if __name__ == "__main__":
    if MPIRUN is None:
        print("mpirun is not installed: nothing to test")
    else:
        run_tests(globals())
