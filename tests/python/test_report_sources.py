"""What the report reads, and what it refuses."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from report_pages import figures, shown, words
from report_sources import (SCALECOM, comparison_json, plan_json, reproduction_json, write_everything, write_json,
                            write_reproduction, write_run)

from scalecom.report.sources import Findings, Unreadable, find

pytestmark = pytest.mark.cpu("the report needs no device")


def test_a_run_is_read(tmp_path: Path) -> None:
    run, = find([write_run(tmp_path / "a", SCALECOM, value=92.58)]).runs
    assert (run.task, run.method, run.learners, run.seed) == ("fashion-mnist", SCALECOM, 4, 1)
    assert [epoch.value for epoch in run.epochs] == pytest.approx([86.58, 89.58, 92.58])
    assert run.outcome and run.outcome.value == 92.58 and run.outcome.metric == "test accuracy (%)"


def test_a_score_takes_the_place_of_the_programs_own_figure(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", task="multi30k")
    write_json(folder / "score.json", {"metric": "BLEU", "value": 33.25, "signature": "x", "samples": 1000})
    run, = find([folder]).runs
    assert run.outcome and (run.outcome.metric, run.outcome.value) == ("BLEU", 33.25)
    html = shown(folder)
    assert "33.25" in words(html)
    assert figures(html)[0]["views"][0]["layout"]["yaxis"]["title"]["text"] == "Test accuracy (%)"


def counts(findings: Findings) -> tuple[int, ...]:
    kinds = (findings.runs, findings.comparisons, findings.reproductions, findings.plans)
    return tuple(len(kind) for kind in kinds)


def test_folders_are_told_by_their_content(tmp_path: Path) -> None:
    findings = find(write_everything(tmp_path))
    assert counts(findings) == (4, 1, 1, 3)
    assert len(findings.comparisons[0].runs) == 3 and len(findings.reproductions[0].runs) == 4


def test_files_are_told_by_their_content(tmp_path: Path) -> None:
    result = write_run(tmp_path / "a") / "result.json"
    others = (comparison_json(), reproduction_json(), plan_json())
    findings = find([result, *(write_json(tmp_path / f"{i}.json", value) for i, value in enumerate(others))])
    assert counts(findings) == (1, 1, 1, 1)
    assert findings.runs[0].outcome and not findings.runs[0].epochs


def test_rows_of_runs_are_found_before_they_have_a_table(tmp_path: Path) -> None:
    write_reproduction(tmp_path / "r")
    (tmp_path / "r" / "table.json").unlink()
    assert len(find([tmp_path / "r"]).runs) == 4


def test_what_is_given_twice_is_shown_once(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a")
    assert len(find([folder, tmp_path / "a", tmp_path / "." / "a"]).runs) == 1


def test_a_last_line_that_was_cut_short_is_left_out(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", complete=False)
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"step": 300, "epo')
    assert len(find([folder]).runs[0].epochs) == 2


def test_similarity_may_lack_figures(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", SCALECOM)
    (folder / "similarity.jsonl").write_text(
        '{"step": 1}\n{"step": 2, "cosine_distance": 0.5, "hamming": null, "qq": {"first": [1, 2]}}\n')
    run, = find([folder]).runs
    assert run.similarity[1].cosine_distance == 0.5 and run.similarity[1].qq is None
    titles = re.findall(r"<h3>(.*?)</h3>", shown(folder))
    assert "Distances over time" in titles and not any("Q-Q" in title for title in titles)


def test_a_number_that_is_not_finite_counts_as_missing(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a")
    text = (folder / "metrics.jsonl").read_text()
    (folder / "metrics.jsonl").write_text(text.replace('"loss": 0.5', '"loss": NaN').replace("1.1", "1e999"))
    epochs = find([folder]).runs[0].epochs
    assert epochs[1].loss is None and epochs[0].test_loss is None
    assert "NaN" not in shown(folder)


def _damage(path: str, text: str) -> Callable[[Path], None]:
    return lambda folder: (folder / path).write_text(text) and None


@pytest.mark.parametrize(("harm", "named"), [
    (_damage("config.json", "{"), "config.json is damaged: it is not JSON"),
    (_damage("config.json", "[]"), "config.json is damaged: it holds no JSON object"),
    (_damage("config.json", '{"task": "x"}'), "config.json is damaged: 'method' is missing"),
    (_damage("config.json", "[" * 100_000), "config.json is damaged: it is not JSON"),
    (_damage("metrics.jsonl", "{}\n{}\n"), "metrics.jsonl is damaged: line 1: 'step' is missing"),
    (_damage("metrics.jsonl", 'x\n{"step": 1}\n'), "metrics.jsonl is damaged: line 1 is not JSON"),
    (_damage("metrics.jsonl", '{"step": 1, "epoch": "one"}\n'), "line 1: 'epoch' is no number"),
    (_damage("metrics.jsonl", '{"step": 1.5, "epoch": 1}\n'), "line 1: 'step' is no whole number"),
    (_damage("result.json", ""), "result.json is damaged"),
    (_damage("result.json", '{"metric": 3}'), "result.json is damaged: 'metric' is not text"),
    (_damage("similarity.jsonl", '{"step": 1, "qq": 3}\n'), "similarity.jsonl is damaged: line 1"),
    (lambda folder: (folder / "result.json").write_bytes(b"\xff\xfe"), "result.json is damaged"),
])
def test_damage_is_named(tmp_path: Path, harm: Callable[[Path], None], named: str) -> None:
    harm(write_run(tmp_path / "a"))
    with pytest.raises(Unreadable) as refused:
        find([tmp_path / "a"])
    assert named in str(refused.value) and str(tmp_path / "a") in str(refused.value)


@pytest.mark.parametrize(("value", "named"), [
    ({}, "is no JSON that scalecom train, compare, reproduce or plan writes"),
    ({"network": {"bandwidth": 1e9}}, "is a measured network and no plan"),
    ({"rows": [], "advice": "none"}, "the plan has no rows"),
    (plan_json() | {"rows": [{"method": "dense"}]}, "rows 1: 'workers' is missing"),
    (plan_json() | {"sweep": "colour"}, "has no 'colour'"),
    ({"rows": [], "growth": {}}, "the comparison has no rows"),
    ({"rows": [3], "growth": {}}, "rows 1: it holds no JSON object"),
    ({"rows": [{"recipe": "x"}]}, "rows 1: 'task' is missing"),
])
def test_files_that_are_something_else_are_named(tmp_path: Path, value: Any, named: str) -> None:
    path = write_json(tmp_path / "x.json", value)
    with pytest.raises(Unreadable) as refused:
        find([path])
    assert named in str(refused.value) and str(path) in str(refused.value)


def _spoilt(value: Any, chance: random.Random) -> Any:
    """With something somewhere in it that does not belong there."""
    if isinstance(value, dict | list) and value and chance.random() < 0.9:
        spoilt = value.copy()
        key = chance.choice(list(value) if isinstance(value, dict) else range(len(value)))
        spoilt[key] = _spoilt(value[key], chance)
        return spoilt
    return chance.choice([None, True, 0, -1, 1.5, 1e308, -1e308, 10**400, float("nan"), "", "odd", [], {}, [1],
                          {"a": 1}])


def test_whatever_is_in_the_files_is_shown_or_refused(tmp_path: Path) -> None:
    paths = write_everything(tmp_path)
    files = sorted(path for path in tmp_path.rglob("*.json*") if path.is_file())
    whole = {path: path.read_text() for path in files}
    chance = random.Random(1)
    outcomes = {True: 0, False: 0}
    for _ in range(400):
        path = chance.choice(files)
        lines = [json.dumps(_spoilt(json.loads(line), chance)) for line in (
            whole[path].splitlines() if path.suffix == ".jsonl" else [whole[path]])]
        path.write_text("\n".join(lines) + "\n")
        try:
            figures(shown(*paths))
            outcomes[True] += 1
        except Unreadable as refused:
            assert str(path) in str(refused), refused
            outcomes[False] += 1
        path.write_text(whole[path])
    assert min(outcomes.values()) > 50, outcomes
