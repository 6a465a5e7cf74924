"""The methods whose ranks choose for themselves, in DDP; and topk against torch.topk."""

from __future__ import annotations

import pytest
import torch
from devices import DEVICE, HOST_ONLY
from models import flat, network, train
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import scalecom

GTOPK = pytest.param("gtopk,rate=20", marks=HOST_ONLY)


class Slope(nn.Module):
    """A model whose gradient is whatever is fed to it."""

    def __init__(self, rows: int, columns: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(rows, columns))

    def forward(self, slope: torch.Tensor) -> torch.Tensor:
        return (self.weight * slope).sum()


def _topk_steps(_rank: int, _size: int, rate: int, steps: int) -> None:
    rows, columns = 300, 128
    ddp = DistributedDataParallel(Slope(rows, columns).to(DEVICE))
    scalecom.register(ddp, f"topk,rate={rate},first=compressed")
    keep = rows * columns // rate
    memory = torch.zeros(rows * columns, device=DEVICE)
    for _ in range(steps):
        slope = torch.randn(rows, columns, device=DEVICE)
        ddp.zero_grad()
        ddp(slope).backward()
        memory += slope.flatten()
        picked = torch.topk(memory.abs(), keep, sorted=False).indices
        expected = torch.zeros_like(memory).scatter_(0, picked, memory[picked])
        memory[picked] = 0
        assert ddp.module.weight.grad is not None
        assert torch.equal(ddp.module.weight.grad.flatten(), expected)


@pytest.mark.parametrize("rate", [3, 100, 38400])
def test_topk_selects_what_torch_topk_does(world, rate: int) -> None:
    world(1).run(_topk_steps, rate, 6)


def _weights(rank: int, _size: int, method: str, steps: int) -> torch.Tensor:
    return train(rank, method, steps)[0]


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("method", ["topk,rate=20", GTOPK, "dgc,rate=20,warmup=4,clip=5",
                                    "weighted,rate=20,a=0.9,b=0.9,check=conserve"])
def test_ranks_stay_together(world, size: int, method: str) -> None:
    results = world(size).run(_weights, method, 6)
    for result in results[1:]:
        assert torch.equal(result, results[0])


def _restored(rank: int, _size: int, method: str) -> bool:
    _, state, _ = train(rank, method, 5)
    fresh = scalecom.register(DistributedDataParallel(network()), method)
    fresh.load_state_dict(state.state_dict())
    mine, theirs = state.state_dict(), fresh.state_dict()
    return fresh.steps == 5 and mine.keys() == theirs.keys() and torch.equal(
        flat(v for k, v in mine.items() if k.startswith("rank")),
        flat(v for k, v in theirs.items() if k.startswith("rank")))


@pytest.mark.parametrize("method", ["topk,rate=20", GTOPK, "dgc,rate=20"])
def test_what_is_remembered_comes_back(world, method: str) -> None:
    assert all(world(2).run(_restored, method))
