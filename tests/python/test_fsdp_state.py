"""What nodes have not sent yet is saved and comes back, into other numbers of nodes and shards too."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from sharded import is_compressed, network, registered, steps, weights, whole
from torch.distributed.checkpoint.state_dict import set_model_state_dict

METHOD = "scalecom,rate=20,check=conserve"


def _save_and_go_on(rank: int, _size: int, folder: str, nodes: int, shards: int) -> torch.Tensor:
    model, state = registered(METHOD, nodes, shards)
    steps(model, rank, range(5))
    dcp.save({"model": whole(model), "scalecom": state.state_dict()}, checkpoint_id=f"{folder}/dcp")
    state.save(f"{folder}/memories")
    steps(model, rank, range(5, 9))
    return weights(model)


def _load(state: Any, folder: str, way: str) -> None:
    if way == "folder":
        state.load(f"{folder}/memories")
    elif way == "checkpoint":
        state.load_checkpoint(f"{folder}/dcp")
    else:  # as any other part of a checkpoint
        saved = state.state_dict()
        dcp.load({"scalecom": saved}, checkpoint_id=f"{folder}/dcp")
        state.load_state_dict(saved)


def _resume(rank: int, _size: int, folder: str, way: str, nodes: int, shards: int) -> torch.Tensor:
    model, state = registered(METHOD, nodes, shards, seed=7)
    saved = whole(model)
    dcp.load({"model": saved}, checkpoint_id=f"{folder}/dcp")
    set_model_state_dict(model, saved)
    _load(state, folder, way)
    assert state.steps == 5
    steps(model, rank, range(5, 9))
    return weights(model)


@pytest.mark.parametrize("way", ["dict", "checkpoint", "folder"])
def test_a_resumed_run_is_the_same_run(world, tmp_path: Path, way: str) -> None:
    through = world(4).run(_save_and_go_on, str(tmp_path), 2, 2)
    resumed = world(4).run(_resume, str(tmp_path), way, 2, 2)
    for one, other in zip(through, resumed, strict=True):
        assert torch.equal(one, other)


def _whole_memories(
    rank: int, _size: int, folder: str, way: str, nodes: int, shards: int
) -> dict[str, torch.Tensor]:
    """This node's, each in one piece."""
    _, state = registered(METHOD, nodes, shards)
    _load(state, folder, way)
    saved = state.state_dict()
    prefix = f"node{rank // shards}."
    return {k.removeprefix(prefix): v.full_tensor() for k, v in saved.items() if k.startswith(prefix)}


@pytest.mark.parametrize("way", ["checkpoint", "folder"])
@pytest.mark.parametrize(("nodes", "shards"), [(2, 1), (1, 2), (4, 1), (1, 4), (3, 1), (1, 3)])
def test_other_numbers_keep_the_mean(world, tmp_path: Path, way: str, nodes: int, shards: int) -> None:
    world(4).run(_save_and_go_on, str(tmp_path), 2, 2)
    before = world(4).run(_whole_memories, str(tmp_path), way, 2, 2)[::2]
    after = world(nodes * shards).run(_whole_memories, str(tmp_path), way, nodes, shards)[::shards]
    names = {n for n, p in network().named_parameters() if is_compressed(n, p)}
    assert before[0].keys() == after[0].keys() == names
    for name in names:
        mean, kept = (torch.stack([m[name] for m in some]).mean(0) for some in (before, after))
        assert mean.abs().sum() > 0
        torch.testing.assert_close(kept, mean, rtol=1e-6, atol=1e-9)
        if nodes == 2:
            assert all(torch.equal(b[name], a[name]) for b, a in zip(before, after, strict=True))


def _taken_up(rank: int, _size: int, folder: str) -> torch.Tensor:
    """Other shards, the same nodes: as any other part of a checkpoint."""
    _, state = registered(METHOD, 2, 1)
    _load(state, folder, "dict")
    saved = state.state_dict()
    return saved[f"node{rank}.head.weight"].full_tensor()


def test_torch_divides_the_memories_anew(world, tmp_path: Path) -> None:
    world(4).run(_save_and_go_on, str(tmp_path), 2, 2)
    before = world(4).run(_whole_memories, str(tmp_path), "dict", 2, 2)[::2]
    for node, memory in enumerate(world(2).run(_taken_up, str(tmp_path))):
        assert torch.equal(before[node]["head.weight"], memory)


def _rates(rank: int, _size: int, folder: str, way: str) -> list[float]:
    """As stats() has them, of a run and of one that takes it up."""
    rates = []
    for first in (0, 6):
        model, state = registered(METHOD, 2, 2)
        if first:
            _load(state, folder, way)
        steps(model, rank, range(first, first + 6))
        assert state.steps == first + 6
        rates.append(state.stats()["effective_rate"])
        if not first:
            dcp.save({"scalecom": state.state_dict()}, checkpoint_id=f"{folder}/dcp")
            state.save(f"{folder}/memories")
    return rates


@pytest.mark.parametrize("way", ["dict", "checkpoint", "folder"])
def test_the_effective_rate_is_of_this_process(world, tmp_path: Path, way: str) -> None:
    for first, resumed in world(4).run(_rates, str(tmp_path), way):
        assert resumed == pytest.approx(first, rel=0.15)


def _names_of_two_saves(rank: int, _size: int, folder: str) -> list[list[str]]:
    model, state = registered(METHOD, 2, 2)
    steps(model, rank, range(2))
    names = []
    for _ in range(2):
        state.save(folder)
        dist.barrier()
        names.append(sorted(os.listdir(folder)))
        dist.barrier()
    return names


def test_saves_of_one_step_are_told_apart(world, tmp_path: Path) -> None:
    """So that one which is cut short is not mixed with the one before it."""
    first, second = world(4).run(_names_of_two_saves, str(tmp_path / "memories"))[0]
    assert len(first) == len(second) == 4 and not set(first) & set(second)


DAMAGES = {
    "missing": "lacks", "foreign": "this model has not", "shape": "another model", "method": "configure",
    "empty": "no state of scalecom",
}


def _damaged(rank: int, _size: int, damage: str) -> bool:
    model, state = registered(METHOD, 2, 2)
    steps(model, rank, range(2))
    saved = state.state_dict()
    before = {k: v.to_local().clone() for k, v in saved.items() if k.startswith("node") and k != "nodes"}
    name = f"node{rank // 2}.head.weight"
    if damage == "missing":
        saved.pop(name)
        saved[f"node{1 - rank // 2}.head.weight"] = torch.zeros(7, 33)
    elif damage == "foreign":
        saved[f"node{rank // 2}.tail.weight"] = torch.zeros(3, 3)
    elif damage == "shape":
        saved[name] = torch.zeros(3, 3)
    elif damage == "method":
        saved["method"] = "scalecom,rate=10"
    else:
        saved = {}
    with pytest.raises(ValueError, match=DAMAGES[damage]):
        state.load_state_dict(saved)
    after = state.state_dict()
    return state.steps == 2 and all(torch.equal(after[k].to_local(), v) for k, v in before.items())


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_state_that_is_not_its_own_changes_nothing(world, damage: str) -> None:
    assert all(world(4).run(_damaged, damage))


def _no_folder(rank: int, _size: int, folder: str) -> None:
    _, state = registered(METHOD, 2, 2)
    state.load(folder if rank else f"{folder}/there-is-none")


def test_a_rank_that_cannot_load_is_known_to_all(world, tmp_path: Path) -> None:
    world(4).run(_save_and_go_on, str(tmp_path), 2, 2)
    for error in world(4).errors(_no_folder, str(tmp_path / "memories")):
        assert isinstance(error, ValueError | RuntimeError)
        assert "there-is-none" in str(error)
