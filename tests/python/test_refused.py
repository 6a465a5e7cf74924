"""A step of which one bucket is refused, while others are still under way."""

from __future__ import annotations

import pytest
import scalecom
import torch
from devices import DEVICE
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class _Spoiled:
    """A long layer, whose bucket comes last, and a shorter one, which fills another, and whose gradient may
    be spoiled."""

    def __init__(self, rank: int) -> None:
        torch.manual_seed(0)
        long, short = nn.Linear(2000, 1500, bias=False), nn.Linear(1500, 300, bias=False)
        self._ddp = DistributedDataParallel(nn.Sequential(long, short).to(DEVICE), bucket_cap_mb=1)
        self.state = scalecom.register(self._ddp, "scalecom,rate=10,first=compressed,nonfinite=error")
        self._random = torch.Generator().manual_seed(rank)
        self._factor = 1.0
        short.weight.register_hook(lambda grad: grad * self._factor)

    def backward(self) -> None:
        self._backward(torch.randn(4, 2000, generator=self._random), 1.0)

    def refused_backward(self) -> None:
        """Whose gradient of the long layer is 0, so that its memory changes by what is sent alone."""
        with pytest.raises(Exception, match="not finite"):
            self._backward(torch.zeros(4, 2000), float("nan"))

    def _backward(self, inputs: torch.Tensor, factor: float) -> None:
        self._factor = factor
        self._ddp.zero_grad()
        self._ddp(inputs.to(DEVICE)).square().mean().backward()

    def memories(self) -> dict[str, torch.Tensor]:
        return {k: v for k, v in self.state.state_dict().items() if k.startswith("rank")}


def _take_back(rank: int, _size: int) -> int:
    model = _Spoiled(rank)
    for _ in range(3):
        model.backward()
    for _ in range(5):
        before = model.memories()
        model.refused_backward()
        model.state.undo()
        after = model.memories()
        assert before.keys() == after.keys()
        for name, memory in before.items():
            assert torch.equal(after[name], memory), name
        model.backward()
    return model.state.steps


def test_undo_takes_back_what_was_still_under_way(world) -> None:
    assert world(2).run(_take_back) == [13, 13]


def _load(rank: int, _size: int, folder: str) -> bool:
    model = _Spoiled(rank)
    for _ in range(3):
        model.backward()
    model.state.save(folder)
    saved = model.memories()
    same = True
    for _ in range(5):
        model.refused_backward()
        model.state.load(folder)
        loaded = model.memories()
        same = same and all(torch.equal(loaded[name], memory) for name, memory in saved.items())
        model.backward()
    return same


def test_a_load_waits_for_what_was_still_under_way(world, tmp_path) -> None:
    assert world(2).run(_load, str(tmp_path / "state")) == [True, True]
