"""Thousands of steps leave nothing behind."""

from __future__ import annotations

import gc
import resource

import torch
from devices import DEVICE
from models import batch, network
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import scalecom


def _resident_mb() -> float:
    with open("/proc/self/statm", encoding="utf-8") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6


def _on_device_mb() -> float:
    return torch.cuda.memory_allocated() / 1e6 if DEVICE.type == "cuda" else 0.0


def _grow(rank: int, _size: int, steps: int) -> tuple[float, float]:
    """Megabytes gained in the second half of the steps, of the host and of the device."""
    ddp = DistributedDataParallel(network(), bucket_cap_mb=0.1)
    state = scalecom.register(ddp, "scalecom,rate=20")
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01)
    half = on_device = 0.0
    for step in range(steps):
        if step == steps // 2:
            gc.collect()
            half, on_device = _resident_mb(), _on_device_mb()
        optimizer.zero_grad()
        inputs, labels = batch(rank, step % 4, samples=1)
        nn.functional.cross_entropy(ddp(inputs), labels).backward()
        optimizer.step()
        if step % 100 == 0:
            state.stats()
    gc.collect()
    assert state.steps == steps
    return _resident_mb() - half, _on_device_mb() - on_device


def test_two_thousand_steps_leak_nothing(world) -> None:
    # The model's gradient is 0.4 MB: one bucket kept in a hundred steps would show.
    for grown in world(2).run(_grow, 2000):
        assert max(grown) < 2
