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


def test_torchrun_starts_the_ranks_anew(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["--max-restarts", "1", str(FAULTS / "ddp_train.py"), "--steps", "60", "--keep-buckets"]
    command += ["--deadline", "60"]
    environment = dict(os.environ, OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="")

    def train(name: str, *more: str) -> dict[str, object]:
        done = subprocess.run([*command, "--out", str(tmp_path / name), *more], capture_output=True, text=True,
                              timeout=300, check=False, env=environment)
        assert done.returncode == 0, done.stderr
        assert ("going on after step 30 with 2 ranks" in done.stdout) == (name == "killed")
        return json.loads((tmp_path / name / "result.json").read_text())

    assert train("killed", "--die-at", "30") == train("straight")
