"""The report: what it says of what it has read, and its command."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from report_pages import figures, shown, words
from report_sources import (SCALECOM, comparison_json, plan_json, reproduction_json, write_comparison,
                            write_everything, write_hostile, write_json, write_reproduction, write_run,
                            write_similarity)

from scalecom.report.outcomes import summarise
from scalecom.report.page import page
from scalecom.report.pairs import _STUDENT, difference
from scalecom.report.sources import find

pytestmark = pytest.mark.cpu("the report needs no device")
PROGRAM = Path(__file__).parents[2] / "build" / "release" / "cli" / "scalecom"


def test_one_seed_has_no_interval(tmp_path: Path) -> None:
    write_run(tmp_path / "dense", value=92.87)
    write_run(tmp_path / "scalecom", SCALECOM, value=92.58)
    text = words(shown(tmp_path))
    assert "−0.29" in text and "81.9×" in text and "30 kB" in text
    assert "±" not in text and "one seed, so no interval" in text and "1.0× over the whole run" in text


def test_several_seeds_have_a_mean_and_its_interval(tmp_path: Path) -> None:
    for seed, (dense, scalecom) in enumerate([(92.0, 91.7), (92.5, 92.4), (92.2, 92.0)], 1):
        write_run(tmp_path / f"dense{seed}", value=dense, seed=seed)
        write_run(tmp_path / f"scalecom{seed}", SCALECOM, value=scalecom, seed=seed)
    # A seed without its counterpart counts for the mean alone.
    write_run(tmp_path / "scalecom4", SCALECOM, value=95.9, seed=4)
    html = shown(tmp_path)
    # Differences -0.3, -0.1 and -0.2: a deviation of 0.1, and 4.303 / sqrt(3) of it.
    assert "−0.20 ± 0.25" in words(html)
    assert "93.00" in words(html)
    forest = next(f for f in figures(html) if "error_x" in f["views"][0]["data"][0])["views"][0]["data"][0]
    assert forest["x"] == pytest.approx([-0.2]) and forest["error_x"]["array"] == pytest.approx([0.2484], abs=1e-4)


def write_scored(folder: Path, value: float, method: str = "dense", **paired: Any) -> Path:
    """A run whose text was scored, against another where `paired` says so."""
    write_run(folder, method, task="fsdd")
    scored = {"metric": "word error rate (%)", "value": value, "signature": "x", "samples": 300}
    write_json(folder / "score.json", scored | ({"paired": paired} if paired else {}))
    return folder


def test_one_seed_has_the_interval_that_its_text_was_scored_with(tmp_path: Path) -> None:
    dense = write_scored(tmp_path / "dense", 3.0)
    write_scored(tmp_path / "scalecom", 3.25, SCALECOM, against=str(dense), difference=0.25,
                 interval_95=[-0.5, 1.125])
    html = shown(tmp_path)
    text = words(html)
    assert "+0.25 [−0.50, +1.12]" in text and "95% interval over sentences, one seed" in text
    assert "what another seed would give is not in it" in text
    assert "one seed, so no interval" not in text and "of one seed has no interval" not in text
    forest = next(f for f in figures(html) if "error_x" in f["views"][0]["data"][0])["views"][0]["data"][0]
    assert forest["marker"]["symbol"] == "circle-open"
    assert forest["error_x"]["array"] == pytest.approx([0.875])
    assert forest["error_x"]["arrayminus"] == pytest.approx([0.75])


def test_an_interval_of_another_pair_is_not_shown(tmp_path: Path) -> None:
    write_scored(tmp_path / "dense", 3.0)
    write_scored(tmp_path / "scalecom", 3.25, SCALECOM, against="elsewhere", difference=0.75,
                 interval_95=[-0.5, 1.125])
    text = words(shown(tmp_path))
    assert "+0.25" in text and "+0.25 [" not in text and "one seed, so no interval" in text


@pytest.mark.parametrize("scored", ["dense", "scalecom"])
def test_where_one_of_two_was_scored_it_says_so(tmp_path: Path, scored: str) -> None:
    """Dense is there, but what it came to is another figure."""
    for name, method in (("dense", "dense"), ("scalecom", SCALECOM)):
        if name == scored:
            write_scored(tmp_path / name, 3.0, method)
        else:
            write_run(tmp_path / name, method, task="fsdd")
    text = words(shown(tmp_path))
    assert "scripts/score has scored the run or its dense counterpart, and not both" in text
    assert "there is no dense run" not in text
    # A run of another seed has no counterpart, scored or not.
    write_run(tmp_path / "other", SCALECOM, task="fsdd", seed=2)
    (tmp_path / scored / "score.json").unlink()
    assert "scripts/score" not in words(shown(tmp_path / scored, tmp_path / "other"))


def test_more_of_an_error_is_no_gain(tmp_path: Path) -> None:
    for seed in (1, 2):
        write_run(tmp_path / f"dense{seed}", value=90.0, seed=seed)
        write_run(tmp_path / f"scalecom{seed}", SCALECOM, value=90.0 + seed, seed=seed)
    assert "less is better" not in shown(tmp_path)
    for folder in tmp_path.iterdir():
        result = json.loads((folder / "result.json").read_text())
        write_json(folder / "result.json", result | {"metric": "test word error rate (%)"})
    html = shown(tmp_path)
    # In the table and in the tile above it.
    assert "Difference to dense (less is better)" in words(html) and "against dense (less is better)" in words(html)
    axes = [view["layout"]["xaxis"]["title"]["text"] for figure in figures(html) for view in figure["views"]]
    assert "Difference (less is better)" in axes


def test_more_of_an_error_is_no_gain_in_tables_either(tmp_path: Path) -> None:
    table = reproduction_json()
    comparison = comparison_json()
    for row in (*table["rows"], *comparison["rows"]):
        row["metric"] = "word error rate (%)"
    text = words(shown(write_json(tmp_path / "r.json", table), write_json(tmp_path / "c.json", comparison)))
    assert "Difference to its baseline (less is better)" in text
    assert "in brackets the difference to dense (less is better)" in text


def test_with_groups_it_says_what_is_counted(tmp_path: Path) -> None:
    write_run(tmp_path / "dense")
    folder = write_run(tmp_path / "scalecom", f"{SCALECOM},groups=2")
    result = json.loads((folder / "result.json").read_text())
    write_json(folder / "result.json", result | {"group": 2, "inside_bytes_per_rank_step": 1.25e6})
    text = words(shown(tmp_path))
    assert "counted between groups of 2" in text and "inside its group a rank sends 1.25 MB more" in text


def test_runs_of_other_settings_are_no_pair(tmp_path: Path) -> None:
    write_run(tmp_path / "dense", value=92.87, learning_rate=0.1)
    write_run(tmp_path / "scalecom", SCALECOM, value=92.58, learning_rate=0.2)
    assert "−0.29" not in words(shown(tmp_path))


@pytest.mark.parametrize("pairs", [2, 5, 21, 30])
def test_intervals_are_students(pairs: int) -> None:
    found = difference({seed: float(seed % 2) for seed in range(pairs)}, dict.fromkeys(range(pairs), 0.0))
    mean = sum(seed % 2 for seed in range(pairs)) / pairs
    deviation = (sum((seed % 2 - mean) ** 2 for seed in range(pairs)) / (pairs - 1)) ** 0.5
    student = {2: 12.706, 5: 2.776, 21: 2.086, 30: 2.086}[pairs]
    assert found and found.mean == pytest.approx(mean)
    assert found.half_width == pytest.approx(student * deviation / pairs**0.5)


def test_students_t_is_the_programs() -> None:
    source = (Path(__file__).parents[2] / "train" / "recipes" / "table.cc").read_text()
    listed = re.search(r"kValues\{([^}]*)\}", source)
    assert listed, "train/recipes/table.cc has no list of Student's t"
    assert tuple(float(value) for value in listed[1].split(",")) == _STUDENT


def test_the_reproduction_table_has_every_row(tmp_path: Path) -> None:
    text = words(shown(write_reproduction(tmp_path / "r")))
    assert "−0.40 ± 0.21" in text and "3 of 3" in text and "scalecom,rate=92,groups=8" in text
    assert "−2.70" in text and "−2.70 ±" not in text and "Difference to its baseline" in text


def test_the_reproduction_table_says_what_its_figures_are_of(tmp_path: Path) -> None:
    table = reproduction_json()
    table["rows"][2]["difference"] |= {"interval_95": [-3.5, -1.75], "interval_over": "sentences"}
    html = shown(write_json(tmp_path / "r.json", table))
    text = words(html)
    assert "80.2× between groups −0.40 ± 0.21" in text and "80.2× −2.70 [−3.50, −1.75]" in text
    assert "Inside its group a rank sends 78.2 MB a step besides" in text
    forest, = figures(html)
    seeds, sentences = forest["views"][0]["data"]
    assert seeds["error_x"]["array"] == pytest.approx([0.21]) == seeds["error_x"]["arrayminus"]
    assert sentences["error_x"]["array"] == pytest.approx([0.95])
    assert sentences["error_x"]["arrayminus"] == pytest.approx([0.8])


def test_a_former_reproduction_table_is_read_too(tmp_path: Path) -> None:
    """It says neither what a rate is of nor where an interval ends."""
    table = reproduction_json()
    for row in table["rows"]:
        del row["effective_rate_of"], row["inside_bytes_per_rank_step"]
        for key in ("interval_95", "interval_over"):
            (row["difference"] or {}).pop(key, None)
    text = words(shown(write_json(tmp_path / "r.json", table)))
    assert "80.2× between groups −0.40 ± 0.21" in text and "80.2× −2.70" in text


def test_table_1_has_every_method(tmp_path: Path) -> None:
    text = words(shown(write_comparison(tmp_path / "c")))
    assert "90.80 (−0.20)" in text and "89.50 (−0.50)" in text and "32 learners, large batch" in text
    assert "topk n 5.0 0.80 1.6×" in text
    assert "failed: the loss is not finite at step 301" in text


def test_traffic_grows_as_it_was_measured(tmp_path: Path) -> None:
    html = shown(write_json(tmp_path / "c.json", comparison_json()))
    tradeoff, traffic = figures(html)
    traces = {trace["name"]: trace for trace in traffic["views"][0]["data"]}
    assert traces["topk"]["x"] == [2, 4, 8, 16, 32, 64] and traces["topk"]["y"][-1] == 4e4 + 64 * 4e4
    assert set(traces["scalecom"]["y"]) == {6e4}
    assert [view["label"] for view in tradeoff["views"]] == ["32 learners, large batch", "8 learners"]
    dots = {trace["name"]: (trace["x"], trace["y"]) for trace in tradeoff["views"][1]["data"]}
    assert dots["scalecom"] == ([81.9], [90.8]) and len(dots) == 3


def test_learning_curves_are_of_equals(tmp_path: Path) -> None:
    write_run(tmp_path / "a")
    write_run(tmp_path / "b", SCALECOM)
    write_run(tmp_path / "c", SCALECOM, learners=8)
    html = shown(tmp_path)
    assert "fashion-mnist, 4 learners" in html and "fashion-mnist, 8 learners" in html
    first = figures(html)[0]
    assert [view["label"] for view in first["views"]] == ["by epoch", "by bytes", "train loss", "test loss"]
    assert [entry["label"] for entry in first["legend"]] == ["dense", "scalecom"]
    assert first["views"][0]["data"][0]["x"] == [1, 2, 3]


def test_learning_curves_of_other_settings_are_apart_and_say_so(tmp_path: Path) -> None:
    for rate in (0.2, 0.4):
        write_run(tmp_path / f"dense{rate}", learning_rate=rate)
        write_run(tmp_path / f"scalecom{rate}", SCALECOM, learning_rate=rate)
    titles = re.findall(r"<h3>(.*?)</h3>", shown(tmp_path))
    assert [title for title in titles if "learning rate" in title] == [
        "fashion-mnist, 4 learners, learning rate 0.2", "fashion-mnist, 4 learners, learning rate 0.4"]


@pytest.mark.parametrize(("task", "label", "title"), [
    ("fashion-mnist", "test loss", "Test loss"),
    ("cifar10,model=resnet18,held_out=0", "test loss", "Test loss"),
    ("cifar10,model=resnet18,held_out=5000", "held-out loss", "Loss on what is held out of training"),
    ("fsdd,size=small,held_out=5", "held-out loss", "Loss on what is held out of training"),
    ("multi30k", "validation loss", "Validation loss"),
    ("multi30k,size=small", "validation loss", "Validation loss"),
])
def test_a_loss_is_said_to_be_of_what_the_task_evaluates(tmp_path: Path, task: str, label: str, title: str) -> None:
    last = figures(shown(write_run(tmp_path / "a", task=task)))[0]["views"][-1]
    assert (last["label"], last["layout"]["yaxis"]["title"]["text"]) == (label, title)


def test_similarity_claims_no_more_than_every_selection_holds(tmp_path: Path) -> None:
    """What a leader's choice is measured by is what the same selection takes from the mean: only with
    select=exact the top k."""
    folder = write_run(tmp_path / "a", SCALECOM)
    write_similarity(folder)
    html = shown(folder)
    said = words(html) + json.dumps(figures(html))
    assert "top k" not in said and "leaves the least" not in said
    assert "the largest of each chunk, or of all with select=exact" in words(html)
    assert "averaged over leaders" in words(html)  # as docs/theory.md has Lemma 1's bound


def test_seeds_are_a_mean_with_a_band(tmp_path: Path) -> None:
    for seed, value in enumerate((90.0, 92.0), 1):
        write_run(tmp_path / str(seed), value=value, seed=seed)
    low, high, mean = figures(shown(tmp_path))[0]["views"][0]["data"]
    assert (low["y"][-1], mean["y"][-1], high["y"][-1]) == (90, 91, 92)


def test_long_runs_can_be_looked_at_from_their_middle_on(tmp_path: Path) -> None:
    write_run(tmp_path / "a", epochs=10)
    views = {view["label"]: view["data"] for view in figures(shown(tmp_path))[0]["views"]}
    assert views["last half"][0]["x"] == [5, 6, 7, 8, 9, 10] and len(views["by epoch"][0]["x"]) == 10


def test_labels_say_what_differs_and_no_more(tmp_path: Path) -> None:
    for i, method in enumerate(("scalecom,rate=100,beta=1", "scalecom,rate=100,beta=0.1", "topk,rate=100")):
        write_run(tmp_path / str(i), method)
    labels = [entry["label"] for entry in figures(shown(tmp_path))[0]["legend"]]
    assert labels == ["scalecom, beta=1", "scalecom, beta=0.1", "topk"]


def test_unfinished_runs_are_shown_as_such(tmp_path: Path) -> None:
    write_run(tmp_path / "half", complete=False)
    write_run(tmp_path / "new", complete=False)
    (tmp_path / "new" / "metrics.jsonl").unlink()
    text = words(shown(tmp_path))
    assert "unfinished: step 200 of 300" in text and "no epoch of its 300 steps complete yet" in text
    assert "2 runs read, 2 unfinished" in text


def test_an_unfinished_comparison_says_so_and_shows_what_there_is(tmp_path: Path) -> None:
    html = shown(write_comparison(tmp_path / "c", complete=False))
    assert "is not complete: 2 runs begun, 1 over, 1 method measured" in words(html)
    assert len(figures(html)) == 2  # the curves, and the traffic of the method that was measured


def test_similarity_is_drawn(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", SCALECOM)
    write_similarity(folder, steps=60)
    html = shown(folder)
    _, distances, contraction, quantiles = figures(html)
    assert [len(f["views"][0]["data"]) for f in (distances, contraction)] == [4, 3]  # a band is two
    assert quantiles["views"][0]["label"] == "3,000" and 10 < len(quantiles["views"]) <= 24
    assert "<select" in html


def test_learners_without_memories_are_not_compared(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a")
    (folder / "similarity.jsonl").write_text('{"step": 1, "cosine_distance": null, "qq": null}\n')
    assert "Similarity" not in words(shown(folder))


def test_a_plan_is_its_parts(tmp_path: Path) -> None:
    html = shown(write_json(tmp_path / "p.json", plan_json()))
    traces = figures(html)[0]["views"][0]["data"]
    sums = [sum(parts) for parts in zip(*(trace["x"] for trace in traces if trace["type"] == "bar"), strict=True)]
    assert sums == pytest.approx([50.0, 21.1, 20.4])
    text = words(html)
    assert "Use scalecom,rate=100: 2.37x faster than dense." in text
    assert "kernels as measured on NVIDIA H200" in text
    assert "32 Gbit/s" in text and "scalecom,rate=100: a second round." in text
    assert "not measured on this device, and is not counted, for dgc" in text


@pytest.mark.parametrize(("figure", "ends"), [("workers", [8, 32]), ("bandwidth", [1e10, 4e10])])
def test_a_sweep_is_curves(tmp_path: Path, figure: str, ends: list[float]) -> None:
    drawn, = figures(shown(write_json(tmp_path / "p.json", plan_json(figure))))
    assert [view["label"] for view in drawn["views"]] == ["step time", "speed-up", "communication"]
    for view in drawn["views"]:
        assert all([trace["x"][0], trace["x"][-1]] == ends for trace in view["data"])


def test_figures_are_plotlys(tmp_path: Path) -> None:
    """plotly for Python knows every attribute, and its kind."""
    graph_objects = pytest.importorskip("plotly.graph_objects")

    def coloured(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: coloured(inner, name) for name, inner in value.items()}
        if isinstance(value, list):
            return [coloured(one, key) for one in value]
        return "#123456" if key.endswith("color") and str(value).startswith("@") else value

    drawn = figures(shown(*write_everything(tmp_path)))
    assert len(drawn) > 10
    for figure in drawn:
        for view in figure["views"]:
            graph_objects.Figure(data=coloured(view["data"]), layout=coloured(view["layout"]))


def test_every_colour_is_in_the_style_sheet(tmp_path: Path) -> None:
    html = shown(*write_everything(tmp_path))
    used = set(re.findall(r'"@([\w-]+)', json.dumps(figures(html))))
    assert used <= set(re.findall(r"--([\w-]+):", html)) and "series-scalecom" in used


def test_what_is_hostile_stays_text(tmp_path: Path) -> None:
    html = shown(*write_hostile(tmp_path))
    assert html.lower().count("<script") == 3 and html.count("</script>") == 3
    assert "<img" not in html and "<b>" not in html
    assert "scalecom&lt;/script&gt;&lt;script&gt;" in html
    assert html.count(":root {") == 1, "the style sheet was put in where a name asked for it"


def test_names_need_not_be_unicode(tmp_path: Path) -> None:
    pytest.importorskip("plotly")
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/r\xffn"))
    write_run(folder, task="\ud800")
    assert report(folder, "--out", tmp_path / "x.html").returncode == 0


# The command.


def report(*arguments: object, folder: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "scalecom.report", *map(str, arguments)], capture_output=True,
                          text=True, timeout=120, check=False, cwd=folder, env=dict(os.environ, **variables))


def expect_refused(done: subprocess.CompletedProcess[str], *named: str) -> None:
    assert done.returncode == 2, done
    assert done.stderr.startswith("python -m scalecom.report: ") and done.stderr.count("\n") == 1, done.stderr
    assert all(name in done.stderr for name in named), done.stderr


def test_the_command_refuses_in_one_line(tmp_path: Path) -> None:
    pytest.importorskip("plotly")
    run = write_run(tmp_path / "run")
    out = tmp_path / "out.html"
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("nothing to see")
    expect_refused(report(run, tmp_path / "nowhere", "--out", out), "nowhere is not there")
    expect_refused(report(tmp_path / "empty", "--out", out), "empty holds no run")
    expect_refused(report(tmp_path / "notes.txt", "--out", out), "notes.txt is damaged: it is not JSON")
    expect_refused(report(run, "--out", tmp_path / "no" / "where.html"), "where.html cannot be written")
    expect_refused(report(run, "--out", tmp_path / "empty"), "empty cannot be written")
    write_run(tmp_path / "odd\nname")
    (tmp_path / "odd\nname" / "config.json").write_text("{")
    expect_refused(report(tmp_path / "odd\nname", "--out", out), "config.json is damaged")
    expect_refused(report(out, "--out", out), "is the report itself")
    assert not out.exists() and not list(tmp_path.rglob("*.tmp"))


def test_the_command_writes_one_file_and_may_be_run_again(tmp_path: Path) -> None:
    pytest.importorskip("plotly")
    write_run(tmp_path / "runs" / "a")
    done = report("runs/a", folder=tmp_path)
    assert done.returncode == 0 and done.stdout == "wrote report.html\n", done
    # The report of before lies among what it is made from.
    for _ in range(2):
        paths = [str(path) for path in (tmp_path / "runs").iterdir()]
        assert report(*paths, "--out", tmp_path / "runs" / "report.html").returncode == 0
    html = (tmp_path / "runs" / "report.html").read_text()
    assert html.count("<!doctype html>") == 1 and "plotly.js v" in html
    assert not re.search(r'<(?:script|link|img|iframe)[^>]+(?:src|href)=', html.split("<script>")[0])


def test_torch_is_not_loaded() -> None:
    code = "import sys, scalecom.report.__main__; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_plotly_it_says_how_to_get_it(tmp_path: Path) -> None:
    code = ("import sys; sys.modules['plotly'] = None; sys.argv = ['report', '.']; "
            "from scalecom.report.__main__ import main; sys.exit(main())")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    expect_refused(done, "plotly is missing", "pip install '.[report]'")  # as docs/report.md has it


@pytest.mark.skipif(not PROGRAM.exists(), reason="the program is not built")
def test_what_the_program_writes_is_read(tmp_path: Path) -> None:
    def scalecom(*arguments: object) -> None:
        subprocess.run([PROGRAM, *map(str, arguments)], check=True, capture_output=True, timeout=300)

    scalecom("train", "--task", "synthetic", "--learners", 2, "--method", "dense", "--steps", 4,
             "--out", tmp_path / "a", "--json", tmp_path / "a.json")
    scalecom("compare", "--task", "synthetic", "--learners", 2, "--methods", "dense,scalecom,topk", "--steps", 4,
             "--large-batch", 2, "--timed-elements", 1000, "--out", tmp_path / "c")
    plan = ("plan", "--model", "resnet50", "--tflops", 100, "--bandwidth", "10Gbit/s")
    scalecom(*plan, "--json", tmp_path / "plan.json")
    scalecom(*plan, "--sweep", "bandwidth=1Gbit/s..100Gbit/s", "--json", tmp_path / "sweep.json")
    recipe = {"version": 1, "about": "for a test", "task": "synthetic", "learners": 2, "epochs": 1,
              "seeds": [1, 2, 3]}
    write_json(tmp_path / "recipes" / "plain.json", recipe | {"method": "dense"})
    sparse = write_json(tmp_path / "recipes" / "sparse.json",
                        recipe | {"method": "scalecom,rate=20,beta=0.3", "baseline": "plain"})
    scalecom("reproduce", sparse, "--out", tmp_path / "r")

    paths = [tmp_path / name for name in ("a", "a.json", "c", "plan.json", "sweep.json", "r")]
    findings = find(paths)
    assert findings.comparisons[0].is_complete and len(findings.comparisons[0].runs) == 6
    assert [plan.sweep for plan in findings.plans] == [None, "bandwidth"]
    assert len(figures(page(findings, "", "0"))) >= 6

    # The same runs, without the program's table of them.
    (tmp_path / "r" / "table.json").unlink()
    interval, = (row.difference for row in findings.reproductions[0].rows if row.difference)
    ours, = (row.against_dense for row in summarise(find([tmp_path / "r"]).runs) if row.against_dense)
    assert (ours.mean, ours.pairs) == (pytest.approx(interval.mean), interval.pairs)
    assert ours.half_width == pytest.approx(interval.half_width)
