"""Comparisons: what they write, that they can be stopped and taken up again, and their mistakes."""

import json
import os
import pty
import signal
import subprocess

from program import PROGRAM, environment, expect_ok, expect_refused, run, run_tests, start, wait_for

METHODS = "dense,scalecom,rate=20"


def compare(out, *more, learners="2,4", methods=METHODS, steps=30):
    return ("compare", "--task", "synthetic", "--learners", learners, "--methods", methods, "--steps",
            steps, "--timed-elements", 20000, "--out", out, *more)


def without_times(report):
    """What a comparison says, but for what depends on the machine's mood."""
    changing = ("seconds", "peak_bytes", "ns_per_element", "copy_ns_per_element",
                "method_bytes_per_element")
    for line in report["rows"] + report["methods"]:
        for key in changing:
            line.pop(key, None)
    return report


def report_of(out):
    return json.loads((out / "compare.json").read_text())


def test_rows_growth_and_files(folder):
    out = folder / "out"
    done = expect_ok(run(*compare(out, "--json", "-")))
    report = json.loads(done.stdout)
    assert done.stderr == "", done.stderr
    assert report == report_of(out)
    seen = [(row["method"], row["learners"], row["large_batch"]) for row in report["rows"]]
    assert seen == [(method, learners, learners == 16) for learners in (2, 4, 16)
                    for method in ("dense", "scalecom,rate=20")], seen
    for row in report["rows"]:
        for key in ("seed metric value bytes_per_rank_step max_rank_bytes effective_rate "
                    "ops_per_element ns_per_element copy_ns_per_element peak_bytes").split():
            assert row[key] is not None, (key, row)
        result = json.loads((out / "runs" / f"{row['method']}-{row['learners']}" /
                             "result.json").read_text())
        assert result["value"] == row["value"] and result["method"] == row["spec"]
        assert result["max_rank_bytes"] == row["max_rank_bytes"] > row["bytes_per_rank_step"]
    assert report["growth"] == {"dense": "constant", "scalecom,rate=20": "constant"}
    # Sizes follow from the layout: what was measured apart is what training moved.
    for method in report["methods"]:
        assert [world["ranks"] for world in method["traffic"]] == [2, 4, 8, 16, 32, 64]
        for world in method["traffic"]:
            for row in report["rows"]:
                if (row["method"], row["learners"]) == (method["method"], world["ranks"]):
                    assert world["max_rank_bytes"] == row["max_rank_bytes"]
    assert "| scalecom,rate=20 | constant |" in (out / "table.md").read_text()


def test_all_has_every_method_and_the_control(folder):
    done = expect_ok(run(*compare(folder / "out", "--large-batch", 1, "--json", folder / "x.json",
                                  learners="2", methods="all", steps=10)))
    report = json.loads((folder / "x.json").read_text())
    names = [row["method"] for row in report["rows"]]
    assert {"dense", "half", "scalecom", "scalecom,select=random"} <= set(names), names
    assert set(report["growth"]) == set(names)
    assert "Table 1, measured" in done.stdout and "n = 64" in done.stdout, done.stdout


def test_what_is_complete_is_not_done_again(folder):
    out = folder / "out"
    expect_ok(run(*compare(out, learners="2")))
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*.json")
              if path.name != "compare.json"}
    expect_ok(run(*compare(out, "--json", folder / "x.json", learners="4,2",
                           methods=METHODS + ",half")))
    for path, time in before.items():
        assert path.stat().st_mtime_ns == time, path
    rows = json.loads((folder / "x.json").read_text())["rows"]
    assert [row["learners"] for row in rows] == [4] * 3 + [2] * 3 + [16] * 3


def test_interrupted_and_resumed(folder):
    def command(out):
        return compare(out, "--large-batch", 1, steps=200)

    expect_ok(run(*command(folder / "straight")))
    for number, begun in ((signal.SIGINT, "runs/dense-2"), (signal.SIGTERM, "measured/dense.json")):
        out = folder / f"stopped{number}"
        process = start(*command(out))
        wait_for(lambda: (out / begun).exists(), begun)
        process.send_signal(number)
        _, errors = process.communicate()
        assert process.returncode == 130, (process.returncode, errors)
        assert len(errors.splitlines()) == 1 and "the same command goes on" in errors, errors
        assert str(out) in errors and not (out / "compare.json").exists()
        expect_ok(run(*command(out)))
        assert without_times(report_of(out)) == without_times(report_of(folder / "straight"))


def test_a_run_that_diverges_is_a_result(folder):
    command = compare(folder / "out", "--lr", 1e30, "--large-batch", 1, learners="2", methods="dense")
    for _ in range(2):
        done = expect_ok(run(*command))
        assert "diverged" in done.stdout, done.stdout
        row = report_of(folder / "out")["rows"][0]
        assert row["value"] is None and "not finite" in row["failure"], row


def test_mistakes(folder):
    out = folder / "out"

    def refused(*words, **changes):
        expect_refused(run(*compare(out, *changes.pop("more", ()), **changes)), *words)

    refused("nope", "dense", "scalecom", methods="nope")
    refused("rats", "rate", methods="scalecom,rats=3")
    refused("twice", "dense", methods="dense,dense")
    refused("--learners 0", "1 to", learners="2,0")
    refused("--learners", "two", learners="two")
    refused("--learners", "''", learners="2,,4")
    refused("--learners", "twice", learners="2,4,2")
    refused("--steps 0", steps=0)
    refused("--epochs", "--steps", "give one", more=("--epochs", 1))
    refused("--large-batch 0", more=("--large-batch", 0))
    refused("--warmup 1", more=("--warmup", 1))
    refused("--seed", more=("--seed", -1))
    refused("--batch 0", more=("--batch", 0))
    refused("--timed-elements", more=("--timed-elements", 0))
    refused("x.json", "--json", more=("--json", folder / "none" / "x.json"))
    assert not out.exists()
    expect_refused(run("compare", "--methods", "dense", "--out", out), "--task", "synthetic")
    expect_refused(run("compare", "--task", "synthetic", "--out", out), "--methods", "scalecom")
    expect_refused(run("compare", "--task", "synthetic", "--methods", "dense"), "--out")
    expect_refused(run("compare", "--task", "nope", "--methods", "dense", "--out", out), "cifar10")
    assert not out.exists()


def test_folders_of_something_else(folder):
    (folder / "file").write_text("x")
    expect_refused(run(*compare(folder / "file")), "is a file", "--out")
    expect_refused(run(*compare(folder / "file" / "below")), "cannot be written", "--out")
    expect_refused(run(*compare(folder)), "not empty", "--out")
    out = folder / "out"
    expect_ok(run(*compare(out, "--large-batch", 1, learners="2", methods="dense")))
    expect_refused(run(*compare(out, steps=31)), "other settings", "steps 30 instead of 31", "--out")
    expect_refused(run(*compare(out, "--seed", 5)), "seed 1 instead of 5")
    config = out / "runs" / "dense-2" / "config.json"
    config.write_text(config.read_text().replace('"momentum": 0.9', '"momentum": 0.5'))
    expect_refused(run(*compare(out)), "dense-2", "momentum 0.5 instead of 0.9")
    config.write_text("{")
    expect_refused(run(*compare(out)), "config.json", "damaged")


def test_progress_on_a_terminal(folder):
    ours, theirs = pty.openpty()
    command = [PROGRAM, *map(str, compare(folder / "out", steps=100000))]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs, env=environment())
    os.close(theirs)
    shown = b""
    try:
        while b"run 1 of 6: dense, 2 learners" not in shown:
            shown += os.read(ours, 1000)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert b"/1000  " in shown and b" left  " in shown, shown


if __name__ == "__main__":
    run_tests(globals())
