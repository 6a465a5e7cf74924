"""What is not sent yet is saved and comes back, into another number of ranks too."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from devices import DEVICE
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


def _saved_after_the_end(rank: int, _size: int) -> tuple[list[str], list[str]]:
    _, state, _ = train(rank, METHOD, 2)
    before = list(state.state_dict())
    torch.distributed.barrier()
    state.close()
    return before, list(state.state_dict())


def test_a_state_can_be_saved_after_close(world) -> None:
    for before, after in world(2).run(_saved_after_the_end):
        assert before == after


def _into_a_new_state(rank: int, _size: int, folder: str) -> tuple[str, bool]:
    """What is said where there is no room for the memories, and whether they come back where there is."""
    import torch.distributed.checkpoint as dcp

    _, former, _ = train(rank, METHOD, 4)
    dcp.save({"scalecom": former.state_dict()}, checkpoint_id=folder)
    state = scalecom.register(DistributedDataParallel(network()), METHOD)
    read = {"scalecom": state.state_dict()}
    dcp.load(read, checkpoint_id=folder)
    with pytest.raises(ValueError) as refused:
        state.load_state_dict(read["scalecom"])
    assert state.steps == 0
    # As docs/pytorch.md has it.
    saved = dcp.FileSystemReader(folder).read_metadata().state_dict_metadata
    room = {key: torch.empty(entry.size) if hasattr(entry, "size") else None
            for key, entry in saved.items() if key.startswith("scalecom.")}
    dcp.load(room, checkpoint_id=folder)
    state.load_state_dict({key.removeprefix("scalecom."): value for key, value in room.items()})
    memories, own = former._core.memories(), state._core.memories()
    return str(refused.value), bool(own) and all(torch.equal(own[name], memory) for name, memory in memories.items())


def test_distributed_checkpoint_needs_room_for_the_memories(world, tmp_path: Path) -> None:
    for rank, (words, same) in enumerate(world(2).run(_into_a_new_state, str(tmp_path / "dcp"))):
        assert f"memories of rank {rank} are missing" in words and "dcp.load" in words
        assert same


def _refusal(state: Any, load: Callable[[], None]) -> str:
    """What a load says that is refused; nothing that was there before is harmed."""
    before = state.state_dict()
    with pytest.raises(ValueError) as refused:
        load()
    after = state.state_dict()
    assert before.keys() == after.keys() and any(k.startswith("rank") for k in before)
    for key, value in before.items():
        assert torch.equal(after[key], value) if isinstance(value, torch.Tensor) else after[key] == value
    return str(refused.value)


def _load_foreign(rank: int, _size: int, states: list[dict[str, object]]) -> str:
    _, state, ddp = train(rank, METHOD, 2)
    named = [{"method": state.method, **one} if one else one for one in states]
    words = _refusal(state, lambda: state.load_state_dict(*named))
    _go_on(rank, ddp, 2, 1)
    return words


OF_THREE = {"steps": 3, "world": 3}
WEIGHTS = {"5.weight": torch.zeros(98304), "7.weight": torch.zeros(960)}
FOREIGN = {
    "nothing": ([{}], "no state of scalecom"),
    "length": ([{"steps": 3, "world": 2, "rank0.5.weight": torch.zeros(7), "rank1.5.weight": torch.zeros(7)}],
               "'5.weight' has 98304 elements"),
    "name": ([{"steps": 3, "world": 2, "rank0.fc": torch.zeros(7), "rank1.fc": torch.zeros(7)}],
             "'fc', which this model has not"),
    "what a method keeps beside": (
        [{"steps": 3, "world": 2, "rank0.fc/velocity": torch.zeros(7), "rank1.fc/velocity": torch.zeros(7)}],
        "'fc', which this model has not"),
    "part": ([{"steps": 3, "world": 2, "rank0.5.weight[0:9]": torch.zeros(7),
               "rank1.5.weight[0:9]": torch.zeros(7)}], "has 7 elements"),
    "rank": ([{"steps": 3, "world": 4, "rank0.5.weight": torch.zeros(98304)}], "memories of rank 1 are missing"),
    "save": ([{"steps": 3, "world": 3}, {"steps": 4, "world": 3}], "not of one save"),
    **{
        f"tensor at learner {lacking}": (
            [{**OF_THREE, **{f"rank{rank}.{n}": m for n, m in WEIGHTS.items() if (rank, n) != (lacking, "7.weight")}}
             for rank in range(3)],
            "1 of 3 learners have no memory of '7.weight'")
        for lacking in range(3)
    },
}


@pytest.mark.parametrize("case", FOREIGN)
def test_foreign_states_are_refused(world, case: str) -> None:
    states, word = FOREIGN[case]
    for words in world(2).run(_load_foreign, states):
        assert word in words


def _of_another_beta(rank: int, _size: int, folder: str, way: str) -> tuple[str, float]:
    """What is refused, and how far off the memories are that take the way which the refusal names."""
    _, former, _ = train(rank, f"{METHOD},beta=0.1", 3)
    _, state, _ = train(rank, f"{METHOD},beta=1", 2)
    saved = former.state_dict()
    former.save(folder)

    def load() -> None:
        if way == "folder":
            state.load(folder)
        else:
            state.load_state_dict(saved)

    words = _refusal(state, load)
    state.configure("beta=0.1")
    load()
    for one in (former, state):
        one.configure("beta=1")
    pairs = zip(former._core.memories().values(), state._core.memories().values(), strict=True)
    return words, max(float((one - other).abs().max()) for one, other in pairs)


@pytest.mark.parametrize("way", ["folder", "dict"])
def test_memories_of_another_method_are_refused(world, tmp_path: Path, way: str) -> None:
    for words, off in world(2).run(_of_another_beta, str(tmp_path), way):
        assert "was saved by" in words and "beta=0.1" in words and "configure()" in words
        assert off == 0


class _Inside(nn.Module):
    """A model whose parameters have other names."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.body = model

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.body(inputs)


def _narrow(model: nn.Module) -> nn.Module:
    """A model whose parameters have the same names and other lengths."""
    model[5], model[7] = nn.Linear(16 * 64, 48).to(DEVICE), nn.Linear(48, 10).to(DEVICE)
    return model


def _save_another(rank: int, _size: int, folder: str, prepare: Callable[[nn.Module], nn.Module]) -> None:
    train(rank, METHOD, 3, prepare=prepare)[1].save(folder)


def _load_another(rank: int, _size: int, folder: str, foreign: str, ranks: list[int]) -> str:
    """Some ranks are given a folder of another model, and the others one of this."""
    _, state, ddp = train(rank, METHOD, 5)
    state.save(folder)
    words = _refusal(state, lambda: state.load(foreign if rank in ranks else folder))
    _go_on(rank, ddp, 5, 1)
    assert state.steps == 6
    return words


@pytest.mark.parametrize("ranks", [[0, 1], [1]])
@pytest.mark.parametrize(("prepare", "name"), [(_Inside, "body.2.weight"), (_narrow, "5.weight")])
def test_another_models_folder_is_refused_by_all_ranks(
    world, tmp_path: Path, prepare: Callable[[nn.Module], nn.Module], name: str, ranks: list[int]
) -> None:
    own, foreign = str(tmp_path / "own"), str(tmp_path / "foreign")
    world(2).run(_save_another, foreign, prepare)
    for words in world(2).run(_load_another, own, foreign, ranks):
        assert foreign in words and f"'{name}', which this model has not" in words


def _kept_beside(rank: int, _size: int, folder: str) -> bool:
    """A method that remembers more of a parameter than one memory."""
    _, state, _ = train(rank, "dgc,rate=20", 3)
    state.save(folder)
    before = state._core.memories()
    state.load(folder)
    after = state._core.memories()
    return any("/" in name for name in before) and before.keys() == after.keys() and all(
        torch.equal(after[name], memory) for name, memory in before.items())


def test_what_a_method_keeps_beside_comes_back_from_a_folder(world, tmp_path: Path) -> None:
    assert all(world(2).run(_kept_beside, str(tmp_path)))


def _rates(rank: int, _size: int, folder: str) -> list[float]:
    """As stats() has them: of a run, of one that takes it up, of that after a return to its beginning,
    and just after a load."""
    _, state, _ = train(rank, "scalecom,rate=50", 6)
    rates = [state.stats()["effective_rate"]]
    state.save(folder)
    ddp = DistributedDataParallel(network(), bucket_cap_mb=0.1)
    resumed = scalecom.register(ddp, "scalecom,rate=50")
    resumed.load(folder)
    nothing_yet = resumed.stats()["effective_rate"]
    taken_up = resumed.state_dict()
    _go_on(rank, ddp, 6, 6)
    rates.append(resumed.stats()["effective_rate"])
    resumed.load_state_dict(taken_up)
    _go_on(rank, ddp, 6, 6)
    rates.append(resumed.stats()["effective_rate"])
    assert resumed.steps == 12
    return [*rates, nothing_yet]


def test_the_effective_rate_is_of_this_process(world, tmp_path: Path) -> None:
    for first, resumed, returned, nothing_yet in world(2).run(_rates, str(tmp_path)):
        assert resumed == pytest.approx(first, rel=0.15)
        assert returned == pytest.approx(first, rel=0.15)
        assert math.isnan(nothing_yet)
