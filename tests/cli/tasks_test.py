"""The tasks on speech and text, with data made up here: what they learn, that a run is a function of
its seed alone, and what is wrong with data. SCALECOM_TEST_DATA names a folder with the real data
sets (cifar-10-batches-bin, fsdd, multi30k): then their small settings are trained, too."""

import json
import os
import pathlib
import signal

from program import (MPIRUN, PROGRAM, checkpoints, expect_ok, expect_refused, expect_same_run, mpirun,
                     result, run, run_tests, start, wait_for, write_cifar10)
from task_data import write_fsdd, write_text_pairs, write_wav

SCALECOM = "scalecom,rate=10,beta=0.3,warmup=5"
REAL = os.environ.get("SCALECOM_TEST_DATA")


def train(task, data, out, *more, method="dense"):
    return ("train", "--task", task, "--data", data, "--learners", 2, "--method", method, "--out", out,
            *more)


def lines(path):
    return path.read_text(encoding="utf-8").splitlines()


def edits(a, b):
    """Of words."""
    row = list(range(len(b) + 1))
    for i, word in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, other in enumerate(b, 1):
            last, row[j] = row[j], min(last + (word != other), row[j - 1] + 1, row[j] + 1)
    return row[-1]


def word_error_rate(run_folder):
    references = [line.split() for line in lines(run_folder / "references.txt")]
    hypotheses = [line.split() for line in (run_folder / "hypotheses.txt").read_text().split("\n")][:-1]
    assert len(references) == len(hypotheses)
    wrong = sum(edits(a, b) for a, b in zip(references, hypotheses))
    return 100 * wrong / sum(map(len, references))


def test_fsdd_learns_to_hear(folder):
    write_fsdd(folder / "data", digits=(1, 4, 8))
    out = folder / "run"
    expect_ok(run(*train("fsdd,size=small", folder / "data", out, "--batch", 4, "--steps", 240,
                         "--checkpoint-every", 240)))
    done = result(out)
    assert done["metric"] == "test word error rate (%)" and done["value"] < 25, done
    assert abs(done["value"] - word_error_rate(out)) < 1e-9
    # As many strings as there are recordings to test with, of two to four digits.
    references = lines(out / "references.txt")
    assert len(references) == 3 * 2 * 5
    assert {2, 3, 4} >= {len(line.split()) for line in references} and set(
        " ".join(references).split()) == {"one", "four", "eight"}


def test_fsdd_decodes_greedily_or_by_beam(folder):
    write_fsdd(folder / "data", digits=(1, 4), takes=range(3, 6))
    for decode in ("greedy", "beam"):
        out = folder / decode
        expect_ok(run(*train(f"fsdd,size=small,decode={decode}", folder / "data", out, "--batch", 2,
                             "--steps", 3)))
        assert abs(result(out)["value"] - word_error_rate(out)) < 1e-9
    assert result(folder / "greedy")["weights"] == result(folder / "beam")["weights"]


def test_multi30k_learns_to_translate(folder):
    write_text_pairs(folder / "data" / "multi30k")
    out = folder / "run"
    expect_ok(run(*train("multi30k,size=small", folder / "data", out, "--batch", 16, "--epochs", 60)))
    done = result(out)
    assert done["metric"] == "validation token accuracy (%)" and done["value"] > 95, done
    references = lines(out / "references.txt")
    assert references == lines(folder / "data" / "multi30k" / "test_2016_flickr.de")
    right = sum(map(str.__eq__, references, lines(out / "hypotheses.txt")))
    assert right >= 0.8 * len(references), (right, len(references))


def expect_divisible(folder, task, data, *more):
    """The same bits in one process, in several, and when stopped and taken up again."""
    command = (task, data)
    expect_ok(run(*train(*command, folder / "alone", *more, method=SCALECOM)))
    if MPIRUN:
        expect_ok(mpirun((2, PROGRAM, *train(*command, folder / "mpi", *more, method=SCALECOM))))
        expect_same_run(folder / "alone", folder / "mpi")
    out = folder / "stopped"
    process = start(*train(*command, out, *more, "--checkpoint-every", 2, method=SCALECOM))
    wait_for(lambda: checkpoints(out) or process.poll() is not None, "a checkpoint")
    process.send_signal(signal.SIGINT)
    process.communicate()
    expect_ok(run("train", "--resume", out))
    expect_same_run(folder / "alone", out)
    for name in ("references.txt", "hypotheses.txt"):
        assert lines(folder / "alone" / name) == lines(out / name)
    expect_ok(run(*train(*command, folder / "other", *more, "--seed", 2, method=SCALECOM)))
    assert result(folder / "alone")["weights"] != result(folder / "other")["weights"]


def test_fsdd_is_a_function_of_its_seed(folder):
    write_fsdd(folder / "data", takes=range(3, 7))
    expect_divisible(folder, "fsdd,size=small", folder / "data", "--batch", 4, "--steps", 12)


def test_multi30k_is_a_function_of_its_seed(folder):
    write_text_pairs(folder / "data")
    expect_divisible(folder, "multi30k,size=small", folder / "data", "--batch", 4, "--steps", 20)


def test_cifar10_has_other_models(folder):
    write_cifar10(folder / "data")
    for model, parameters in (("resnet34", 21282122), ("mobilenetv2", 2236682), ("resnet8", 78042)):
        out = folder / model
        expect_ok(run(*train(f"cifar10,model={model}", folder / "data", out, "--batch", 2, "--steps", 1)))
        assert result(out)["parameters"] == parameters, result(out)


def test_settings_that_are_not(folder):
    write_cifar10(folder / "data")
    for task, word in (("cifar10,model=vgg", "resnet34"), ("cifar10,size=small", "model"),
                       ("fsdd,decode=best", "greedy"), ("multi30k,size=huge", "small"),
                       ("synthetic,size=small", "size")):
        expect_refused(run(*train(task, folder / "data", folder / "out")), word)


def test_missing_data(folder):
    for task, word in (("fsdd", "free-spoken-digit-dataset"), ("multi30k", "multi30k/dataset")):
        expect_refused(run("train", "--task", task, "--method", "dense", "--out", folder / "out"), word,
                       "--data")
        expect_refused(run(*train(task, folder / "nowhere", folder / "out")), word, "missing")


def test_damaged_recordings(folder):
    data = folder / "data"
    write_fsdd(data, digits=(3,), takes=(0, 5))
    bad = data / "recordings" / "3_ann_5.wav"
    whole = bad.read_bytes()
    for name, damage, word in (
            ("short", lambda: bad.write_bytes(whole[:-100]), "truncated"),
            ("text", lambda: bad.write_text("hello, this is not sound"), "not a WAV file"),
            ("rate", lambda: write_wav(bad, [1] * 900, rate=16000), "16000 samples a second"),
            ("stereo", lambda: write_wav(bad, [1] * 900, channels=2), "2 channels"),
            ("long", lambda: write_wav(bad, [1] * 80000), "frames")):
        damage()
        expect_refused(run(*train("fsdd", data, folder / name)), word)
        assert not (folder / name).exists()


def test_unequal_text(folder):
    write_text_pairs(folder / "data", **{"val.de": "ein Mann.\n"})
    expect_refused(run(*train("multi30k", folder / "data", folder / "out")), "val.de has 1 lines", "val.en")


def test_text_that_is_not_utf8(folder):
    data = folder / "data"
    write_text_pairs(data)
    with (data / "test_2016_flickr.de").open("ab") as file:
        file.write("Café\n".encode("latin-1"))
    with (data / "test_2016_flickr.en").open("ab") as file:
        file.write(b"coffee\n")
    expect_refused(run(*train("multi30k", data, folder / "out")), "test_2016_flickr.de is not UTF-8", "line")
    assert not (folder / "out").exists()


def test_adam_has_its_own_momentum(folder):
    write_fsdd(folder / "data", digits=(1,), takes=(0, 5))
    command = train("fsdd,size=small", folder / "data", folder / "out", method="dgc,rate=10")
    expect_refused(run(*command), "momentum", "Adam")
    expect_refused(run(*train("fsdd,size=small", folder / "data", folder / "out", "--momentum", "masked")),
                   "--momentum masked", "Adam")


def test_masked_momentum(folder):
    command = ("train", "--task", "synthetic", "--method", "scalecom,rate=20", "--steps", 20, "--out")
    expect_ok(run(*command, folder / "plain"))
    expect_ok(run(*command, folder / "masked", "--momentum", "masked"))
    assert result(folder / "plain")["weights"] != result(folder / "masked")["weights"]
    expect_refused(run(*command, folder / "other", "--momentum", "none"), "plain or masked")


def test_small_settings_on_real_data(folder):
    """About a minute each on two cores."""
    if not REAL:
        print("skipped: SCALECOM_TEST_DATA does not name a folder with the data sets")
        return
    data = pathlib.Path(REAL)
    expect_ok(run(*train("fsdd,size=small", data, folder / "fsdd"), timeout=600))
    assert result(folder / "fsdd")["value"] < 5, result(folder / "fsdd")
    expect_ok(run(*train("multi30k,size=small", data, folder / "multi30k"), timeout=600))
    assert result(folder / "multi30k")["value"] > 35, result(folder / "multi30k")
    expect_ok(run(*train("cifar10,model=resnet8", data, folder / "cifar10", "--epochs", 1), timeout=600))
    assert result(folder / "cifar10")["value"] > 45, result(folder / "cifar10")
    print(json.dumps({name: result(folder / name)["value"] for name in ("fsdd", "multi30k", "cifar10")}))


if __name__ == "__main__":
    run_tests(globals())
