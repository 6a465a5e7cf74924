"""Recipes, and what `scalecom reproduce` makes of them."""

import json
import pathlib
import signal
import stat

from program import (checkpoints, expect_ok, expect_refused, expect_same_run, result, run, run_tests,
                     start, wait_for)
from task_data import write_fsdd, write_text_pairs


def write_recipe(folder, name, **keys):
    recipe = {"version": 1, "about": "for a test", "task": "synthetic", "learners": 2,
              "method": "dense", "epochs": 1, "seeds": [1, 2]} | keys
    path = folder / f"{name}.json"
    path.write_text(json.dumps({key: value for key, value in recipe.items() if value is not None}))
    return path


def reproduce(folder, *rows, **more):
    return run("reproduce", *rows, "--out", folder / "out", *more.pop("options", ()), **more)


def table(folder):
    return {row["recipe"]: row for row in json.loads((folder / "out" / "table.json").read_text())["rows"]}


def test_there_is_a_list(folder):
    listed = expect_ok(run("reproduce", "--list")).stdout.splitlines()
    names = [line.split()[0] for line in listed]
    assert names == sorted(names) and len(names) > 40
    for name in ("cifar10-resnet34-32x", "cifar10-resnet18-32x-random", "multi30k-64x-rate115", "fsdd-4x"):
        assert name in names, name
    table = json.loads(expect_ok(run("reproduce", "--list", "--json", "-")).stdout)["recipes"]
    assert [row["name"] for row in table] == names
    assert all(row["version"] >= 1 and row["about"] for row in table)


def test_a_recipe_is_a_run_and_options_overrule_it(folder):
    recipe = write_recipe(folder, "mine", learners=3, method="scalecom,rate=20", batch=8,
                          learning_rate=0.03, learning_rate_warmup=0.3, momentum="masked", seeds=[7])
    expect_ok(run("train", "--recipe", recipe, "--steps", 5, "--out", folder / "a"))
    config = json.loads((folder / "a" / "config.json").read_text())
    assert (config["learners"], config["batch"], config["seed"], config["steps"]) == (3, 8, 7, 5)
    assert config["learning_rate"] == 0.03 and config["learning_rate_warmup"] == 0.3
    # Five steps are no run of the recipe.
    assert config["masked_momentum"] is True and "recipe" not in config
    expect_ok(run("train", "--recipe", recipe, "--seed", 8, "--learners", 3, "--out", folder / "whole"))
    assert json.loads((folder / "whole" / "config.json").read_text())["recipe"] == "mine@1"
    expect_ok(run("train", "--recipe", recipe, "--steps", 5, "--learners", 2, "--method", "dense", "--seed",
                  3, "--momentum", "plain", "--lr", 0.5, "--weight-decay", 0.01,
                  "--out", folder / "b"))
    config = json.loads((folder / "b" / "config.json").read_text())
    assert (config["learners"], config["method"], config["seed"]) == (2, "dense", 3)
    assert config["learning_rate"] == 0.5 and config["masked_momentum"] is False
    assert config["weight_decay"] == 0.01
    # The same as without a recipe.
    expect_ok(run("train", "--task", "synthetic", "--learners", 3, "--method", "scalecom,rate=20", "--batch",
                  8, "--lr", 0.03, "--lr-warmup", 0.3, "--momentum", "masked", "--seed", 7, "--steps", 5,
                  "--out", folder / "c"))
    expect_same_run(folder / "a", folder / "c")


def test_what_is_no_recipe(folder):
    out = ("--out", folder / "out")
    expect_refused(run("train", "--recipe", "imagenet", *out), "imagenet", "cifar10-resnet18-32x")
    expect_refused(run("reproduce", "imagenet", *out), "imagenet", "cifar10-resnet18-32x")
    odd = write_recipe(folder, "odd", colour="red")
    expect_refused(run("train", "--recipe", odd, *out), "'colour'", "learning_rate_warmup")
    expect_refused(reproduce(folder, write_recipe(folder, "no", method=None)), "no.json", "method")
    for epochs in (0, -1):
        expect_refused(reproduce(folder, write_recipe(folder, "short", epochs=epochs)), "short.json", "epochs")
    expect_refused(run("reproduce", odd), "--out")
    expect_refused(run("reproduce", write_recipe(folder, "fine"), "--out", odd), "odd.json cannot be written", "--out")
    expect_refused(reproduce(folder, write_recipe(folder, "fine"), options=("--seeds", 0)), "--seeds")
    assert not (folder / "out").exists()


def test_two_recipes_of_one_name_are_refused(folder):
    """Runs are kept by the names of their recipes: one of the two would not be run."""
    (folder / "other").mkdir()
    mine, other = write_recipe(folder, "mine"), write_recipe(folder / "other", "mine", learning_rate=0.02)
    expect_refused(reproduce(folder, mine, other), "'mine'", "rename")
    own = write_recipe(folder, "cifar10-resnet18-32x-dense")
    expect_refused(reproduce(folder, "cifar10-resnet18-32x", own), "'cifar10-resnet18-32x-dense'", "rename")
    assert not (folder / "out").exists()
    # The same one may be named twice.
    expect_ok(reproduce(folder, mine, mine))


def test_the_settings_of_the_reference_are_recipes(folder):
    """Nothing is missing for them but the data."""
    files = sorted((pathlib.Path(__file__).parents[2] / "docs" / "reference").glob("*.json"))
    assert len(files) > 20
    done = reproduce(folder, *files, options=("--data", folder / "none"))
    lines = done.stderr.splitlines()
    assert done.returncode == 2 and lines, done
    assert all("is missing or not a folder" in line for line in lines), lines


def test_rows_are_compared_over_paired_seeds(folder):
    write_recipe(folder, "plain")
    sparse = write_recipe(folder, "sparse", method="scalecom,rate=20,beta=0.3", baseline="plain")
    done = expect_ok(reproduce(folder, sparse, options=("--json", folder / "table.json")))
    rows = table(folder)
    assert list(rows) == ["plain", "sparse"]
    assert json.loads((folder / "table.json").read_text())["rows"][1] == rows["sparse"]
    values = {name: [result(folder / "out" / name / f"seed-{seed}")["value"] for seed in (1, 2)]
              for name in rows}
    for name, row in rows.items():
        assert [run["value"] for run in row["runs"]] == values[name]
    first, second = (values["sparse"][i] - values["plain"][i] for i in range(2))
    difference = rows["sparse"]["difference"]
    assert difference["pairs"] == 2 and abs(difference["mean"] - (first + second) / 2) < 1e-9
    assert abs(difference["half_width_95"] - 12.706 * abs(first - second) / 2) < 1e-9
    assert rows["sparse"]["effective_rate"] > 2 and rows["plain"]["difference"] is None
    assert (folder / "out" / "table.md").read_text() in done.stdout
    assert "| sparse | 2 | `scalecom,rate=20,beta=0.3` |" in done.stdout


def test_the_table_replaces_a_link_and_not_what_it_points_to(folder):
    recipe = write_recipe(folder, "short", seeds=[1])
    (folder / "kept").write_text("old")
    written = folder / "out" / "table.md"
    written.parent.mkdir()
    written.symlink_to(folder / "kept")
    expect_ok(reproduce(folder, recipe))
    assert (folder / "kept").read_text() == "old"
    assert not written.is_symlink() and "| short |" in written.read_text()


def test_complete_runs_are_skipped_and_others_taken_up(folder):
    recipe = write_recipe(folder, "long", epochs=30, seeds=[1])
    expect_ok(run("train", "--recipe", recipe, "--out", folder / "straight"))
    process = start("reproduce", recipe, "--out", folder / "out")
    place = folder / "out" / "long" / "seed-1"
    wait_for(lambda: checkpoints(place), "a checkpoint")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 130 and "the same command goes on" in errors, errors
    expect_ok(reproduce(folder, recipe))
    expect_same_run(folder / "straight", place)
    before = (place / "result.json").stat().st_mtime_ns
    expect_ok(reproduce(folder, recipe))
    assert (place / "result.json").stat().st_mtime_ns == before
    write_recipe(folder, "long", epochs=30, seeds=[1], version=2)
    expect_refused(reproduce(folder, recipe), "long@1", "long@2")


def test_a_recipe_that_was_changed_under_its_version_is_another(folder):
    recipe = write_recipe(folder, "mine", learning_rate=0.01, seeds=[1])
    expect_ok(reproduce(folder, recipe))
    write_recipe(folder, "mine", learning_rate=0.02, seeds=[1])
    expect_refused(reproduce(folder, recipe), "mine/seed-1", "learning_rate 0.01", "mine@1")
    # How often it is run is no matter of its runs.
    write_recipe(folder, "mine", learning_rate=0.01, seeds=[1, 2])
    expect_ok(reproduce(folder, recipe))
    assert len(table(folder)["mine"]["runs"]) == 2


def test_a_row_that_fails_does_not_stop_the_others(folder):
    bad = write_recipe(folder, "bad", learning_rate=1e30, seeds=[1])
    absent = write_recipe(folder, "absent", task="fsdd,size=small", seeds=[1, 2])
    good = write_recipe(folder, "good", seeds=[1])
    done = reproduce(folder, bad, absent, good)
    assert done.returncode == 1, done.stderr
    # The data is missing for both seeds, which is said once.
    first, second = done.stderr.splitlines()
    assert first.startswith("scalecom reproduce: bad seed 1") and "diverged" in first
    assert second.startswith("scalecom reproduce: absent seed 1") and "free-spoken-digit" in second
    assert list(table(folder)) == ["good"]
    done = reproduce(folder, absent, options=("--data", folder / "nowhere"))
    assert done.returncode == 2 and "nowhere" in done.stderr, done.stderr


def test_a_failure_that_all_runs_share_is_said_once(folder):
    """As a full disk, though each run would name its own folder."""
    for name in ("one", "two"):
        (folder / "out").mkdir(exist_ok=True)
        (folder / "out" / name).write_text("where the folder of its runs would be")
    done = reproduce(folder, *(write_recipe(folder, name) for name in ("one", "two")))
    assert done.returncode == 2, done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and "one/seed-1 cannot be written" in lines[0], lines


def test_the_same_command_several_times_shares_the_runs(folder):
    """And leaves them what one command alone makes of them."""
    write_recipe(folder, "plain", epochs=15)
    sparse = write_recipe(folder, "sparse", epochs=15, method="scalecom,rate=20", baseline="plain")
    processes = [start("reproduce", sparse, "--out", folder / "out") for _ in range(3)]
    said = [process.communicate()[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], said
    expect_ok(run("reproduce", sparse, "--out", folder / "alone"))
    for row in ("plain", "sparse"):
        for seed in (1, 2):
            expect_same_run(folder / "out" / row / f"seed-{seed}", folder / "alone" / row / f"seed-{seed}")
    assert [len(row["runs"]) for row in table(folder).values()] == [2, 2]


def test_a_run_is_made_by_one_process_at_a_time(folder):
    recipe = write_recipe(folder, "long", epochs=2000, seeds=[1])
    short = write_recipe(folder, "short", seeds=[1])
    process = start("reproduce", recipe, "--out", folder / "out")
    place = folder / "out" / "long" / "seed-1"
    wait_for(lambda: checkpoints(place), "a checkpoint")
    done = expect_ok(reproduce(folder, recipe, short))
    assert "1 of the runs are being made by other processes" in done.stderr, done.stderr
    assert list(table(folder)) == ["short"]
    expect_refused(run("train", "--resume", place), "another process", str(place))
    process.kill()
    process.communicate()
    # What a killed process had is free.
    before = checkpoints(place)[-1]
    process = start("train", "--resume", place)
    wait_for(lambda: checkpoints(place)[-1] != before, "another checkpoint")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 130, (process.returncode, errors)


def test_complete_runs_keep_no_checkpoints(folder):
    recipe = write_recipe(folder, "mine", seeds=[1])
    expect_ok(reproduce(folder, recipe))
    assert not checkpoints(folder / "out" / "mine" / "seed-1")
    expect_ok(run("train", "--recipe", recipe, "--out", folder / "kept"))
    assert checkpoints(folder / "kept")


def test_similarity_is_measured_where_it_is_asked_for(folder):
    recipe = write_recipe(folder, "mine", method="scalecom,rate=20", seeds=[1])
    expect_ok(reproduce(folder, recipe, options=("--similarity-every", 10)))
    assert (folder / "out" / "mine" / "seed-1" / "similarity.jsonl").read_text()


def test_data_may_have_moved(folder):
    write_fsdd(folder / "data", digits=(2, 6), takes=range(3, 9))
    recipe = write_recipe(folder, "mine", task="fsdd,size=small", batch=4, seeds=[1], epochs=200)
    process = start("reproduce", recipe, "--out", folder / "out", "--data", folder / "data")
    place = folder / "out" / "mine" / "seed-1"
    wait_for(lambda: checkpoints(place), "a checkpoint")
    process.send_signal(signal.SIGINT)
    process.communicate()
    (folder / "data").rename(folder / "moved")
    expect_refused(run("train", "--resume", place), str(folder / "data"), "missing")
    before = checkpoints(place)[-1]
    process = start("train", "--resume", place, "--data", folder / "moved")
    wait_for(lambda: checkpoints(place)[-1] != before, "another checkpoint")
    process.send_signal(signal.SIGINT)
    assert process.wait() == 130
    assert json.loads((place / "config.json").read_text())["data"] == str(folder / "moved")


def test_the_rate_of_groups_is_that_between_them(folder):
    flat = write_recipe(folder, "flat", method="scalecom,rate=20", learners=4, seeds=[1])
    grouped = write_recipe(folder, "grouped", method="scalecom,rate=20", learners=4, groups=2, seeds=[1])
    done = expect_ok(reproduce(folder, flat, grouped))
    rows = table(folder)
    assert rows["flat"]["effective_rate_of"] == "all traffic"
    assert rows["flat"]["inside_bytes_per_rank_step"] is None
    assert rows["grouped"]["effective_rate_of"] == "between groups"
    inside = result(folder / "out" / "grouped" / "seed-1")["inside_bytes_per_rank_step"]
    assert inside > 0 and rows["grouped"]["inside_bytes_per_rank_step"] == inside
    lines = {line.split("|")[1].strip(): line for line in done.stdout.splitlines() if line.startswith("| ")}
    assert "x between groups |" in lines["grouped"] and "between" not in lines["flat"]


# It notes how it is called, and gives what was compared half a point less.
SCORER = """#!/bin/sh
echo "$@" >> "$(dirname "$0")/calls"
if [ "$2" = --against ]; then
  echo '{"metric": "BLEU", "value": 12.0, "paired": {"against": "'"$3"'", "difference": -0.5,
    "interval_95": [-1.25, 0.25]}}'
else
  echo '{"metric": "BLEU", "value": 12.5}'
fi > "$1/score.json"
"""


def write_scorer(folder):
    scorer = folder / "scorer"
    scorer.write_text(SCORER)
    scorer.chmod(scorer.stat().st_mode | stat.S_IXUSR)
    return scorer


def calls(folder):
    """Since the last time."""
    path = folder / "calls"
    lines = path.read_text().splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return lines


def test_text_is_scored_against_the_baselines(folder):
    write_text_pairs(folder / "data")
    common = {"task": "multi30k,size=small", "batch": 8}
    write_recipe(folder, "plain", seeds=[1], **common)
    sparse = write_recipe(folder, "sparse", method="scalecom,rate=20", baseline="plain", seeds=[2, 1], **common)
    again = {"options": ("--data", folder / "data", "--score", write_scorer(folder))}
    done = expect_ok(reproduce(folder, sparse, **again))
    plain, alone, pair = (folder / "out" / place for place in ("plain/seed-1", "sparse/seed-2", "sparse/seed-1"))
    # The baseline has no run of seed 2.
    assert calls(folder) == [f"{plain}", f"{alone}", f"{pair} --against {plain}"]
    assert table(folder)["sparse"]["difference"] == {
        "mean": -0.5, "pairs": 1, "half_width_95": None, "interval_95": [-1.25, 0.25],
        "interval_over": "sentences"}
    assert "| -0.50 [-1.25, +0.25] |" in done.stdout
    expect_ok(reproduce(folder, sparse, **again))
    assert calls(folder) == []
    # What was scored alone, or against another run, is scored again.
    for scored in ({"metric": "BLEU", "value": 12.0},
                   {"metric": "BLEU", "value": 12.0, "paired": {"against": str(alone), "interval_95": [-9, 9]}},
                   {"metric": "BLEU", "value": 12.0, "paired": {"against": str(plain), "difference": -0.5}},
                   # The baseline was run again since.
                   {"metric": "BLEU", "value": 12.0, "paired": {
                       "against": str(plain), "difference": 0.75, "interval_95": [-9, 9]}}):
        (pair / "score.json").write_text(json.dumps(scored))
        expect_ok(reproduce(folder, sparse, options=("--data", folder / "data")))
        assert table(folder)["sparse"]["difference"]["interval_95"] is None
        expect_ok(reproduce(folder, sparse, **again))
        assert calls(folder) == [f"{pair} --against {plain}"]
        assert table(folder)["sparse"]["difference"]["interval_95"] == [-1.25, 0.25]


def test_speech_is_scored_where_that_is_asked_for(folder):
    """Its word error rate is the program's own; a score adds the interval."""
    write_fsdd(folder / "data", digits=(2, 6), takes=range(3, 9))
    common = {"task": "fsdd,size=small", "batch": 4, "seeds": [1]}
    write_recipe(folder, "plain", **common)
    sparse = write_recipe(folder, "sparse", method="scalecom,rate=20", baseline="plain", **common)
    options = ("--data", folder / "data")
    expect_ok(reproduce(folder, sparse, options=options))
    before = table(folder)["sparse"]
    assert before["difference"]["interval_95"] is None
    expect_ok(reproduce(folder, sparse, options=(*options, "--score", write_scorer(folder))))
    place = folder / "out"
    assert calls(folder) == [f"{place}/plain/seed-1",
                             f"{place}/sparse/seed-1 --against {place}/plain/seed-1"]
    row = table(folder)["sparse"]
    assert row["difference"]["interval_95"] == [-1.25, 0.25]
    assert (row["metric"], row["mean"]) == (before["metric"], before["mean"])


def test_translations_are_scored_apart(folder):
    write_text_pairs(folder / "data")
    recipe = write_recipe(folder, "text", task="multi30k,size=small", batch=8, seeds=[1])
    options = ("--data", folder / "data")
    done = expect_ok(reproduce(folder, recipe, options=options))
    place = folder / "out" / "text" / "seed-1"
    assert f"scripts/score {place}" in done.stderr and table(folder) == {}
    expect_ok(reproduce(folder, recipe, options=(*options, "--score", write_scorer(folder))))
    assert table(folder)["text"]["metric"] == "BLEU" and table(folder)["text"]["mean"] == 12.5
    for damaged in ("", "[1]", '{"metric": "BLEU"}', '{"metric": 1, "value": 12.5}', '{"metric": "BLEU", "value": "a"}'):
        (place / "score.json").write_text(damaged)
        expect_refused(reproduce(folder, recipe, options=options), "score.json", "damaged")
        expect_ok(reproduce(folder, recipe, options=(*options, "--score", write_scorer(folder))))
        assert table(folder)["text"]["mean"] == 12.5
    (place / "score.json").unlink()
    expect_refused(reproduce(folder, recipe, options=(*options, "--score", "/bin/false")), "--score")


if __name__ == "__main__":
    run_tests(globals())
