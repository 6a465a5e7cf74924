"""A step of which one bucket is refused, while others are still under way."""

from __future__ import annotations

import time

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
        self._ddp = DistributedDataParallel(
            nn.Sequential(long, short).to(DEVICE), bucket_cap_mb=1, gradient_as_bucket_view=True
        )
        self.state = scalecom.register(self._ddp, "scalecom,rate=10,first=compressed,nonfinite=error")
        self._random = torch.Generator().manual_seed(rank)
        self._factor = 1.0
        self.late = 0.0  # seconds by which the long layer's bucket is
        short.weight.register_hook(lambda grad: grad * self._factor)
        long.weight.register_hook(lambda _grad: time.sleep(self.late))

    def backward(self) -> None:
        self._backward(torch.randn(4, 2000, generator=self._random), 1.0)

    def refused_backward(self) -> None:
        """Whose gradient of the long layer is 0, so that its memory changes by what is sent alone."""
        self._refused_backward(torch.zeros(4, 2000))

    def refused_backward_with_gradients(self) -> None:
        self._refused_backward(torch.randn(4, 2000, generator=self._random))

    def _refused_backward(self, inputs: torch.Tensor) -> None:
        with pytest.raises(Exception, match="not finite"):
            self._backward(inputs, float("nan"))

    def long_gradient(self) -> torch.Tensor:
        """As it lies in the bucket, into which the next backward() writes."""
        return self._ddp.module[0].weight.grad

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


def _go_on_at_once(rank: int, _size: int) -> bool:
    model = _Spoiled(rank)
    for _ in range(3):
        model.backward()
    model.late = 0.3 * rank
    same = True
    for _ in range(3):
        model.refused_backward_with_gradients()
        gradient = model.long_gradient().clone()
        assert model.state.steps > 0  # waits for all that is under way
        same = same and torch.equal(model.long_gradient(), gradient)
    return same


def test_a_backward_that_fails_leaves_no_bucket_under_way(world) -> None:
    """The next one writes into the same buckets."""
    assert world(2).run(_go_on_at_once) == [True, True]


class _HalfUsed(nn.Module):
    """Whose first layer has no part in the result: its bucket would be the last."""

    def __init__(self) -> None:
        super().__init__()
        self.unused, self.used = nn.Linear(900, 900, bias=False), nn.Linear(1500, 300, bias=False)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.used(inputs)


def _refuse_without_a_last_bucket(rank: int, _size: int) -> tuple[int, list[str]]:
    """The steps, and what has a memory."""
    torch.manual_seed(0)
    ddp = DistributedDataParallel(
        _HalfUsed().to(DEVICE), bucket_cap_mb=1, find_unused_parameters=True, skip_all_reduce_unused_params=True
    )
    state = scalecom.register(ddp, "scalecom,rate=10,first=compressed,nonfinite=error")
    inputs = torch.randn(4, 1500, generator=torch.Generator().manual_seed(rank)).to(DEVICE)
    for spoiled in (False, True, True, False):
        ddp.zero_grad()
        loss = ddp(inputs * float("nan") if spoiled else inputs).square().mean()
        if spoiled:
            with pytest.raises(Exception, match="not finite"):
                loss.backward()
            state.undo()
        else:
            loss.backward()
    return state.steps, [k for k in state.state_dict() if k.startswith("rank")]


def test_a_failure_is_told_where_the_last_bucket_is_skipped(world) -> None:
    assert world(2).run(_refuse_without_a_last_bucket) == [(4, ["rank0.used.weight"]), (4, ["rank1.used.weight"])]
