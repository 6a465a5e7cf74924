"""scripts/score: what sacrebleu and jiwer say of a run, and that the program's own count agrees."""

import json
import pathlib
import random
import resource
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build" / "release" / "cli" / "scalecom"
WORDS = "zero one two three four five six seven eight nine".split()


def score(*runs, **more):
    command = [sys.executable, str(ROOT / "scripts" / "score"), *map(str, runs)]
    return subprocess.run(command, capture_output=True, text=True, **more)


def paired(run, against):
    done = score(run, "--against", against)
    assert done.returncode == 0, done.stderr
    return json.loads((run / "score.json").read_text())["paired"], done.stdout


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
    found, said = paired(tmp_path / "run", tmp_path / "dense")
    assert found["against"] == str(tmp_path / "dense")
    assert found["difference"] < -5 and found["p_value"] < 0.05 and "bs:1000" in found["test"]
    low, high = found["interval_95"]
    assert low <= found["difference"] <= high < 0
    assert f"{found['difference']:+.2f} [{low:+.2f}, {high:+.2f}]" in said and "more is better" in said
    write_run(tmp_path / "other", "multi30k", references[1:], references[1:])
    write_run(tmp_path / "speech", "fsdd", references, references)
    for other in ("other", "speech"):
        done = score("--against", tmp_path / other, tmp_path / "run")
        assert done.returncode == 2 and "not of the same sentences" in done.stderr


def test_bleus_interval_is_that_of_resampled_sentences(tmp_path):
    sacrebleu = pytest.importorskip("sacrebleu")
    draw = random.Random(5)
    references = [f"Ein Mann mit {n} Hunden läuft über die Straße Nummer {n}." for n in range(30)]
    before = [line.replace("Straße", "Wiese") if draw.random() < 0.5 else line for line in references]
    after = [line.replace("läuft", "geht") if draw.random() < 0.5 else line for line in references]
    write_run(tmp_path / "dense", "multi30k", references, before)
    write_run(tmp_path / "run", "multi30k", references, after)
    low, high = paired(tmp_path / "run", tmp_path / "dense")[0]["interval_95"]

    def bleu(lines, chosen):
        said = [lines[i] for i in chosen]
        return sacrebleu.corpus_bleu(said, [[references[i] for i in chosen]]).score

    # A few are enough to see that it is the same interval, and not twice or half of it.
    resamples = [draw.choices(range(30), k=30) for _ in range(120)]
    differences = sorted(bleu(after, chosen) - bleu(before, chosen) for chosen in resamples)
    assert high > low
    assert [low, high] == pytest.approx([differences[3], differences[-4]], abs=0.2 * (high - low))


def test_word_error_rates_are_compared_sentence_by_sentence(tmp_path):
    pytest.importorskip("jiwer")
    references = ["one"] * 100
    write_run(tmp_path / "dense", "fsdd", references, references)
    write_run(tmp_path / "run", "fsdd,size=small", references, ["two"] * 20 + references[20:])
    found, said = paired(tmp_path / "run", tmp_path / "dense")
    # A fifth of the sentences is wrong: a deviation of 4 over resamples, and 1.96 of it to either side.
    assert found["difference"] == pytest.approx(20) and "p_value" not in found
    assert found["interval_95"] == pytest.approx([12.16, 27.84], abs=1.5)
    assert "+20.00 [" in said and "less is better" in said
    # Sentences count by their words. A resample has both, one twice (1 error in 4 words), or the other (1 in 1).
    references = ["one two three four", "five"]
    write_run(tmp_path / "dense2", "fsdd", references, references)
    write_run(tmp_path / "run2", "fsdd", references, ["one two three", "five six"])
    found, _ = paired(tmp_path / "run2", tmp_path / "dense2")
    assert found["difference"] == pytest.approx(100 * 2 / 5)
    assert found["interval_95"] == pytest.approx([25, 100])


@pytest.mark.parametrize(("task", "module"), [("fsdd", "jiwer"), ("multi30k", "sacrebleu")])
def test_both_runs_are_resampled_alike(tmp_path, task, module):
    pytest.importorskip(module)
    references = [f"one two three four five number {n}" for n in range(20)]
    wrong = [line.replace("three", "nine") if n % 2 else line for n, line in enumerate(references)]
    write_run(tmp_path / "dense", task, references, wrong)
    write_run(tmp_path / "run", task, references, wrong)
    found, _ = paired(tmp_path / "run", tmp_path / "dense")
    assert found["difference"] == 0 and found["interval_95"] == [0, 0]
    assert paired(tmp_path / "run", tmp_path / "dense")[0] == found


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
    write_run(tmp_path / "odd", "fsdd", ["one"], ["one"])
    (tmp_path / "odd" / "config.json").write_text("[]")
    write_run(tmp_path / "empty", "fsdd", [], [])
    write_run(tmp_path / "without", "fsdd", ["one"], ["one"])
    (tmp_path / "without" / "references.txt").unlink()
    write_run(tmp_path / "silent", "fsdd", ["one"], ["one"])
    (tmp_path / "silent" / "hypotheses.txt").unlink()
    write_run(tmp_path / "foreign", "fsdd", ["one"], ["one"])
    (tmp_path / "foreign" / "hypotheses.txt").write_bytes(b"\xff\n")
    write_run(tmp_path / "whole", "fsdd", ["one"], ["one"])
    for name, word in (("nowhere", "not a run"), ("pictures", "makes no text"), ("odd", "not a run"),
                       ("damaged", "1 references for 0"), ("unfinished", "--resume"),
                       ("empty", "no references"), ("without", "references.txt cannot be read: No such file"),
                       ("silent", "hypotheses.txt cannot be read"), ("foreign", "hypotheses.txt is damaged")):
        for done in (score(tmp_path / name), score(tmp_path / "whole", "--against", tmp_path / name)):
            assert done.returncode == 2 and word in done.stderr, done.stderr
            assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "whole" / "score.json").exists()
    assert score().returncode == 2


def test_what_cannot_be_written_is_one_line(tmp_path):
    """As on a full disk: no file may get longer than nothing."""
    pytest.importorskip("jiwer")
    run = tmp_path / "run"
    write_run(run, "fsdd", ["one"], ["one"])
    before = sorted(run.iterdir())
    done = score(run, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
    assert done.returncode == 1 and f"{run / 'score.json'}: File too large" in done.stderr, done.stderr
    assert len(done.stderr.splitlines()) == 1 and sorted(run.iterdir()) == before


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
