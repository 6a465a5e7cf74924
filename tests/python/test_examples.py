"""The examples run as their texts say."""

import os
import subprocess
import sys
from pathlib import Path

import devices
import pytest
import torch

EXAMPLES = Path(__file__).parents[2] / "examples"


def _torchrun(example: str, *arguments: str, ranks: int = 2) -> str:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks),
               str(EXAMPLES / example / "train.py"), *arguments]
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    if devices.KIND == "cpu":
        environment["CUDA_VISIBLE_DEVICES"] = ""
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("example", "arguments"),
    [("ddp", ["--steps", "60"]), ("accelerate", ["--epochs", "1"]), ("lightning", ["--epochs", "1"])],
)
def test_an_example(example: str, arguments: list[str]) -> None:
    if devices.KIND == "cuda" and torch.cuda.device_count() < 2:
        pytest.skip("an example takes a GPU for each of its two ranks")
    assert "less than dense" in _torchrun(example, *arguments)


@pytest.mark.cpu("it takes a GPU for each of its four ranks")
def test_a_gpt_goes_on_with_another_number_of_nodes(tmp_path: Path) -> None:
    small = ["--width", "32", "--blocks", "2", "--batch", "2", "--checkpoint-every", "15"]
    small += ["--out", str(tmp_path)]
    begun = _torchrun("fsdp", "--shards", "2", "--steps", "30", *small, ranks=4)
    assert "step 30: loss" in begun and "between nodes each rank sent" in begun
    for shards in ("2", "1"):  # one node of two, then two of one
        steps = "45" if shards == "2" else "60"
        resumed = _torchrun("fsdp", "--shards", shards, "--steps", steps, *small)
        assert f"going on after step {int(steps) - 15}" in resumed
        assert f"step {steps}: loss" in resumed


def test_the_program_comes_along() -> None:
    program = Path(sys.executable).parent / "scalecom"
    done = subprocess.run([program, "train", "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--learners" in done.stdout
