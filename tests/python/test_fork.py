"""A process that was forked after register(), as a loader of data is, may look at the state."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.cpu("CUDA does not outlive a fork, and no thread of ours works on buckets there")

SCRIPT = """
import multiprocessing, sys

import scalecom, torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=0, world_size=1)
ddp = DistributedDataParallel(nn.Linear(8, 8))
state = scalecom.register(ddp, "scalecom,rate=4")
ddp(torch.ones(2, 8)).sum().backward()

fork = multiprocessing.get_context("fork")
seen = fork.Queue()
child = fork.Process(target=lambda: seen.put((state.steps, state.method)), daemon=True)
child.start()
assert seen.get(timeout=20) == (1, state.method)
child.join(20)
assert child.exitcode == 0, child.exitcode
ddp(torch.ones(2, 8)).sum().backward()
print("steps:", state.steps)
"""


def test_a_forked_process_does_not_wait_for_a_thread_that_it_has_not(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "store")], capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stderr
    assert "steps: 2" in run.stdout
