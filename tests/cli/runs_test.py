"""What runs leave behind, and that they can be stopped and taken up again at any time."""

import json
import os
import pty
import random
import shlex
import shutil
import signal
import subprocess
import time

from program import (PROGRAM, checkpoints, environment, expect_ok, expect_refused, expect_same_run,
                     result, run, run_tests, similarity, start, wait_for)

METHOD = "scalecom,rate=20,beta=0.1,warmup=10"


def train(folder, steps, *more):
    return ("train", "--task", "synthetic", "--learners", 4, "--method", METHOD, "--steps", steps,
            "--out", folder, *more)


def test_run_folder_and_json(folder):
    done = expect_ok(run(*train(folder / "a", 70, "--json", "-")))
    printed = json.loads(done.stdout)
    for key in ("task method learners seed metric value steps seconds bytes_per_rank_step "
                "effective_rate peak_bytes").split():
        assert key in printed, key
    assert printed == result(folder / "a")
    assert printed["method"] == METHOD and printed["steps"] == 70
    config = json.loads((folder / "a" / "config.json").read_text())
    assert config["method"] == METHOD and config["seed"] == 1
    lines = [json.loads(line) for line in (folder / "a" / "metrics.jsonl").open()]
    assert [line["step"] for line in lines] == [32, 64, 70]
    assert done.stderr == "", done.stderr

    done = expect_ok(run(*train(folder / "b", 70, "--json", folder / "b.json")))
    assert json.loads((folder / "b.json").read_text()) == result(folder / "b")
    assert "effective rate" in done.stdout
    expect_same_run(folder / "a", folder / "b")


def test_one_learner_sends_nothing(folder):
    done = expect_ok(run("train", "--task", "synthetic", "--learners", 1, "--method", METHOD, "--steps",
                         30, "--out", folder / "a", "--json", "-"))
    printed = json.loads(done.stdout)
    assert printed["bytes_per_rank_step"] == 0 and printed["effective_rate"] is None


def test_similarity(folder):
    expect_ok(run(*train(folder / "plain", 70)))
    expect_ok(run(*train(folder / "compared", 70, "--similarity-every", 5)))
    expect_same_run(folder / "plain", folder / "compared")
    assert not (folder / "plain" / "similarity.jsonl").exists()
    lines = similarity(folder / "compared")
    assert [line["step"] for line in lines] == list(range(5, 71, 5))
    for line in lines[:2]:  # all is sent in the warm-up, and nothing remembered
        assert all(value is None for key, value in line.items() if key not in ("step", "epoch")), line
    for line in lines[2:]:
        assert 0 < line["cosine_distance_min"] <= line["cosine_distance"] <= line["cosine_distance_max"] < 2
        assert 0 < line["hamming"] < 1 and 0 < line["contraction_exact"] < line["contraction"] < 1
        bound = line["hamming"] + (1 - line["hamming"]) * line["contraction_exact"]
        assert abs(line["lemma1_bound"] - bound) < 1e-12, line
        qq = line["qq"]
        assert len(qq["quantiles"]) == len(qq["first"]) == len(qq["second"])
        assert all(values == sorted(values) for values in qq.values()) and qq["first"] != qq["second"]


def test_interrupted_and_resumed(folder):
    expect_ok(run(*train(folder / "straight", 1500)))
    for number in (signal.SIGINT, signal.SIGTERM):
        out = folder / f"it's stopped by {number}"
        process = start(*train(out, 1500, "--checkpoint-every", 20))
        wait_for(lambda: checkpoints(out), "a checkpoint")
        process.send_signal(number)
        _, errors = process.communicate()
        assert process.returncode == 130, (process.returncode, errors)
        assert len(errors.splitlines()) == 1, errors
        command = errors.split("go on with: ")[1]
        assert shlex.split(command) == ["scalecom", "train", "--resume", str(out)], command
        assert not (out / "result.json").exists()
        done = expect_ok(run("train", "--resume", out, "--json", "-"))
        assert json.loads(done.stdout) == result(out)
        expect_same_run(folder / "straight", out)


def test_a_signal_that_is_passed_on_as_well_is_one(folder):
    """Who ends a job may signal a process and its launcher, which passes the signal on."""
    out = folder / "run"
    process = start(*train(out, 100000, "--checkpoint-every", 20))
    wait_for(lambda: checkpoints(out), "a checkpoint")
    for _ in range(20):
        process.send_signal(signal.SIGTERM)
        time.sleep(0.001)
    _, errors = process.communicate()
    assert process.returncode == 130 and "--resume" in errors, (process.returncode, errors)


def test_killed_at_any_time_and_resumed(folder):
    expect_ok(run(*train(folder / "straight", 1000)))
    chance = random.Random(1)
    out = folder / "killed"
    process = start(*train(out, 1000, "--checkpoint-every", 10))
    for _ in range(6):
        wait_for(lambda: (out / "config.json").exists(), "the run's folder")
        try:
            process.communicate(timeout=chance.uniform(0.1, 0.5))
            break
        except Exception:
            process.kill()
            process.communicate()
        process = start("train", "--resume", out, "--checkpoint-every", 10)
    process.communicate()
    expect_ok(run("train", "--resume", out))
    expect_same_run(folder / "straight", out)
    assert len(checkpoints(out)) == 2


def test_resuming_a_complete_run_changes_nothing(folder):
    expect_ok(run(*train(folder / "a", 40)))
    before = (folder / "a" / "result.json").read_text()
    done = expect_ok(run("train", "--resume", folder / "a", "--json", "-"))
    assert json.loads(done.stdout) == json.loads(before)
    assert (folder / "a" / "result.json").read_text() == before


def test_damaged_checkpoint_is_named(folder):
    out = folder / "a"
    expect_ok(run(*train(out, 40)))
    (out / "result.json").unlink()
    memory = next((checkpoints(out)[-1] / "memories").glob("rank-*"))
    memory.write_bytes(memory.read_bytes()[:-4])
    expect_refused(run("train", "--resume", out), memory.name)
    expect_refused(run("inspect", out), memory.name)


def test_inspect(folder):
    out = folder / "a"
    expect_ok(run(*train(out, 70)))
    seen = json.loads(expect_ok(run("inspect", out, "--json", "-")).stdout)
    assert seen["complete"] and seen["config"]["method"] == METHOD
    assert seen["checkpoints"] == [64, 70] and seen["metrics"]["step"] == 70
    memory = seen["memory"]
    assert memory["ranks"] == 4 and memory["step"] == 70 and len(memory["cosine"]) == 4
    assert all(abs(memory["cosine"][r][r] - 1) < 1e-9 for r in range(4))
    assert 0 < memory["mean_cosine_distance"] < 2
    last = checkpoints(out)[-1]
    alone = json.loads(expect_ok(run("inspect", last / "memories", "--json", "-")).stdout)
    assert alone["cosine"] == memory["cosine"]
    tensors = json.loads(expect_ok(run("inspect", last / "model.safetensors", "--json", "-")).stdout)
    assert len(tensors["tensors"]) == 12
    for path in (out, last, last / "model.safetensors"):
        assert "norm" in expect_ok(run("inspect", path)).stdout


def test_progress_on_a_terminal(folder):
    ours, theirs = pty.openpty()
    command = [PROGRAM, *map(str, train(folder / "a", 100000))]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs, env=environment())
    os.close(theirs)
    shown = b""
    try:
        while b" left" not in shown:
            shown += os.read(ours, 1000)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert b"/100000" in shown


def test_damaged_files_of_a_run_are_one_clear_line(folder):
    expect_ok(run(*train(folder / "a", 70)))
    for text in ("{}", "[]", '{"metric": 3}'):
        (folder / "a" / "result.json").write_text(text)
        expect_refused(run("train", "--resume", folder / "a"), "result.json", "damaged")
        expect_refused(run("inspect", folder / "a"), "result.json", "damaged")
    (folder / "a" / "result.json").unlink()
    lines = (folder / "a" / "metrics.jsonl").read_text().splitlines()
    (folder / "a" / "metrics.jsonl").write_text("\n".join([*lines[:-1], '{"step": 70}']) + "\n")
    expect_refused(run("train", "--resume", folder / "a"), "metrics.jsonl", "step 70", status=1)


def test_parts_of_two_checkpoints_are_not_taken_for_one(folder):
    expect_ok(run(*train(folder / "a", 70)))
    (folder / "a" / "result.json").unlink()
    older, newer = checkpoints(folder / "a")
    kept = (newer / "model.safetensors").read_bytes()
    (newer / "model.safetensors").write_bytes((older / "model.safetensors").read_bytes())
    expect_refused(run("train", "--resume", folder / "a"), str(newer), "not of one save", "model", "step 64")
    (newer / "model.safetensors").write_bytes(kept)
    shutil.rmtree(newer / "memories")
    shutil.copytree(older / "memories", newer / "memories")
    expect_refused(run("train", "--resume", folder / "a"), str(newer), "not of one save", "memories")
    # As the message says.
    shutil.rmtree(newer)
    expect_ok(run("train", "--resume", folder / "a"))
    expect_ok(run(*train(folder / "straight", 70)))
    expect_same_run(folder / "a", folder / "straight")


def test_a_disk_that_is_full_under_standard_output(folder):
    for command in (("reproduce", "--list"), ("reproduce", "--list", "--json", "-"), train(folder / "a", 5)):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, *map(str, command)], stdout=full, stderr=subprocess.PIPE, text=True,
                                  env=environment())
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, (command, done)


def test_a_checkpoint_that_cannot_be_seen_is_not_lost(folder):
    expect_ok(run(*train(folder / "a", 70)))
    (folder / "a" / "result.json").unlink()
    before = (folder / "a" / "metrics.jsonl").read_bytes()
    (folder / "a" / "checkpoints").rename(folder / "elsewhere")
    (folder / "a" / "checkpoints").symlink_to("checkpoints")  # round and round
    expect_refused(run("train", "--resume", folder / "a"), "checkpoints", status=1)
    assert (folder / "a" / "metrics.jsonl").read_bytes() == before


if __name__ == "__main__":
    run_tests(globals())
