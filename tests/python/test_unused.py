"""Parameters that come and go: what a step does not use."""

from __future__ import annotations

import pytest
import scalecom
import torch
from devices import DEVICE
from models import flat
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class _Branches(nn.Module):
    """One of two branches is used, by the parity of the call: its parameters come and go."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Linear(20, 64)
        self.branches = nn.ModuleList([nn.Linear(64, 64), nn.Linear(64, 64)])
        self.calls = 0

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return self.branches[self.calls % 2](torch.relu(self.stem(inputs)))


def _unused(rank: int, _size: int) -> torch.Tensor:
    torch.manual_seed(0)
    model = _Branches().to(DEVICE)
    ddp = DistributedDataParallel(model, find_unused_parameters=True)
    scalecom.register(ddp, "scalecom,rate=10,check=conserve")
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    for step in range(6):
        optimizer.zero_grad()
        torch.manual_seed(10 * rank + step)
        ddp(torch.randn(4, 20).to(DEVICE)).square().mean().backward()
        optimizer.step()
    return flat(model.parameters())


def test_ranks_stay_together(world) -> None:
    one, other = world(2).run(_unused)
    assert torch.equal(one, other)


def _books_of_unused(rank: int, size: int, method: str, views: bool, to_none: bool) -> dict[str, float]:
    """By parameter, how much of what went in neither came out nor is remembered."""
    torch.manual_seed(0)
    model, alone = _Branches().to(DEVICE), _Branches().to(DEVICE)
    alone.load_state_dict(model.state_dict())
    ddp = DistributedDataParallel(model, find_unused_parameters=True, gradient_as_bucket_view=views)
    state = scalecom.register(ddp, method)
    given = {n: torch.zeros(p.shape, dtype=torch.double) for n, p in model.named_parameters()}
    left = {n: torch.zeros_like(t) for n, t in given.items()}
    for step in range(6):
        torch.manual_seed(10 * rank + step)
        inputs = torch.randn(4, 20).to(DEVICE)
        for one in (ddp, alone):
            one.zero_grad(set_to_none=to_none)
            one(inputs).square().mean().backward()
        for (name, parameter), own in zip(model.named_parameters(), alone.parameters(), strict=True):
            if own.grad is not None:
                given[name] += own.grad.cpu()
            if parameter.grad is not None:
                left[name] -= parameter.grad.cpu()
    memories = state._core.memories()
    for name, tensor in left.items():
        own = given[name]
        if name in memories:
            own = own - memories[name].double().view(own.shape)
        torch.distributed.all_reduce(own := own.to(DEVICE))
        tensor += own.cpu() / size
    return {name: float(tensor.abs().max()) for name, tensor in left.items()}


@pytest.mark.parametrize("to_none", [True, False], ids=["none", "zeros"])
@pytest.mark.parametrize("views", [False, True], ids=["apart", "views"])
def test_nothing_is_lost_of_parameters_that_no_rank_uses(world, views: bool, to_none: bool) -> None:
    for lost in world(2).run(_books_of_unused, "scalecom,rate=10,beta=1,first=compressed", views, to_none):
        assert max(lost.values()) < 1e-6, lost


def _untouched(rank: int, _size: int, method: str | None) -> list[bool]:
    """Which gradients are None after a step."""
    torch.manual_seed(0)
    model = _Branches().to(DEVICE)
    ddp = DistributedDataParallel(model, find_unused_parameters=True)
    if method is not None:
        scalecom.register(ddp, method)
    ddp(torch.randn(4, 20).to(DEVICE)).square().mean().backward()
    return [p.grad is None for p in model.parameters()]


@pytest.mark.parametrize("method", ["dense", "half", "scalecom,rate=10"])
def test_what_no_rank_uses_and_nothing_was_sent_of_has_no_gradient(world, method: str) -> None:
    assert world(2).run(_untouched, method) == world(2).run(_untouched, None)
