"""scripts/score: what sacrebleu and jiwer say of a run, and that the program's own count agrees."""

import json
import pathlib
import random
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build" / "release" / "cli" / "scalecom"
WORDS = "zero one two three four five six seven eight nine".split()


def score(*runs):
    command = [sys.executable, str(ROOT / "scripts" / "score"), *map(str, runs)]
    return subprocess.run(command, capture_output=True, text=True)


def write_run(folder, task, references, hypotheses):
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"task": task}))
    (folder / "result.json").write_text("{}")
    for name, lines in (("references.txt", references), ("hypotheses.txt", hypotheses)):
        (folder / name).write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def test_bleu_is_sacrebleus(tmp_path):
    sacrebleu = pytest.importorskip("sacrebleu")
    references = ["Ein Mann läuft über die Straße.", "Zwei Hunde spielen im Schnee mit einem Ball."]
    hypotheses = ["Ein Mann geht über die Straße.", "Zwei Hunde spielen mit einem Ball im Schnee."]
    write_run(tmp_path / "run", "multi30k,size=small", references, hypotheses)
    done = score(tmp_path / "run")
    assert done.returncode == 0, done.stderr
    written = json.loads((tmp_path / "run" / "score.json").read_text())
    assert written["metric"] == "BLEU" and written["samples"] == 2
    assert written["value"] == pytest.approx(sacrebleu.corpus_bleu(hypotheses, [references]).score)
    assert "tok:13a" in written["signature"]


def test_runs_are_compared_by_paired_bootstrap(tmp_path):
    pytest.importorskip("sacrebleu")
    references = [f"Ein Mann mit {n} Hunden läuft über die Straße Nummer {n}." for n in range(40)]
    worse = [line.replace("läuft", "geht") for line in references]
    write_run(tmp_path / "dense", "multi30k", references, references)
    write_run(tmp_path / "run", "multi30k", references, worse)
    done = score("--against", tmp_path / "dense", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    paired = json.loads((tmp_path / "run" / "score.json").read_text())["paired"]
    assert paired["difference"] < -5 and paired["p_value"] < 0.05
    write_run(tmp_path / "other", "multi30k", references[1:], references[1:])
    done = score("--against", tmp_path / "other", tmp_path / "run")
    assert done.returncode == 2 and "not translations of the same" in done.stderr


def test_a_link_is_replaced_and_not_followed(tmp_path):
    pytest.importorskip("jiwer")
    write_run(tmp_path / "run", "fsdd", ["one two"], ["one two"])
    (tmp_path / "kept").write_text("old")
    (tmp_path / "run" / "score.json").symlink_to(tmp_path / "kept")
    assert score(tmp_path / "run").returncode == 0
    assert (tmp_path / "kept").read_text() == "old"
    assert json.loads((tmp_path / "run" / "score.json").read_text())["value"] == 0


def test_an_empty_hypothesis_counts(tmp_path):
    pytest.importorskip("jiwer")
    write_run(tmp_path / "run", "fsdd", ["one two", "three"], ["", "three"])
    assert score(tmp_path / "run").returncode == 0
    written = json.loads((tmp_path / "run" / "score.json").read_text())
    assert written["value"] == pytest.approx(100 * 2 / 3)


def test_mistakes_are_one_line(tmp_path):
    write_run(tmp_path / "pictures", "cifar10", [], [])
    write_run(tmp_path / "damaged", "fsdd", ["one"], [])
    write_run(tmp_path / "unfinished", "fsdd", ["one"], ["one"])
    (tmp_path / "unfinished" / "result.json").unlink()
    for name, word in (("nowhere", "not a run"), ("pictures", "makes no text"),
                       ("damaged", "1 references for 0"), ("unfinished", "--resume")):
        done = score(tmp_path / name)
        assert done.returncode == 2 and word in done.stderr, done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert score().returncode == 2


@pytest.mark.skipif(not PROGRAM.exists(), reason="the program is not built: build/release")
def test_the_programs_word_error_rate_is_jiwers(tmp_path):
    pytest.importorskip("jiwer")
    sys.path.insert(0, str(ROOT / "tests" / "cli"))
    from task_data import write_fsdd
    write_fsdd(tmp_path / "data", digits=(2, 6), takes=range(3, 7))
    # In a few steps something is learned, and not all.
    subprocess.run([str(PROGRAM), "train", "--task", "fsdd,size=small", "--data", str(tmp_path / "data"),
                    "--learners", "2", "--batch", "4", "--steps", "60", "--method", "dense", "--out",
                    str(tmp_path / "run")], check=True, capture_output=True)
    assert score(tmp_path / "run").returncode == 0
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    written = json.loads((tmp_path / "run" / "score.json").read_text())
    assert 0 < result["value"] and written["value"] == pytest.approx(result["value"])


def test_jiwer_agrees_on_any_edits(tmp_path):
    """The count that tests/cli takes as its own."""
    pytest.importorskip("jiwer")
    draw = random.Random(3)
    references = [" ".join(draw.choices(WORDS, k=draw.randint(1, 6))) for _ in range(50)]
    hypotheses = [" ".join(draw.choices(WORDS, k=draw.randint(0, 6))) for _ in range(50)]
    write_run(tmp_path / "run", "fsdd", references, hypotheses)
    assert score(tmp_path / "run").returncode == 0
    written = json.loads((tmp_path / "run" / "score.json").read_text())

    def edits(a, b):
        if not a or not b:
            return len(a) + len(b)
        return min(edits(a[1:], b[1:]) + (a[0] != b[0]), edits(a[1:], b) + 1, edits(a, b[1:]) + 1)

    wrong = sum(edits(a.split(), b.split()) for a, b in zip(references, hypotheses))
    assert written["value"] == pytest.approx(100 * wrong / sum(len(a.split()) for a in references))
