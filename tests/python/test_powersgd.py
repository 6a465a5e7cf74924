"""PowerSGD beside PyTorch's own: a run of its hook goes on under ours, to the same gradients."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from devices import HOST_ONLY
from models import batch, flat, network, train
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

import scalecom

DENSE_STEPS = 2  # the hook's least


class Witness:
    """PyTorch's hook, and the parameters of its bucket in their order."""

    def __init__(self, rank: int) -> None:
        self.state = PowerSGDState(None, matrix_approximation_rank=rank, start_powerSGD_iter=DENSE_STEPS)
        self.order: list[torch.Tensor] = []

    def hook(self, bucket: torch.distributed.GradBucket) -> torch.futures.Future[torch.Tensor]:
        assert bucket.is_last(), "one bucket is expected"
        self.order = list(bucket.parameters())
        return powerSGD_hook(self.state, bucket)

    def memories(self, ddp: DistributedDataParallel) -> dict[str, torch.Tensor]:
        """The hook's errors and Qs, as our state has them."""
        names = {id(p): name for name, p in ddp.module.named_parameters()}
        rank = self.state.matrix_approximation_rank
        errors, qs = self.state.error_dict[0], self.state.q_memory_dict[0]
        found = {}
        for parameter in self.order:
            rows = parameter.shape[0]
            columns = parameter.numel() // rows
            error, errors = errors[: parameter.numel()], errors[parameter.numel():]
            if (rows + columns) * rank * 2 >= rows * columns:
                continue  # dense
            q, qs = qs[: columns * rank], qs[columns * rank:]
            found[names[id(parameter)]] = error.clone()
            found[names[id(parameter)] + "/q"] = q.view(columns, rank).t().contiguous().flatten()
        assert qs.numel() == 0
        return found


def _backward(ddp: DistributedDataParallel, rank: int, step: int) -> torch.Tensor:
    ddp.zero_grad()
    inputs, labels = batch(rank, step, samples=32)  # more directions than factors
    nn.functional.cross_entropy(ddp(inputs), labels).backward()
    return flat(p.grad for p in ddp.module.parameters())


def _go_on_under_ours(rank: int, size: int, factors: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    theirs = DistributedDataParallel(network())
    witness = Witness(factors)
    theirs.register_comm_hook(None, lambda _state, bucket: witness.hook(bucket))
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.05)
    before = DENSE_STEPS + 2
    for step in range(before):
        _backward(theirs, rank, step)
        optimizer.step()

    ours = DistributedDataParallel(network())
    state = scalecom.register(ours, f"powersgd,rank={factors},warmup={DENSE_STEPS}")
    saved = {f"rank{rank}.{name}": memory for name, memory in witness.memories(theirs).items()}
    state.load_state_dict({"method": state.method, "steps": before, "world": size, **saved})
    assert len(saved) > 2
    pairs = []
    for step in range(before, before + 5):
        ours.module.load_state_dict(theirs.module.state_dict())
        pairs.append((_backward(ours, rank, step), _backward(theirs, rank, step)))
        optimizer.step()
    return pairs


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("factors", [1, 2, 4])
def test_a_run_of_pytorchs_hook_goes_on_under_ours(world, size: int, factors: int) -> None:
    for pairs in world(size).run(_go_on_under_ours, factors):
        for ours, theirs in pairs:
            assert (ours - theirs).norm() < 1e-4 * theirs.norm()


def _sent(rank: int, _size: int, method: str) -> tuple[float, torch.Tensor]:
    weights, state, _ = train(rank, method, 6)
    return state.stats()["effective_rate"], weights


def test_it_sends_less(world) -> None:
    (rate, one), (_, other) = world(2).run(_sent, "powersgd,rank=1")
    assert rate > 10
    assert torch.equal(one, other)


METHODS = ["powersgd,rank=2", pytest.param("adacomp", marks=HOST_ONLY),
           pytest.param("sketched_sgd,rate=50,momentum=0.5", marks=HOST_ONLY)]


def _save(rank: int, _size: int, folder: str, method: str) -> None:
    _, state, _ = train(rank, method, 4)
    torch.save(state.state_dict(), f"{folder}/{rank}.pt")


def _load(rank: int, _size: int, folder: str, method: str, former: int) -> dict[str, torch.Tensor]:
    state = scalecom.register(DistributedDataParallel(network()), method)
    state.load_state_dict(*(torch.load(f"{folder}/{r}.pt", weights_only=True) for r in range(former)))
    saved = state.state_dict()
    return {k.removeprefix(f"rank{rank}."): v for k, v in saved.items() if k.startswith("rank")}


@pytest.mark.parametrize("method", METHODS)
def test_states_load_into_another_number_of_ranks(world, tmp_path: Path, method: str) -> None:
    world(3).run(_save, str(tmp_path), method)
    before = [torch.load(tmp_path / f"{r}.pt", weights_only=True) for r in range(3)]
    after = world(2).run(_load, str(tmp_path), method, 3)
    assert after[0]
    for name, kept in after[0].items():
        mean = torch.stack([before[r][f"rank{r}.{name}"] for r in range(3)]).mean(0)
        torch.testing.assert_close(kept, mean)
