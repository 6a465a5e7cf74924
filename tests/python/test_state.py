"""What is not sent yet is saved and comes back, into another number of ranks too."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from models import batch, flat, network, train
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import scalecom

METHOD = "scalecom,rate=20,check=conserve"


def _go_on(rank: int, ddp: DistributedDataParallel, first: int, steps: int) -> torch.Tensor:
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)
    for step in range(first, first + steps):
        optimizer.zero_grad()
        inputs, labels = batch(rank, step)
        nn.functional.cross_entropy(ddp(inputs), labels).backward()
        optimizer.step()
    return flat(ddp.module.parameters())


def _save_and_go_on(rank: int, _size: int, folder: str, way: str) -> torch.Tensor:
    _, state, ddp = train(rank, METHOD, 5)
    if way == "folder":
        state.save(folder)
    else:
        torch.save(state.state_dict(), f"{folder}/{rank}.pt")
    if rank == 0:
        torch.save(ddp.module.state_dict(), f"{folder}/model.pt")
    torch.distributed.barrier()
    return _go_on(rank, ddp, 5, 5)


def _resume(rank: int, _size: int, folder: str, way: str) -> torch.Tensor:
    model = network(7)
    model.load_state_dict(torch.load(f"{folder}/model.pt", weights_only=True))
    ddp = DistributedDataParallel(model, bucket_cap_mb=0.1)
    state = scalecom.register(ddp, METHOD)
    if way == "folder":
        state.load(folder)
    else:
        state.load_state_dict(torch.load(f"{folder}/{rank}.pt", weights_only=True))
    assert state.steps == 5
    return _go_on(rank, ddp, 5, 5)


@pytest.mark.parametrize("way", ["folder", "dict"])
def test_a_resumed_run_is_the_same_run(world, tmp_path: Path, way: str) -> None:
    through = world(2).run(_save_and_go_on, str(tmp_path), way)
    resumed = world(2).run(_resume, str(tmp_path), way)
    for one, other in zip(through, resumed, strict=True):
        assert torch.equal(one, other)


def _memories(rank: int, _size: int, folder: str, way: str, former: int) -> dict[str, torch.Tensor]:
    state = scalecom.register(DistributedDataParallel(network()), METHOD)
    if way == "folder":
        state.load(folder)
    else:
        state.load_state_dict(*(torch.load(f"{folder}/{r}.pt", weights_only=True) for r in range(former)))
    saved = state.state_dict()
    return {k.removeprefix(f"rank{rank}."): v for k, v in saved.items() if k.startswith("rank")}


@pytest.mark.parametrize("way", ["folder", "dict"])
@pytest.mark.parametrize(("former", "now"), [(4, 2), (2, 3), (4, 3), (3, 8)])
def test_another_number_of_ranks_keeps_the_mean(world, tmp_path: Path, way: str, former: int, now: int) -> None:
    world(former).run(_save_and_go_on, str(tmp_path), way)
    before = world(former).run(_memories, str(tmp_path), way, former)
    after = world(now).run(_memories, str(tmp_path), way, former)
    assert before[0].keys() == after[0].keys() and before[0]
    for name in before[0]:
        mean = torch.stack([m[name] for m in before]).mean(0)
        kept = torch.stack([m[name] for m in after]).mean(0)
        torch.testing.assert_close(kept, mean)


def _checkpoint(rank: int, _size: int, folder: str) -> bool:
    import torch.distributed.checkpoint as dcp

    _, state, _ = train(rank, METHOD, 4)
    saved = state.state_dict()
    dcp.save(saved, checkpoint_id=folder)
    read = {k: torch.zeros_like(v) if isinstance(v, torch.Tensor) else v for k, v in saved.items()}
    dcp.load(read, checkpoint_id=folder)
    return all(
        torch.equal(v, saved[k]) if isinstance(v, torch.Tensor) else v == saved[k]
        for k, v in read.items()
    )


def test_distributed_checkpoint_keeps_every_rank(world, tmp_path: Path) -> None:
    assert world(2).run(_checkpoint, str(tmp_path / "dcp")) == [True, True]


def _load(rank: int, _size: int, state: dict[str, object]) -> None:
    own = scalecom.register(DistributedDataParallel(network()), METHOD)
    own.load_state_dict(state)


@pytest.mark.parametrize(
    ("state", "word"),
    [
        ({}, "no state of scalecom"),
        ({"method": METHOD, "steps": 3, "world": 2, "rank0.5.weight": torch.zeros(7),
          "rank1.5.weight": torch.zeros(7)}, "'5.weight' has 98304 elements"),
        ({"method": METHOD, "steps": 3, "world": 2, "rank0.fc": torch.zeros(7),
          "rank1.fc": torch.zeros(7)}, "'fc', which this model has not"),
        ({"method": METHOD, "steps": 3, "world": 4, "rank0.5.weight": torch.zeros(98304)},
         "memories of rank 1 are missing"),
    ],
)
def test_foreign_states_are_refused(world, state: dict[str, object], word: str) -> None:
    for error in world(2).errors(_load, state):
        assert isinstance(error, ValueError)
        assert word in str(error)
