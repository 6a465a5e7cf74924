"""A process ends well whatever is still under way in it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.cpu("on a GPU no thread of ours works on buckets")

# Rank 0 leaves its step when the bucket is with the worker, and drops the model. While it holds the
# interpreter's lock on its way out, for good, rank 1 comes, and rank 0's worker ends the bucket.
SCRIPT = """
import atexit, ctypes, os, sys

rank, theirs, mine = (int(word) for word in sys.argv[1:4])
if rank == 0:
    # The last first: whatever is imported later has its say before.
    libc = ctypes.PyDLL(None)
    atexit.register(libc.usleep, 500_000)
    atexit.register(libc.read, theirs, ctypes.create_string_buffer(1), 1)
    atexit.register(os.write, mine, b"0")

import scalecom, torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

def leave(_gradient):
    raise KeyboardInterrupt

def step():
    ddp = DistributedDataParallel(nn.Linear(8, 8))
    state = scalecom.register(ddp, "scalecom,rate=4")
    inputs = torch.ones(2, 8, requires_grad=True) * 1
    if rank == 0:
        inputs.register_hook(leave)
    else:
        os.read(theirs, 1)
    ddp(inputs).sum().backward()

dist.init_process_group("gloo", init_method="file://" + sys.argv[4], rank=rank, world_size=2)
try:
    step()
except KeyboardInterrupt:
    print("left")
if rank == 1:
    os.write(mine, b"1")
"""


def test_a_bucket_ends_after_the_interpreter(tmp_path: Path) -> None:
    (read_0, write_1), (read_1, write_0) = os.pipe(), os.pipe()
    ends = [(read_0, write_0), (read_1, write_1)]
    ranks = [
        subprocess.Popen([sys.executable, "-c", SCRIPT, str(rank), *map(str, pipes), str(tmp_path / "store")],
                         pass_fds=pipes, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for rank, pipes in enumerate(ends)
    ]
    for pipes in ends:
        for end in pipes:
            os.close(end)
    outcomes = [rank.communicate(timeout=120) for rank in ranks]
    assert "left" in outcomes[0][0]
    for rank, (_, errors) in zip(ranks, outcomes, strict=True):
        assert rank.returncode == 0, errors
