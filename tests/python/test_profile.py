"""A model's layers, measured while it trains, as `scalecom plan` reads them."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from devices import DEVICE
from models import batch, network
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import scalecom


class Slow(nn.Module):
    """A layer whose forward pass takes its time, and twice that for the backward pass."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self._seconds = seconds

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        time.sleep(self._seconds)
        outputs = inputs * self.weight
        outputs.register_hook(lambda _: time.sleep(2 * self._seconds))
        return outputs


def _train(ddp: DistributedDataParallel, steps: int, inputs: torch.Tensor, pause: float = 0) -> None:
    for _ in range(steps):
        ddp.zero_grad()
        ddp(inputs).sum().backward()
        time.sleep(pause)


def _slow_layers(rank: int, _size: int, path: str) -> Any:
    model = nn.Sequential(Slow(0.03), Slow(0.01)).to(DEVICE)
    ddp = DistributedDataParallel(model)
    state = scalecom.register(ddp, "scalecom")
    with state.profile(path, batch=5):
        _train(ddp, 4, torch.ones(3, device=DEVICE), pause=0.02)
    return None if rank else json.loads(Path(path).read_text())


@pytest.mark.skipif(DEVICE.type != "cpu", reason="a pause of the host is none of the device's")
def test_layers_take_what_they_take(world, tmp_path: Path) -> None:
    profile = world(2).run(_slow_layers, str(tmp_path / "m.json"))[0]
    assert profile["batch"] == 5 and profile["name"] == "Sequential"
    first, second = profile["layers"]
    assert [tensor["name"] for tensor in first["tensors"]] == ["0.weight"]
    # Pauses may be longer than asked for, on a busy machine, and never shorter.
    assert 28 < first["forward_ms"] < 90 and 9 < second["forward_ms"] < 27, profile
    assert 58 < first["backward_ms"] < 150 and 19 < second["backward_ms"] < 57, profile
    assert 19 < profile["other_ms"] < 57, profile


def _whole_model(rank: int, _size: int, path: str) -> Any:
    ddp = DistributedDataParallel(network())
    state = scalecom.register(ddp, "scalecom,rate=20")
    with state.profile(path, batch=4):
        for step in range(4):
            inputs, labels = batch(rank, step)
            nn.functional.cross_entropy(ddp(inputs), labels).backward()
    hooks = sum(len(module._forward_hooks) for module in ddp.module.modules())
    return hooks, {name: list(p.shape) for name, p in ddp.module.named_parameters()}


def test_every_parameter_is_there_once_and_no_hook_stays(world, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    hooks, shapes = world(2).run(_whole_model, str(path))[0]
    assert hooks == 0 and list(tmp_path.iterdir()) == [path]
    layers = json.loads(path.read_text())["layers"]
    assert [layer["name"] for layer in layers] == ["0", "2", "5", "7"]
    found = {tensor["name"]: tensor["shape"] for layer in layers for tensor in layer["tensors"]}
    assert found == shapes
    assert all(layer["forward_ms"] > 0 and layer["backward_ms"] > 0 for layer in layers)


def _too_few(_rank: int, _size: int, path: str, steps: int) -> None:
    ddp = DistributedDataParallel(network())
    state = scalecom.register(ddp, "dense")
    with state.profile(path, batch=4):
        _train(ddp, steps, batch(0, 0)[0])


@pytest.mark.parametrize("steps", [0, 2])
def test_too_few_steps_are_refused(world, tmp_path: Path, steps: int) -> None:
    for _, failure in world(1).outcomes(_too_few, str(tmp_path / "m.json"), steps):
        assert isinstance(failure[0], ValueError) and "3 or more" in str(failure[0])
    assert not (tmp_path / "m.json").exists()


def _no_batch(_rank: int, _size: int) -> None:
    scalecom.register(DistributedDataParallel(network()), "dense").profile("m.json", batch=0)


def test_a_batch_that_cannot_be_is_refused(world) -> None:
    for _, failure in world(1).outcomes(_no_batch):
        assert isinstance(failure[0], ValueError) and "batch is 0" in str(failure[0])
