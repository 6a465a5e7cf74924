"""The user's mistakes: one line that says what would be right, status 2."""

import gzip
import json
import os
import pathlib
import shlex
import struct

from program import PROGRAM, expect_ok, expect_refused, run, run_tests, write_cifar10

TRAIN = ("train", "--task", "synthetic", "--method", "dense")


def test_help_and_version(folder):
    assert expect_ok(run("--version")).stdout.startswith("scalecom ")
    for command in [(), ("train",), ("compare",), ("inspect",), ("plan",), ("reproduce",),
                    ("bench", "step"), ("bench", "reduce")]:
        text = expect_ok(run(*command, "--help")).stdout
        assert "Example:\n  scalecom" in text, text


def test_bench_step(folder):
    done = expect_ok(run("bench", "step", "--elements", 100000, "--repeats", 3, "--json", "-"))
    figures = json.loads(done.stdout)
    assert figures["verified"] is True
    for key in ("device", "elements", "rate", "threads", "step_ms", "plain_pass_ms", "copy_ms",
                "floor_ms", "ratio", "peak_bytes"):
        assert key in figures, key
    for wrong in (("--elements", 0), ("--rate", 1), ("--repeats", 0), ("--threads", -1), ("--beta", 2)):
        expect_refused(run("bench", "step", *wrong))
    expect_refused(run("bench", "step", "--json", folder), "is a folder")
    # More bytes than a process can address.
    expect_refused(run("bench", "step", "--elements", 10**15), "[memory]", status=1)


def test_json_replaces_no_pipe_or_device(folder):
    """A rename would, and as root /dev/null would be a plain file from then on."""
    pipe, link = folder / "pipe", folder / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for target in (pipe, link):
        expect_refused(run("reproduce", "--list", "--json", target), "no plain file", "give -")
    assert pipe.is_fifo() and link.is_symlink()


def test_bench_reduce(folder):
    reduce = ("bench", "reduce", "--elements", 1000)
    expect_refused(run(*reduce, "--device", "gpu"), "'gpu'", "cuda")
    expect_refused(run(*reduce, "--device", "cuda:0", "--ranks", 2), "--ranks", "cuda:0")
    expect_refused(run(*reduce, "--ranks", 1000), "--ranks 1000")
    expect_refused(run(*reduce, "--methods", "nope"), "nope")
    expect_refused(run(*reduce, "--deadline", 0), "--deadline 0")


def test_bench_step_on_a_terminal(folder):
    """The progress bar is drawn, and the table comes after it."""
    command = f"{shlex.quote(PROGRAM)} bench step --elements 3000000 --rate 2 --threads 1 --repeats 99"
    done = run("-qec", command, "/dev/null", program=("script",))
    expect_ok(done)
    assert "[####" in done.stdout and "leader's step" in done.stdout, done.stdout


def test_no_or_unknown_command(folder):
    expect_refused(run(), "subcommand is required", "--help")
    expect_refused(run("trane"), "trane", "train")
    expect_refused(run("bench", "setp"), "scalecom bench", "'setp'", "step, reduce")
    expect_refused(run("bench"), "subcommand is required", "scalecom bench --help")
    expect_refused(run("train", "--bogus"), "--bogus is not an option", "scalecom train --help")
    expect_refused(run("train", "--tsk", "x"), "--tsk is not an option; see")


def test_missing_options(folder):
    out = folder / "run"
    expect_refused(run("train", "--method", "dense", "--out", out), "--task", "fashion-mnist")
    expect_refused(run("train", "--task", "synthetic", "--out", out), "--method", "dense", "scalecom")
    expect_refused(run(*TRAIN), "--out")
    assert not out.exists()


def test_values_out_of_range(folder):
    out = ("--out", folder / "run")
    expect_refused(run("train", "--task", "nope", "--method", "dense", *out), "cifar10, fashion-mnist, fsdd, multi30k, synthetic")
    expect_refused(run(*TRAIN, "--learners", 0, *out), "--learners 0", "1 to")
    expect_refused(run(*TRAIN, "--learners", -2, *out), "-2")
    expect_refused(run(*TRAIN, "--learners", "four", *out), "--learners")
    expect_refused(run(*TRAIN, "--steps", 0, *out), "--steps 0")
    expect_refused(run(*TRAIN, "--epochs", 0, *out), "--epochs 0")
    expect_refused(run(*TRAIN, "--epochs", 1, "--steps", 1, *out), "--epochs", "--steps", "give one")
    expect_refused(run(*TRAIN, "--batch", 0, *out), "--batch 0")
    expect_refused(run(*TRAIN, "--lr", 0, *out), "--lr 0")
    expect_refused(run(*TRAIN, "--weight-decay", -1, *out), "--weight-decay -1")
    # No number beyond the range is taken for its end: runs of two such seeds would be the same.
    for wrong in (-1, 2**63, 2**64 - 1, 10**30):
        expect_refused(run(*TRAIN, "--seed", wrong, *out), "--seed", "out of range")
    expect_refused(run("compare", *TRAIN[1:3], "--methods", "dense", "--seed", 2**63, *out), "--seed")
    expect_refused(run(*TRAIN, "--threads", 0, *out), "--threads")
    expect_refused(run(*TRAIN, "--deadline", 0, *out), "--deadline")
    expect_refused(run(*TRAIN, "--checkpoint-every", 0, *out), "--checkpoint-every")
    for wrong in (0, -1):
        expect_refused(run(*TRAIN, "--similarity-every", wrong, *out), f"--similarity-every {wrong}", "1 to")
    for wrong in ("often", "1.5"):
        expect_refused(run(*TRAIN, "--similarity-every", wrong, *out), "--similarity-every", wrong)
    expect_refused(run(*TRAIN, "--data", folder, *out), "--data")
    assert not (folder / "run").exists()


def test_devices(folder):
    train = (*TRAIN, "--steps", 2, "--out", folder / "run", "--device")
    expect_refused(run(*train, "gpu"), "'gpu' is no device", "cpu, cuda")
    expect_refused(run(*train, "cuda:"), "'cuda:' is no device")
    expect_refused(run(*train, "cuda:1000"), "[device]", "cuda:1000")
    assert not (folder / "run").exists()
    # Where there is no GPU, or no CUDA in this build, it says so.
    done = run(*train, "cuda")
    if done.returncode != 0:
        expect_refused(done, "cuda")
        assert "this build has no CUDA" in done.stderr or "no CUDA device" in done.stderr or (
            "NVIDIA driver" in done.stderr) or "libtorch of this build" in done.stderr, done.stderr
        assert not (folder / "run").exists()


def test_methods_that_cannot_be(folder):
    def method(spec, *words):
        done = run("train", "--task", "synthetic", "--out", folder / "run", "--method", spec)
        expect_refused(done, *words)

    method("nope", "nope", "dense", "scalecom")
    method("scalecom,rats=3", "rats", "rate")
    method("scalecom,rate=0", "rate=0", "[1,")
    method("scalecom,beta=2", "beta=2", "(0, 1]")
    method("scalecom,rate", "rate")
    method("dense,rate=100", "rate")
    method("", "--method")
    assert not (folder / "run").exists()


def test_output_folders(folder):
    (folder / "file").write_text("x")
    expect_refused(run(*TRAIN, "--out", folder / "file"), "is a file", "--out")
    expect_refused(run(*TRAIN, "--out", folder / "file" / "below"), "cannot be written", "--out")
    expect_refused(run(*TRAIN, "--out", folder), "not empty", "--out")
    done = run(*TRAIN, "--steps", 5, "--out", folder / "run", "--json", folder / "none" / "x.json")
    expect_refused(done, "x.json", "--json")

    short = (*TRAIN, "--learners", 2, "--steps", 5, "--out", folder / "run")
    expect_ok(run(*short))
    expect_refused(run(*short), "complete")
    expect_refused(run(*short, "--seed", 9), "another run", "--out")
    (folder / "run" / "result.json").unlink()
    expect_refused(run(*short), "--resume")


def test_paths_that_are_not_utf8(folder):
    """JSON, in which a run keeps where its data is, cannot have them."""
    odd = os.fsdecode(os.fsencode(folder) + b"/caf\xe9")
    expect_refused(run(*TRAIN, "--steps", 5, "--out", odd), "--out", "not UTF-8")
    write_cifar10(pathlib.Path(odd))
    cifar10 = ("--task", "cifar10,model=resnet8", "--data", odd)
    expect_refused(run("train", *cifar10, "--method", "dense", "--out", folder / "run"), "--data", "not UTF-8")
    expect_refused(run("compare", *cifar10, "--methods", "dense", "--out", folder / "run"), "--data", "not UTF-8")
    assert not (folder / "run").exists()


def test_paths_that_cannot_be_looked_at(folder):
    """As in a folder of somebody else's; root, who may see all, is refused what leads nowhere."""
    loop = folder / "loop"
    loop.symlink_to(loop)
    for task in ("cifar10", "fashion-mnist", "fsdd", "multi30k"):
        done = run("train", "--task", task, "--method", "dense", "--data", loop, "--out", folder / "run")
        expect_refused(done, str(loop), "choose another --data")
    expect_refused(run(*TRAIN, "--out", folder / "run", "--json", loop / "x.json"), str(loop), "choose another --json")
    assert not (folder / "run").exists()


def test_runs_to_resume(folder):
    expect_refused(run("train", "--resume", folder / "none"), "none", "config.json")
    expect_refused(run("train", "--resume", folder, "--method", "dense"), "leave out --method")
    expect_refused(run("train", "--resume", folder, "--similarity-every", 5), "leave out --similarity-every")
    (folder / "config.json").write_text("{\"task\": ")
    done = run("train", "--resume", folder)
    expect_refused(done, "config.json is damaged: it is not JSON")
    assert done.stderr.count("config.json") == 1, done.stderr


def idx(dimensions, payload):
    return struct.pack(">BBBB", 0, 0, 8, len(dimensions)) + struct.pack(
        f">{len(dimensions)}I", *dimensions) + payload


def write_fashion_mnist(folder, **changes):
    """Ten pictures each, gzipped or not, some of the files as `changes` has them."""
    files = {
        "train-images-idx3-ubyte": idx([10, 28, 28], bytes(7840)),
        "train-labels-idx1-ubyte": idx([10], bytes(range(10))),
        "t10k-images-idx3-ubyte.gz": gzip.compress(idx([10, 28, 28], bytes(7840))),
        "t10k-labels-idx1-ubyte.gz": gzip.compress(idx([10], bytes(range(10)))),
    }
    folder.mkdir()
    for name, content in files.items():
        content = changes.get(name.split("-idx")[0].replace("-", "_"), content)
        if content is not None:
            (folder / name).write_bytes(content)
    return folder


def test_fashion_mnist_files(folder):
    def train(data):
        return run("train", "--task", "fashion-mnist", "--method", "dense", "--learners", 2, "--steps", 2,
                   "--batch", 4, "--data", data, "--out", folder / "run")

    def refused(number, *words, **changes):
        data = write_fashion_mnist(folder / f"data{number}", **changes)
        expect_refused(train(data), "apt-get install dataset-fashion-mnist", "--data", *words)

    pictures = idx([10, 28, 28], bytes(7840))
    refused(0, "train-images-idx3-ubyte", "missing", train_images=None)
    refused(1, "train-images-idx3-ubyte", "truncated", train_images=pictures[:-1])
    refused(2, "t10k-images-idx3-ubyte.gz", "truncated", t10k_images=gzip.compress(pictures)[:-9])
    refused(3, "train-labels-idx1-ubyte", "not an IDX file", train_labels=b"<html>not found</html>")
    refused(4, "10 labels", "9 pictures", train_images=idx([9, 28, 28], bytes(9 * 784)))
    refused(5, "32 x 32", train_images=idx([10, 32, 32], bytes(10240)))
    refused(6, "label over 9", train_labels=idx([10], bytes(range(1, 11))))
    expect_refused(train(folder / "nowhere"), "nowhere", "missing")
    assert not (folder / "run").exists()
    expect_ok(train(write_fashion_mnist(folder / "whole")))


def test_cifar10_files(folder):
    def train(*data):
        return run("train", "--task", "cifar10", "--method", "dense", "--learners", 1, "--steps", 1,
                   "--batch", 2, "--out", folder / "run", *data)

    def refused(number, *words, **changes):
        write_cifar10(folder / f"data{number}", **changes)
        expect_refused(train("--data", folder / f"data{number}"), "cifar-10-batches-bin", "--data", *words)

    expect_refused(train(), "cifar10", "cifar-10-batches-bin", "--data")
    expect_refused(train("--data", folder / "nowhere"), "nowhere", "missing")
    refused(0, "data_batch_3.bin", "missing", data_batch_3=None)
    refused(1, "test_batch.bin", "truncated", test_batch=bytes(3072))
    refused(2, "data_batch_5.bin", "not whole", data_batch_5=bytes(3073))
    refused(3, "data_batch_1.bin", "label 60", data_batch_1=b"<" * 3073)
    assert not (folder / "run").exists()
    write_cifar10(folder / "whole" / "cifar-10-batches-bin")
    expect_ok(train("--data", folder / "whole"))


def test_divergence_is_a_failure(folder):
    done = run(*TRAIN, "--lr", 1e30, "--out", folder / "run")
    expect_refused(done, "not finite", "--lr", status=1)


def test_inspect(folder):
    expect_refused(run("inspect"), "path")
    expect_refused(run("inspect", folder / "none"), "does not exist")
    expect_refused(run("inspect", folder), str(folder))
    (folder / "x.safetensors").write_bytes(b"something else altogether")
    expect_refused(run("inspect", folder / "x.safetensors"), "x.safetensors")


if __name__ == "__main__":
    run_tests(globals())
