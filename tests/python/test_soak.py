"""Thousands of steps and buckets leave nothing behind, and a slow rank breaks nothing."""

from __future__ import annotations

import gc
import os
import resource
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
import sharded
import torch
from devices import DEVICE
from models import batch, flat, network
from ranks import Ranks
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import scalecom

BUCKETS = 2000


@dataclass(frozen=True)
class Holdings:
    """What a process holds of the system, and of its device."""

    resident_mb: float
    on_device_mb: float
    threads: int
    files: int

    @staticmethod
    def now() -> Holdings:
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return Holdings(
            pages * resource.getpagesize() / 1e6,
            torch.cuda.memory_allocated() / 1e6 if DEVICE.type == "cuda" else 0.0,
            len(os.listdir("/proc/self/task")),
            len(os.listdir("/proc/self/fd")),
        )


def _held_after(before: Holdings) -> Holdings:
    """What is held now. The system counts a thread for a moment longer than it lives."""
    end = time.monotonic() + 10
    while (now := Holdings.now()).threads > before.threads and time.monotonic() < end:
        time.sleep(0.1)
    return now


def _expect_no_more(now: Holdings, before: Holdings) -> None:
    assert now.resident_mb < 1.01 * before.resident_mb
    assert now.on_device_mb <= 1.01 * before.on_device_mb
    assert now.threads <= before.threads and now.files <= before.files


def _patient(ranks: Ranks) -> Ranks:
    ranks.patience = 3600
    return ranks


def _soak(rank: int, _size: int, steps: int, settled: int) -> tuple[Holdings, Holdings]:
    """What a rank holds when it has settled, and at the end."""
    ddp = DistributedDataParallel(network(), bucket_cap_mb=0.1)
    state = scalecom.register(ddp, "scalecom,rate=20")
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01)
    before = Holdings.now()
    for step in range(steps):
        if step == settled:
            before = Holdings.now()
        optimizer.zero_grad()
        inputs, labels = batch(rank, step % 4, samples=1)
        nn.functional.cross_entropy(ddp(inputs), labels).backward()
        optimizer.step()
        if step % 100 == 0:
            state.stats()
    assert state.steps == steps
    return before, _held_after(before)


@pytest.mark.parametrize("steps", [2000, pytest.param(10000, marks=pytest.mark.long)])
def test_thousands_of_steps_leak_nothing(world, steps: int) -> None:
    # The model's gradient is 0.4 MB: one bucket kept in a hundred steps would show.
    for before, after in _patient(world(2)).run(_soak, steps, 100):
        _expect_no_more(after, before)


class Many(nn.Module):
    """A parameter for each of many buckets."""

    def __init__(self) -> None:
        super().__init__()
        draw = torch.Generator().manual_seed(1)
        self.all = nn.ParameterList(torch.randn(100, generator=draw) for _ in range(BUCKETS))
        self.to(DEVICE)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return torch.stack([p @ inputs for p in self.all]).square().mean()


@dataclass(frozen=True)
class Course:
    """Of a training: what it held when it had settled and at its end, and what came out."""

    settled: Holdings
    last: Holdings
    buckets: int
    weights: torch.Tensor


def _train_many(rank: int, steps: int, settled: int) -> Course:
    # Less than a parameter: each is a bucket of its own.
    ddp = DistributedDataParallel(Many(), bucket_cap_mb=1e-4)
    state = scalecom.register(ddp, "scalecom,rate=10,first=compressed")
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01)
    before = Holdings.now()
    for step in range(steps):
        if step == settled:
            before = Holdings.now()
        optimizer.zero_grad()
        inputs = torch.randn(100, generator=torch.Generator().manual_seed(10 * rank + step % 4))
        ddp(inputs.to(DEVICE)).backward()
        optimizer.step()
    assert state.steps == steps
    sizes = str(ddp._get_ddp_logging_data().get("rebuilt_bucket_sizes"))
    after = _held_after(before)
    state.close()
    return Course(before, after, len(sizes.split(",")), flat(ddp.parameters()).cpu())


def _many_buckets(rank: int, _size: int, steps: int, settled: int) -> tuple[Course, Holdings, Holdings]:
    """The course, and what was held before and is held after it."""
    _train_many(rank, 2, 1)  # what torch makes once for all
    before = Holdings.now()
    course = _train_many(rank, steps, settled)
    return course, before, _held_after(before)


@pytest.mark.parametrize(
    ("steps", "settled"), [(10, 4), pytest.param(300, 100, marks=pytest.mark.long)]
)
def test_two_thousand_buckets_in_flight_leak_nothing(world, steps: int, settled: int) -> None:
    ranks = _patient(world(2)).run(_many_buckets, steps, settled)
    for course, before, after in ranks:
        assert course.buckets == BUCKETS
        _expect_no_more(course.last, course.settled)
        assert after.threads <= before.threads and after.files <= before.files
        assert torch.equal(course.weights, ranks[0][0].weights)


def _sharded_models_in_turn(rank: int, _size: int, models: int) -> tuple[Holdings, Holdings]:
    before = Holdings.now()
    for number in range(models):
        model, state = sharded.registered("scalecom,rate=20", 2, 1)
        sharded.steps(model, rank, range(2))
        state.close()
        if number == 1:
            before = Holdings.now()
    return before, _held_after(before)


def test_sharded_models_one_after_another_leave_no_groups(world) -> None:
    for before, after in world(2).run(_sharded_models_in_turn, 8):
        assert after.threads <= before.threads and after.files <= before.files


def _at_a_pace(rank: int, _size: int, slow: int | None, steps: int) -> tuple[torch.Tensor, float]:
    ddp = DistributedDataParallel(network(), bucket_cap_mb=0.1, find_unused_parameters=True)
    scalecom.register(ddp, "scalecom,rate=20,check=conserve")
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01)
    begin = time.monotonic()
    for step in range(steps):
        time.sleep(0.1 if rank == slow else 0.01)
        optimizer.zero_grad()
        inputs, labels = batch(rank, step % 4)
        nn.functional.cross_entropy(ddp(inputs), labels).backward()
        optimizer.step()
    return flat(ddp.parameters()), time.monotonic() - begin


@pytest.mark.parametrize("slow", [0, 2])
def test_a_rank_ten_times_slower_slows_the_run_and_breaks_nothing(world, slow: int) -> None:
    steps = 30
    even = world(3).run(_at_a_pace, None, steps)
    uneven = world(3).run(_at_a_pace, slow, steps)
    for (weights, _), (slowed, seconds) in zip(even, uneven, strict=True):
        assert torch.equal(weights, slowed)
        assert seconds >= 0.1 * steps
