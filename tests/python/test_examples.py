"""The examples run as their texts say."""

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_ddp() -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
               str(EXAMPLES / "ddp" / "train.py"), "--steps", "60"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "step 50: loss" in done.stdout
    assert "less than dense" in done.stdout


def test_the_program_comes_along() -> None:
    program = Path(sys.executable).parent / "scalecom"
    done = subprocess.run([program, "train", "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--learners" in done.stdout
