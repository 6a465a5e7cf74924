"""Which runs the report takes together, and by what it tells the others apart."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from report_pages import figures, shown, words
from report_sources import SCALECOM, write_run

from scalecom.report.figures.figure import logarithmic, tick
from scalecom.report.outcomes import Summary, summarise
from scalecom.report.sources import find

pytestmark = pytest.mark.cpu("the report needs no device")


def rows(folder: Path) -> list[Summary]:
    return summarise(find([folder]).runs)


def values(folder: Path) -> list[float | None]:
    return sorted(row.value or 0 for row in rows(folder))


def legend(html: str) -> list[str]:
    """Of the first learning curves."""
    return [entry["label"] for entry in next(one for one in figures(html) if one["legend"])["legend"]]


def titles(html: str) -> list[str]:
    return re.findall(r"<h3>(.*?)</h3>", html)


def test_a_recipe_that_has_changed_its_method_is_two_rows(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "scalecom,rate=400,beta=1", value=1.85, recipe="fsdd-4x@2")
    write_run(tmp_path / "b", "scalecom,rate=400,beta=0.1", value=0.5, recipe="fsdd-4x@3")
    assert values(tmp_path) == [0.5, 1.85]
    html = shown(tmp_path)
    assert legend(html) == ["fsdd-4x, beta=1", "fsdd-4x, beta=0.1"]
    assert "fsdd-4x@2 scalecom,rate=400,beta=1 1.85 1" in words(html)
    assert "fsdd-4x@3 scalecom,rate=400,beta=0.1 0.50 1" in words(html)


def test_versions_of_a_recipe_are_told_apart_by_their_number_alone(tmp_path: Path) -> None:
    for seed, version in ((1, 1), (2, 2)):
        write_run(tmp_path / str(seed), SCALECOM, seed=seed, recipe=f"fsdd-4x@{version}")
    assert len(rows(tmp_path)) == 2
    assert legend(shown(tmp_path)) == ["fsdd-4x@1", "fsdd-4x@2"]


def test_one_version_of_a_recipe_needs_no_number(tmp_path: Path) -> None:
    for seed in (1, 2):
        write_run(tmp_path / str(seed), SCALECOM, seed=seed, recipe="fsdd-4x@2")
    html = shown(tmp_path)
    assert len(rows(tmp_path)) == 1 and legend(html) == ["fsdd-4x"] and "@2" not in words(html)


@pytest.mark.parametrize(("key", "two", "told"), [
    ("weight_decay", (0.0005, 0.001), "weight decay 0.001"),
    ("learning_rate_warmup", (0.1, 0.25), "learning-rate warm-up 0.25"),
    ("learning_rate", (0.1, 0.25), "learning rate 0.25"),
    ("batch", (16, 32), "batch 32 each"),
    ("optimizer", ("sgd", "adam"), "optimizer adam"),
])
def test_whatever_decides_a_run_keeps_it_apart(tmp_path: Path, key: str, two: tuple[Any, Any], told: str) -> None:
    for setting, value in zip(two, (90.0, 80.0), strict=True):
        write_run(tmp_path / f"dense-{setting}", value=value, **{key: setting})
        write_run(tmp_path / f"scalecom-{setting}", SCALECOM, value=value - 1, **{key: setting})
    assert values(tmp_path) == [79.0, 80.0, 89.0, 90.0]
    assert [row.against_dense.mean for row in rows(tmp_path) if row.against_dense] == [-1.0, -1.0]
    html = shown(tmp_path)
    assert any(title.endswith(f", {told}") for title in titles(html))
    head = told.rsplit(maxsplit=2)[0] if key == "batch" else told.rsplit(maxsplit=1)[0]
    assert re.search(rf"<th[^>]*>{head}", html, re.IGNORECASE)


def test_masked_momentum_is_a_row_of_its_own_beside_the_same_dense(tmp_path: Path) -> None:
    """Dense sends something for every weight, so that there is nothing to mask in it."""
    write_run(tmp_path / "dense", value=90.0)
    write_run(tmp_path / "plain", SCALECOM, value=88.0, masked_momentum=False)
    write_run(tmp_path / "masked", SCALECOM, value=89.0, masked_momentum=True)
    found = {row.first.path.name: row for row in rows(tmp_path)}
    assert {name: row.value for name, row in found.items()} == {"dense": 90.0, "plain": 88.0, "masked": 89.0}
    assert found["plain"].against_dense and found["plain"].against_dense.mean == -2.0
    assert found["masked"].against_dense and found["masked"].against_dense.mean == -1.0
    assert legend(shown(tmp_path)) == ["dense", "scalecom, masked momentum", "scalecom"]


def test_a_config_without_an_optimizer_is_one_of_sgd(tmp_path: Path) -> None:
    """As the program reads those that it wrote before there was a choice."""
    write_run(tmp_path / "former")
    write_run(tmp_path / "later", seed=2, optimizer="sgd", masked_momentum=False)
    assert len(rows(tmp_path)) == 1


def test_a_recipe_that_was_overruled_goes_by_its_method(tmp_path: Path) -> None:
    write_run(tmp_path / "empty", SCALECOM, recipe="")
    write_run(tmp_path / "none", SCALECOM, seed=2)
    assert len(rows(tmp_path)) == 1
    assert legend(shown(tmp_path)) == ["scalecom"]


def test_the_order_in_which_options_were_given_does_not_matter(tmp_path: Path) -> None:
    spec = "scalecom,rate=47,beta=0.1,select=chunk"
    write_run(tmp_path / "a", "scalecom,rate=47,beta=0.1", spec=spec)
    write_run(tmp_path / "b", "scalecom,beta=0.1,rate=47", spec=spec, seed=2)
    assert len(rows(tmp_path)) == 1


def test_a_run_without_a_recipe_is_told_from_recipes_of_its_method(tmp_path: Path) -> None:
    """Beside these, "scalecom" alone would say nothing."""
    write_run(tmp_path / "a", "scalecom,rate=92,beta=1", recipe="plain@1")
    write_run(tmp_path / "b", "scalecom,rate=92,beta=0.1,decay=0.99,groups=8", recipe="groups@1")
    write_run(tmp_path / "c", "scalecom,rate=92,beta=0.1,decay=0.99,select=turn,groups=8")
    write_run(tmp_path / "d", "scalecom,rate=47,beta=0.1,groups=8")
    write_run(tmp_path / "e", "scalecom,rate=47,beta=1")
    assert legend(shown(tmp_path)) == ["plain", "groups", "scalecom, select=turn", "scalecom, rate=47, beta=0.1",
                                       "scalecom, rate=47, beta=1"]


def test_rows_stand_by_the_dense_that_they_are_compared_with(tmp_path: Path) -> None:
    for steps in (300, 600):
        write_run(tmp_path / f"a{steps}", SCALECOM, steps=steps)
        write_run(tmp_path / f"dense{steps}", steps=steps)
    assert [(row.first.steps, row.is_dense) for row in rows(tmp_path)] == [
        (300, True), (300, False), (600, True), (600, False)]


def test_a_difference_that_is_missing_says_why(tmp_path: Path) -> None:
    write_run(tmp_path / "dense", learning_rate=0.1)
    write_run(tmp_path / "a", SCALECOM, learning_rate=0.1)
    assert "no dense run of the same settings and seed" not in words(shown(tmp_path))
    write_run(tmp_path / "b", SCALECOM, learning_rate=0.2)
    assert "no dense run of the same settings and seed" in words(shown(tmp_path))


def test_no_two_lines_of_a_figure_look_alike(tmp_path: Path) -> None:
    for i in range(12):
        write_run(tmp_path / str(i), f"scalecom,rate={i + 1}")
    entries = figures(shown(tmp_path))[0]["legend"]
    assert len({(entry["colour"], entry["dash"]) for entry in entries}) == 12


def test_the_end_of_a_long_label_is_not_cut_off() -> None:
    """It is what tells it from others."""
    label = "cifar10-resnet18-32x-beta0.1-uniform, select=random, learning rate 0.2, masked momentum"
    assert tick(label).replace("<br>", " ").endswith("masked momentum")


def test_runs_of_one_seed_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    for name, value in (("first", 90.0), ("second", 80.0)):
        for seed in (1, 2):
            write_run(tmp_path / name / f"seed-{seed}", value=value + seed, seed=seed)
    assert values(tmp_path) == [81.5, 91.5]
    html = shown(tmp_path)
    assert legend(html) == ["dense, first", "dense, second"]
    assert "first dense 91.50 2" in words(html) and "second dense 81.50 2" in words(html)


def test_runs_of_one_seed_and_folder_are_rows_of_their_own(tmp_path: Path) -> None:
    for name, value in (("a", 90.0), ("b", 80.0)):
        write_run(tmp_path / name, value=value)
    assert values(tmp_path) == [80.0, 90.0]
    assert legend(shown(tmp_path)) == ["dense, a", "dense, b"]


def test_dense_runs_that_disagree_are_no_baseline(tmp_path: Path) -> None:
    write_run(tmp_path / "a", value=90.0)
    write_run(tmp_path / "b", value=90.0, recipe="plain@1")
    write_run(tmp_path / "scalecom", SCALECOM, value=89.0)
    assert "−1.00" in words(shown(tmp_path))
    write_run(tmp_path / "b", value=88.0, recipe="plain@1")
    text = words(shown(tmp_path))
    assert "90.00" in text and "88.00" in text and "−1.00" not in text and "+1.00" not in text
    assert "several dense runs of one seed that came to different values" in text


def test_a_run_that_is_given_twice_over_is_one_run(tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs" / "a")
    assert len(find([tmp_path / "runs", run]).runs) == 1
    assert len(find([run, tmp_path / "runs"]).runs) == 1


def test_tiles_say_which_is_which(tmp_path: Path) -> None:
    write_run(tmp_path / "dense", value=90.0)
    for version, beta in ((2, "1"), (3, "0.1")):
        write_run(tmp_path / beta, f"scalecom,rate=400,beta={beta}", value=80.0 + version, recipe=f"fsdd-4x@{version}")
    text = words(shown(tmp_path))
    assert "fsdd-4x, beta=1 82.00, dense 90.00" in text and "fsdd-4x, beta=0.1 83.00, dense 90.00" in text


def test_traffic_is_by_method_whatever_else_a_run_has(tmp_path: Path) -> None:
    """A step's bytes follow from the method and the learners; a recipe is of one number of these."""
    for learners in (4, 8):
        write_run(tmp_path / str(learners), SCALECOM, learners=learners, recipe=f"fsdd-{learners}x@1")
    trace, = traffic(shown(tmp_path))["views"][0]["data"]
    assert trace["x"] == [4, 8] and trace["name"] == "scalecom"


def traffic(html: str) -> dict[str, Any]:
    return next(one for one in figures(html) if one["views"][0]["layout"]["xaxis"].get("type") == "log")


def test_traffic_is_that_after_the_warm_up(tmp_path: Path) -> None:
    for learners in (4, 8):
        write_run(tmp_path / str(learners), f"scalecom,rate=100,warmup={800 // learners}", learners=learners)
    trace, = traffic(shown(tmp_path))["views"][0]["data"]
    assert trace["x"] == [4, 8]


def test_traffic_of_dense_alone_says_nothing(tmp_path: Path) -> None:
    for learners in (4, 8):
        write_run(tmp_path / str(learners), learners=learners)
    assert "traffic by learners" not in shown(tmp_path)


def test_an_axis_has_ticks_however_little_there_is_between_its_ends() -> None:
    axis = logarithmic("Bytes", [15.7e6, 17.6e6], str)
    low, high = (10**end for end in axis["range"])
    assert low <= 15.7e6 and 17.6e6 <= high and sum(low <= tick <= high for tick in axis["tickvals"]) >= 2
    assert "range" not in logarithmic("Bytes", [1e4, 1e8], str)


def test_with_groups_it_is_said_that_bytes_are_those_between_them(tmp_path: Path) -> None:
    for learners in (4, 8):
        write_run(tmp_path / str(learners), SCALECOM, learners=learners)
    assert "between groups" not in words(shown(tmp_path))
    for learners in (4, 8):
        write_run(tmp_path / f"grouped-{learners}", f"{SCALECOM},groups=2", learners=learners, complete=learners == 4)
    # Two learning curves, one of them of a run that is not complete.
    assert words(shown(tmp_path)).count("With groups, bytes are those between groups.") == 2
    write_run(tmp_path / "grouped-8", f"{SCALECOM},groups=2", learners=8)
    assert words(shown(tmp_path)).count("With groups, bytes are those between groups.") == 3
