"""A training by DistributedDataParallel that is hurt goes on; `make test-faults` is the long version."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.cpu("its ranks train on the CPU")
FAULTS = Path(__file__).parents[1] / "faults"


def test_faults(tmp_path: Path) -> None:
    command = [sys.executable, str(FAULTS / "drive.py"), "no program", "--faults", "2", "--a-run", "2"]
    command += ["--seed", "1", "--grace", "10", "--log", str(tmp_path), "--only", "DDP, buckets kept"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").open()]
    assert sum("kind" in line for line in lines) >= 2 and lines[-1]["same"]


def test_torchrun_starts_ranks_anew_and_other_numbers_of_them(tmp_path: Path) -> None:
    command = [sys.executable, str(FAULTS / "elastic.py"), "no program", "--only", "torchrun"]
    command += ["--ranks", "3", "2", "4", "--script-steps", "240"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False,
                          env=os.environ | {"TMPDIR": str(tmp_path)})
    assert done.returncode == 0, done.stdout + done.stderr
