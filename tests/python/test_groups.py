"""groups=: dense inside, the method between groups of ranks."""

from __future__ import annotations

import os

import pytest
import scalecom
import torch
from devices import DEVICE
from models import batch, flat, network, train
from ranks import RankError
from scalecom import saved
from torch import nn
from torch.nn.parallel import DistributedDataParallel

ROW = "scalecom,rate=10,beta=0.5,check=conserve"


def _mean_of_group(rank: int, _size: int, method: str, steps: int) -> torch.Tensor:
    """One learner a group, with the batches of both of its ranks."""
    ddp = DistributedDataParallel(network(), bucket_cap_mb=0.1)
    scalecom.register(ddp, method)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)
    for step in range(steps):
        optimizer.zero_grad()
        both = [batch(2 * rank + member, step % 4) for member in range(2)]
        inputs, labels = (torch.cat(parts) for parts in zip(*both, strict=True))
        nn.functional.cross_entropy(ddp(inputs), labels).backward()
        optimizer.step()
    return flat(ddp.module.parameters())


def _train(rank: int, _size: int, method: str, steps: int) -> torch.Tensor:
    return train(rank, method, steps)[0]


@pytest.mark.parametrize("method", ["scalecom,rate=10,beta=0.5", "dense", "half,values=bf16"])
def test_groups_are_learners(world, method: str) -> None:
    grouped = world(4).run(_train, f"{method},groups=2", 6)
    learners = world(2).run(_mean_of_group, method, 6)
    for weights in grouped:
        assert torch.equal(weights, grouped[0])
    torch.testing.assert_close(grouped[0], learners[0], rtol=1e-3, atol=1e-4)


def test_dense_groups_are_dense(world) -> None:
    grouped = world(4).run(_train, "dense,groups=2", 6)
    plain = world(4).run(_train, "dense", 6)
    torch.testing.assert_close(grouped[0], plain[0])


def _by_host(rank: int, _size: int) -> tuple[torch.Tensor, float, dict[str, float]]:
    os.environ["SCALECOM_NODE"] = f"host{rank // 2}"
    try:
        weights, state, _ = train(rank, f"{ROW},groups=node", 4)
        return weights, state.similarity(), state.stats()
    finally:
        del os.environ["SCALECOM_NODE"]


def test_by_host(world) -> None:
    by_host = world(4).run(_by_host)
    by_number = world(4).run(_train, f"{ROW},groups=2", 4)
    for (weights, similarity, stats), other in zip(by_host, by_number, strict=True):
        assert torch.equal(weights, other)
        assert -1 <= similarity <= 1
        assert similarity == pytest.approx(by_host[0][1])
        assert stats["bytes_inside"] > stats["bytes_sent"] > 0


def _save(rank: int, _size: int, method: str) -> dict:
    _, state, _ = train(rank, method, 3)
    return state.state_dict()


def _resume(rank: int, _size: int, method: str, states: list[dict]) -> tuple[torch.Tensor, int]:
    """What is still to be sent, as the first learner has it."""
    ddp = DistributedDataParallel(network(), bucket_cap_mb=0.1)
    state = scalecom.register(ddp, method)
    state.load_state_dict(*states)
    memory = state.state_dict()
    nn.functional.cross_entropy(ddp(batch(rank, 0)[0]), batch(rank, 0)[1]).backward()
    return memory["rank%d.5.weight" % rank], state.steps


def test_state_moves_to_other_groups(world) -> None:
    states = world(4).run(_save, f"{ROW},groups=2")
    first, second = (
        torch.cat([s[k] for s in sorted(pair, key=lambda s: _first(s)) for k in s if ".5.weight[" in k])
        for pair in (states[:2], states[2:])
    )
    for size, method in [(2, ROW), (4, f"{ROW},groups=4"), (3, f"{ROW},groups=1")]:
        for memory, steps in world(size).run(_resume, method, states):
            assert steps == 4
            torch.testing.assert_close(memory, (first + second) / 2)


@pytest.mark.parametrize("damage", ["gap", "overlap"])
def test_parts_that_do_not_fit_together_are_refused(world, damage: str) -> None:
    states = world(4).run(_save, f"{ROW},groups=2")
    if damage == "gap":
        del states[1][next(k for k in states[1] if ".5.weight[" in k)]
        states[1]["memories_of_rank1"] -= 1
    else:
        states[1]["rank1.5.weight[10:20]"] = torch.zeros(10)
    for error in world(2).errors(_resume, ROW, states):
        assert isinstance(error, ValueError)
        assert "'5.weight' do not fit together" in str(error)


def test_other_options_are_refused_though_groups_may_be_others(world) -> None:
    states = world(4).run(_save, f"{ROW},groups=2")
    for error in world(2).errors(_resume, ROW.replace("beta=0.5", "beta=1"), states):
        assert isinstance(error, ValueError)
        assert "was saved by" in str(error) and "configure()" in str(error)


def _first(state: dict) -> int:
    return next(int(k.split("[")[1].split(":")[0]) for k in state if ".5.weight[" in k)


def _go_on(rank: int, _size: int, split: bool) -> torch.Tensor:
    ddp = DistributedDataParallel(network(), bucket_cap_mb=0.1)
    state = scalecom.register(ddp, f"{ROW},groups=2")
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)
    for step in range(6):
        if split and step == 3:
            state.load_state_dict(state.state_dict())
        optimizer.zero_grad()
        inputs, labels = batch(rank, step)
        nn.functional.cross_entropy(ddp(inputs), labels).backward()
        optimizer.step()
    return flat(ddp.module.parameters())


def test_the_same_groups_go_on_bit_for_bit(world) -> None:
    assert torch.equal(world(4).run(_go_on, True)[0], world(4).run(_go_on, False)[0])


def _save_of_one_layer(rank: int, _size: int) -> dict:
    torch.manual_seed(0)
    ddp = DistributedDataParallel(nn.Linear(16, 4, bias=False).to(DEVICE))
    state = scalecom.register(ddp, "scalecom,rate=64,first=compressed,groups=2")
    ddp(torch.randn(3, 16).to(DEVICE) + rank).sum().backward()
    return state.state_dict()


def _load_own_of_one_layer(rank: int, size: int, states: list[dict]) -> torch.Tensor:
    return _load_of_one_layer(rank, size, [states[rank]])


def _load_of_one_layer(_rank: int, _size: int, states: list[dict]) -> torch.Tensor:
    ddp = DistributedDataParallel(nn.Linear(16, 4, bias=False).to(DEVICE))
    state = scalecom.register(ddp, "scalecom,rate=64,first=compressed")
    state.load_state_dict(*states)
    return torch.cat([v for k, v in state.state_dict().items() if k.endswith("weight")])


def test_a_rank_that_has_no_part_is_not_missing(world) -> None:
    """One chunk is all that there is: one rank of each group holds it, and the other nothing."""
    states = world(4).run(_save_of_one_layer)
    parts = [v for s in states for k, v in s.items() if "weight" in k]
    assert len(parts) == 2
    for memory in world(2).run(_load_of_one_layer, states):
        torch.testing.assert_close(memory, sum(parts) / 2)
    with pytest.raises(RankError, match="rank 3 are missing"):
        world(2).run(_load_of_one_layer, states[:3])


def test_the_state_of_a_rank_that_has_no_part_is_not_enough(world) -> None:
    states = world(4).run(_save_of_one_layer)
    assert any("weight" in k for k in states[0]) != any("weight" in k for k in states[1])
    for error in world(2).errors(_load_own_of_one_layer, states):
        assert isinstance(error, ValueError)
        assert "give the states of all 4 ranks" in str(error)


def _save_by_host(rank: int, size: int) -> dict:
    os.environ["SCALECOM_NODE"] = f"host{rank // 2}"
    try:
        return _save(rank, size, f"{ROW},groups=node")
    finally:
        del os.environ["SCALECOM_NODE"]


def _resume_by_other_hosts(rank: int, _size: int, states: list[dict]) -> dict:
    os.environ["SCALECOM_NODE"] = f"host{rank % 2}"
    try:
        ddp = DistributedDataParallel(network(), bucket_cap_mb=0.1)
        state = scalecom.register(ddp, f"{ROW},groups=node")
        state.load_state_dict(*states)
        loaded = state.state_dict()
        nn.functional.cross_entropy(ddp(batch(rank, 0)[0]), batch(rank, 0)[1]).backward()
        return loaded
    finally:
        del os.environ["SCALECOM_NODE"]


def _mean_over_learners(states: list[dict]) -> dict[str, torch.Tensor]:
    learners: dict[int, dict[str, torch.Tensor]] = {}
    for rank, state in enumerate(states):
        own = {k.removeprefix(f"rank{rank}."): v for k, v in state.items() if k.startswith(f"rank{rank}.")}
        learners.setdefault(state[f"learner_of_rank{rank}"], {}).update(own)
    sizes = {name: p.numel() for name, p in network().named_parameters()}
    return saved.mean([saved.join(memories, sizes) for memories in learners.values()])


def test_ranks_that_moved_to_other_hosts_keep_the_mean(world) -> None:
    """Of which two are parts of the learner of the same number as before, and two are not."""
    states = world(4).run(_save_by_host)
    before, after = _mean_over_learners(states), _mean_over_learners(world(4).run(_resume_by_other_hosts, states))
    assert before.keys() == after.keys()
    for name, memory in before.items():
        torch.testing.assert_close(after[name], memory)


def _change_rates(rank: int, _size: int, folder: str) -> dict:
    _, state, ddp = train(rank, f"{ROW},groups=2", 1)
    state.configure("rate=200")
    nn.functional.cross_entropy(ddp(batch(rank, 1)[0]), batch(rank, 1)[1]).backward()
    state.save(folder)
    return state.state_dict()


def _after_other_rates(rank: int, _size: int, saved_at: str | list[dict]) -> tuple[dict, torch.Tensor]:
    """What is still to be sent, and the gradient of the next step."""
    ddp = DistributedDataParallel(network(), bucket_cap_mb=0.1)
    state = scalecom.register(ddp, f"{ROW.replace('rate=10', 'rate=200')},groups=2")
    if isinstance(saved_at, str):
        state.load(saved_at)
    else:
        state.load_state_dict(*saved_at)
    loaded = state.state_dict()
    nn.functional.cross_entropy(ddp(batch(rank, 2)[0]), batch(rank, 2)[1]).backward()
    return loaded, flat(p.grad for p in ddp.module.parameters())


def test_parts_go_on_after_rates_have_changed(world, tmp_path) -> None:
    """They are still cut as the first rates had it, and the new ones have it otherwise."""
    states = world(4).run(_change_rates, str(tmp_path))
    by_states = world(4).run(_after_other_rates, states)
    by_folder = world(4).run(_after_other_rates, str(tmp_path))
    for (loaded, gradient), (_, other) in zip(by_states, by_folder, strict=True):
        assert loaded["steps"] == 2
        assert torch.equal(gradient, other)
    learners = [{k.split(".", 1)[1]: v for s in pair for k, v in s.items() if k.startswith("rank")}
                for pair in (states[:2], states[2:])]
    sizes = {name: p.numel() for name, p in network().named_parameters()}
    for rank, (loaded, _) in enumerate(by_states):
        for name, memory in saved.join(learners[rank // 2], sizes).items():
            assert torch.equal(loaded[f"rank{rank}.{name}"], memory)


def _register(rank: int, _size: int, methods: list[str]) -> None:
    scalecom.register(DistributedDataParallel(network()), methods[rank % len(methods)])


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        (["scalecom,groups=3"], "4 ranks do not divide into groups of 3"),
        (["scalecom,groups=2", "scalecom,groups=4"], "rank 0 has groups=2 and rank 1 has groups=4"),
        (["scalecom,groups=2", "scalecom"], "rank 1 has groups=None"),
        (["scalecom,groups=-1"], "groups=-1 is not allowed"),
        (["scalecom,groups=2,select=exact"], "whole bucket"),
        (["scalecom,groups=2", "scalecom,groups=2,beta=7"], "beta"),
    ],
)
def test_bad_input(world, methods: list[str], message: str) -> None:
    for error in world(4).errors(_register, methods):
        assert isinstance(error, ValueError)
        assert message in str(error)
