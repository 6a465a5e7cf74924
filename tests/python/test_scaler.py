"""Training with a GradScaler: overflow does not reach the memory, which follows the scale, also where it is
saved or its options change."""

from __future__ import annotations

import tempfile
from collections.abc import Callable

import pytest
import torch
import torch.distributed as dist
from devices import DEVICE
from models import batch, flat, network
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import scalecom

STEPS = 24
OVERFLOWS = {3, 4, 9, 17}  # steps in which one rank's gradient is not finite


def _spoil(ddp: DistributedDataParallel, parameter: str, when: list[bool]) -> None:
    """Where `when` says so, an entry of this parameter's gradient becomes infinite."""
    tensor = dict(ddp.module.named_parameters())[parameter]

    def hook(gradient: torch.Tensor) -> torch.Tensor:
        if not when[0]:
            return gradient
        spoilt = gradient.clone()
        spoilt.view(-1)[7] = torch.inf
        return spoilt

    tensor.register_hook(hook)


def _nothing(state: scalecom.State) -> None:
    pass


def _configure(state: scalecom.State) -> None:
    state.configure("rate=10")


def _save_and_load(state: scalecom.State) -> None:
    with tempfile.TemporaryDirectory() as own:
        folders = [own]
        dist.broadcast_object_list(folders)
        state.save(folders[0])
        state.load(folders[0])
        dist.barrier()


def _state_dict(state: scalecom.State) -> None:
    state.load_state_dict(state.state_dict())


def _train(
    rank: int, _size: int, parameter: str, bad_rank: int, scaled: bool, between: Callable = _nothing
) -> torch.Tensor:
    """The same training with a scaler, and without one where the steps are skipped by hand. `between` two
    steps something is done that should change nothing."""
    ddp = DistributedDataParallel(network(), bucket_cap_mb=0.1)
    scaler = torch.amp.GradScaler(DEVICE.type, init_scale=1024.0, growth_interval=3) if scaled else None
    state = scalecom.register(ddp, "scalecom,rate=10,check=conserve", scaler=scaler)
    when = [False]
    _spoil(ddp, parameter, when)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)
    for step in range(STEPS):
        when[0] = step in OVERFLOWS and rank == bad_rank
        optimizer.zero_grad()
        inputs, labels = batch(rank, step % 4)
        loss = nn.functional.cross_entropy(ddp(inputs), labels)
        if scaler is not None:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            between(state)
        else:
            loss.backward()
            if step in OVERFLOWS:
                state.undo()
            else:
                optimizer.step()
    return flat(ddp.module.parameters())


# Scales are powers of two, so that scaled training has the very bits of the other.
@pytest.mark.parametrize("parameter", ["0.bias", "2.weight", "5.weight", "7.weight"])
@pytest.mark.parametrize("bad_rank", [0, 1])
def test_skipped_steps_leave_no_trace(world, parameter: str, bad_rank: int) -> None:
    scaled = world(2).run(_train, parameter, bad_rank, True)
    plain = world(2).run(_train, parameter, bad_rank, False)
    assert torch.isfinite(scaled[0]).all()
    for result in [*scaled, *plain]:
        assert torch.equal(result, plain[0])


@pytest.mark.parametrize("between", [_configure, _save_and_load, _state_dict])
def test_what_is_done_between_steps_changes_nothing(world, between: Callable) -> None:
    disturbed = world(2).run(_train, "5.weight", 1, True, between)
    plain = world(2).run(_train, "5.weight", 1, False)
    for result in disturbed:
        assert torch.equal(result, plain[0])


def _fp16(rank: int, _size: int, half: bool) -> float:
    """The loss after training by heart, in fp16 with a scale that overflows at first, or in fp32."""
    ddp = DistributedDataParallel(network(), bucket_cap_mb=0.1)
    scaler = torch.amp.GradScaler(DEVICE.type, init_scale=2.0**24, growth_interval=20, enabled=half)
    scalecom.register(ddp, "scalecom,rate=10,beta=0.5", scaler=scaler)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)
    loss = torch.tensor(0.0)
    for step in range(120):
        optimizer.zero_grad()
        inputs, labels = batch(rank, step % 4)
        with torch.autocast(DEVICE.type, torch.float16, enabled=half):
            loss = nn.functional.cross_entropy(ddp(inputs), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return float(loss.detach())


def test_fp16_ends_where_fp32_does(world) -> None:
    fp16 = sum(world(2).run(_fp16, True)) / 2
    fp32 = sum(world(2).run(_fp16, False)) / 2
    assert fp16 == pytest.approx(fp32, abs=0.25)
