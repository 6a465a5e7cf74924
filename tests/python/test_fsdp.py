"""Between nodes, under FSDP2: dense is native HSDP, and ScaleCom is ScaleCom on the shards."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.distributed as dist
from devices import DEVICE
from plain_scalecom import PlainScaleCom
from sharded import (
    Network, apart, backward, is_compressed, mesh_of, named_gradients, network, registered, shard, steps,
    weights,
)
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel

import scalecom

SCALECOM = "scalecom,rate=20,beta=0.1,check=conserve"


def _checkpointed(model: Network) -> None:
    for index, block in enumerate(model.blocks):
        model.blocks[index] = checkpoint_wrapper(block)


def _compiled(model: Network) -> None:
    for block in model.blocks:
        block.compile(backend="aot_eager")


def _frozen(model: Network) -> None:
    model.blocks[0].up.requires_grad_(False)
    model.head.bias.requires_grad_(False)


CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "bf16": {"mp_policy": MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16)},
    "fp32 reduction of bf16": {
        "mp_policy": MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    },
    "accumulation": {"micro_batches": 3},
    "activation checkpointing": {"prepare": _checkpointed},
    "compiled blocks": {"prepare": _compiled},
    "frozen parameters": {"prepare": _frozen},
    "not resharded": {"reshard_after_forward": False},
}


def _trained(rank: int, _size: int, method: str | None, case: str, count: int = 3) -> torch.Tensor:
    arguments = dict(CASES[case])
    micro_batches = arguments.pop("micro_batches", 1)
    model, _ = registered(method, 2, 2, **arguments)
    steps(model, rank, range(count), micro_batches)
    return weights(model)


def _same(results: list[torch.Tensor]) -> torch.Tensor:
    for result in results[1:]:
        assert torch.equal(results[0], result)
    return results[0]


@pytest.mark.parametrize("case", CASES)
def test_dense_is_native_hsdp(world, case: str) -> None:
    native = _same(world(4).run(_trained, None, case))
    assert torch.equal(native, _same(world(4).run(_trained, "dense", case)))


@pytest.mark.parametrize("case", CASES)
def test_scalecom_keeps_all_ranks_the_same(world, case: str) -> None:
    trained = _same(world(4).run(_trained, SCALECOM, case))
    assert not torch.equal(trained, _same(world(4).run(_trained, "dense", case)))


@pytest.mark.parametrize("case", ["activation checkpointing", "compiled blocks"])
def test_how_blocks_are_computed_changes_nothing(world, case: str) -> None:
    plain, other = (_same(world(4).run(_trained, SCALECOM, c)) for c in ("plain", case))
    torch.testing.assert_close(plain, other, rtol=1e-5, atol=1e-6)


def _against_a_plain_statement(rank: int, _size: int, nodes: int, shards: int) -> int:
    """Steps a model with ScaleCom, and beside it, with the same weights, one whose nodes stay apart."""
    rate, beta = 20, 0.1
    mesh = mesh_of(nodes, shards)
    model, _ = registered(f"scalecom,rate={rate},beta={beta}", nodes, shards)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    plain: dict[str, PlainScaleCom] = {}
    compressed = 0
    for step in range(5):
        alone = apart(model, nodes, shards)
        for one in (model, alone):
            one.zero_grad()
            backward(one, rank, step)
        packed = {name for name, p in model.named_parameters() if is_compressed(name, p)}
        pairs = zip(named_gradients(model), named_gradients(alone), strict=True)
        for (name, got), (_, own) in pairs:
            gradients = [torch.empty_like(own) for _ in range(nodes)]
            dist.all_gather(gradients, own.contiguous(), group=mesh["node"].get_group())
            got, gradients = got.cpu(), [g.cpu() for g in gradients]
            if name not in packed:
                torch.testing.assert_close(got, torch.stack(gradients).mean(0))
                continue
            method = plain.setdefault(name, PlainScaleCom(nodes, own.numel(), rate, beta))
            expected = method.step(gradients, step)
            assert torch.equal(got != 0, expected != 0), name
            torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-8)
            compressed += 1
        optimizer.step()
    return compressed


@pytest.mark.parametrize(("nodes", "shards"), [(2, 2), (4, 1), (1, 4)])
def test_scalecom_is_the_method_on_the_layout_of_the_shards(world, nodes: int, shards: int) -> None:
    for compressed in world(4).run(_against_a_plain_statement, nodes, shards):
        assert compressed == 5 * 5  # in every step: two weights of each of two blocks, and the head's


def _modules_as_one(rank: int, _size: int, method: str | None) -> torch.Tensor:
    """The first and the last layer in one of FSDP2's groups."""
    mesh = mesh_of(2, 2)
    model = network()
    for modules in ([model.first, model.head], *model.blocks):
        fully_shard(modules, mesh=mesh["shard"] if method else mesh)
    fully_shard(model, mesh=mesh["shard"] if method else mesh)
    if method is not None:
        scalecom.register_fsdp(model, method, between=mesh["node"].get_group())
    steps(model, rank, range(3))
    return weights(model)


def test_modules_that_are_reduced_as_one(world) -> None:
    native, dense = (_same(world(4).run(_modules_as_one, method)) for method in (None, "dense"))
    assert torch.equal(native, dense)
    _same(world(4).run(_modules_as_one, SCALECOM))


class _Gated(Network):
    """Uses the second half of a block only in every second step."""

    use = True

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        hidden = self.blocks[1](self.blocks[0](self.first(inputs)))
        return self.head(hidden) if self.use else hidden[:, :7]


def _unused(rank: int, _size: int) -> torch.Tensor:
    mesh = mesh_of(2, 2)
    torch.manual_seed(0)
    model = shard(_Gated().to(DEVICE), mesh["shard"])
    scalecom.register_fsdp(model, SCALECOM, between=mesh["node"].get_group())
    for step in range(4):
        model.use = step % 2 == 0
        steps(model, rank, range(step, step + 1))
    return weights(model)


def test_parameters_that_a_step_does_not_use(world) -> None:
    if hasattr(FSDPModule, "set_reduce_scatter_unused_params"):
        _same(world(4).run(_unused))
        return
    # This torch brings only the gradients that a step made, of one module together.
    for error in world(4).errors(_unused):
        assert "have every parameter take part in every step" in str(error)


def _by_flops(rank: int, _size: int) -> list[float]:
    model, state = registered("scalecom,rate=20", 2, 2, register={"rates": "flops"})
    steps(model, rank, range(2))
    return state._core.rates()


def test_rates_by_flops_are_the_same_everywhere(world) -> None:
    rates = world(4).run(_by_flops)
    assert all(one == rates[0] for one in rates)
    assert rates[0][0] == 1 and max(rates[0]) > 1


def _seen(rank: int, _size: int) -> tuple[dict[str, float], int, float]:
    model, state = registered("scalecom,rate=20", 2, 2)
    steps(model, rank, range(6))
    kept = sum(m.numel() for m in state._core.memories().values())
    return state.stats(), kept, state.similarity()


def test_stats(world) -> None:
    seen = world(4).run(_seen)
    weights_compressed = sum(p.numel() for n, p in network().named_parameters() if is_compressed(n, p))
    for stats, kept, similarity in seen:
        assert stats["steps"] == 6
        assert 1 < stats["effective_rate"] < 20
        assert stats["memory_norm"] > 0
        assert abs(kept - weights_compressed / 2) < 100  # a rank keeps its half
        assert -1 < similarity < 1
    # A node is one learner: its two ranks together keep one memory.
    assert sum(kept for _, kept, _ in seen) == 2 * weights_compressed


def _sent(rank: int, size: int) -> float:
    """In four steps, when the ranks have agreed: under DistributedDataParallel as two learners, or under
    FSDP2 as two nodes."""
    if size == 2:
        model = DistributedDataParallel(network())
        state = scalecom.register(model, "scalecom,rate=20")
    else:
        model, state = registered("scalecom,rate=20", 2, 2)
    for step in range(2):
        backward(model, rank, step)
    before = state.stats()["bytes_sent"]
    for step in range(2, 6):
        backward(model, rank, step)
    return state.stats()["bytes_sent"] - before


def test_a_node_sends_what_a_learner_sends(world) -> None:
    sent = world(4).run(_sent)
    for node, learner in enumerate(world(2).run(_sent)):
        # Each of a node's shards ends with a chunk of its own.
        assert sum(sent[2 * node : 2 * node + 2]) == pytest.approx(learner, rel=0.05)


def _configured(rank: int, _size: int) -> tuple[float, float, int]:
    model, state = registered("scalecom,rate=10", 2, 2)
    steps(model, rank, range(2))
    often = state.stats()["bytes_sent"] / 2
    state.configure("rate=50,beta=0.3")
    before = state.stats()["bytes_sent"]
    steps(model, rank, range(2, 4))
    return often, (state.stats()["bytes_sent"] - before) / 2, state.steps


def test_other_options_between_steps(world) -> None:
    for often, seldom, count in world(4).run(_configured):
        assert seldom < 0.8 * often
        assert count == 4


def _undone(rank: int, _size: int) -> int:
    model, state = registered("scalecom,rate=20,beta=0.1", 2, 2)
    steps(model, rank, range(2))
    before = state._core.memories()
    alone = apart(model, 2, 2)
    for one in (model, alone):
        backward(one, rank, 2)
    state.undo()
    after = state._core.memories()
    for name, gradient in named_gradients(alone):
        for key in (k for k in before if k.split("[")[0] == name):
            torch.testing.assert_close(after[key], before[key] + 0.1 * gradient.cpu())
    return len(before)


def test_undo_keeps_the_whole_gradient(world) -> None:
    assert world(4).run(_undone) == [5, 5, 5, 5]


def _not_sharded(_rank: int, _size: int) -> None:
    scalecom.register_fsdp(network(), between=mesh_of(2, 2)["node"].get_group())


def _native_hsdp(_rank: int, _size: int) -> None:
    mesh = mesh_of(2, 2)
    scalecom.register_fsdp(shard(network(), mesh), between=mesh["node"].get_group())


def _twice(_rank: int, _size: int) -> None:
    model, _ = registered("scalecom", 2, 2)
    scalecom.register_fsdp(model, between=mesh_of(2, 2)["node"].get_group())


def _own_node(_rank: int, _size: int) -> None:
    mesh = mesh_of(2, 2)
    scalecom.register_fsdp(shard(network(), mesh["shard"]), between=mesh["shard"].get_group())


def _whole_world(_rank: int, _size: int) -> None:
    scalecom.register_fsdp(shard(network(), mesh_of(2, 2)["shard"]), between=dist.group.WORLD)


def _no_group(_rank: int, _size: int) -> None:
    mesh = mesh_of(2, 2)
    scalecom.register_fsdp(shard(network(), mesh["shard"]), between=mesh["node"])


def _crossed(rank: int, _size: int) -> None:
    groups = [dist.new_group(ranks) for ranks in ([0, 3], [1, 2])]
    between = groups[0] if rank in (0, 3) else groups[1]
    scalecom.register_fsdp(shard(network(), mesh_of(2, 2)["shard"]), between=between)


def _other_options(rank: int, _size: int) -> None:
    registered(f"scalecom,rate={20 if rank else 21}", 2, 2)


def _other_model(rank: int, _size: int) -> None:
    registered("scalecom", 2, 2, prepare=lambda m: m.head.requires_grad_(rank != 2))


def _spec(_rank: int, _size: int, spec: str) -> None:
    registered(spec, 2, 2)


@pytest.mark.parametrize(
    ("case", "kind", "words"),
    [
        (_not_sharded, TypeError, "fully_shard(model, mesh=...) first"),
        (_native_hsdp, ValueError, "replicates (HSDP)"),
        (_twice, ValueError, "has an all-reduce hook already"),
        (_own_node, ValueError, "one rank of every node"),
        (_whole_world, ValueError, "one rank of every node"),
        (_no_group, TypeError, "get_group()"),
        (_crossed, ValueError, "rank 0 has shard 0"),
        (_other_options, ValueError, "rank 0 has shard 0 of 'scalecom,rate=21'"),
        (_other_model, ValueError, "not about to do the same"),
    ],
)
def test_bad_input_is_named_on_every_rank(world, case: object, kind: type, words: str) -> None:
    for error in world(4).errors(case):
        assert isinstance(error, kind), error
        assert words in str(error)


def _groups(_rank: int, _size: int) -> int:
    mesh_of(2, 2)  # has some of its own, made once
    return len(dist.distributed_c10d._world.pg_map)


@pytest.mark.parametrize(
    ("spec", "word"),
    [("scalecon", "allowed: dense"), ("scalecom,rate=0", "rate"), ("scalecom,rates=none*:4", "none*"),
     ("scalecom,rate=2000,rates=flops", "within [1, 1000]"),
     ("scalecom,groups=2", "a node is a group"), ("scalecom,select=exact", "select=chunk"), ("topk,rate=100", "whole tensors"),
     ("powersgd", "whole tensors")],
)
def test_a_method_that_is_not(world, spec: str, word: str) -> None:
    before = world(4).run(_groups)
    for error in world(4).errors(_spec, spec):
        assert isinstance(error, ValueError), error
        assert word in str(error)
    assert world(4).run(_groups) == before


def _of_another_method(rank: int, _size: int) -> None:
    model, state = registered("scalecom,rate=20", 2, 2)
    steps(model, rank, range(1))
    memories = {**state._core.memories(), "head.weight/velocity": torch.zeros(1)}
    core = state._core
    state._core = SimpleNamespace(memories=lambda: memories, rates=core.rates, spec=core.spec, steps=core.steps)
    state.state_dict()


def test_what_a_checkpoint_has_no_place_for_is_not_dropped(world) -> None:
    for error in world(4).errors(_of_another_method):
        assert isinstance(error, ValueError), error
        assert "'head.weight/velocity'" in str(error)


def _thawed(rank: int, _size: int) -> None:
    model, _ = registered("scalecom", 2, 2, prepare=_frozen)
    model.head.bias.requires_grad_(True)
    backward(model, rank, 0)


def _columns(_rank: int, _size: int) -> None:
    mesh = mesh_of(2, 2)
    model = nn.Linear(8, 8).to(DEVICE)
    fully_shard(model, mesh=mesh["shard"], shard_placement_fn=_by_columns)
    scalecom.register_fsdp(model, between=mesh["node"].get_group())


def _by_columns(parameter: nn.Parameter) -> Any:
    from torch.distributed.tensor import Shard

    return Shard(parameter.dim() - 1)


def test_shards_that_are_no_rows(world) -> None:
    for error in world(4).errors(_columns):
        assert isinstance(error, ValueError), error
        assert "sharded along dimension 1" in str(error)


def test_parameters_that_were_frozen_when_it_was_registered() -> None:
    from ranks import Ranks

    ranks = Ranks(4)  # of its own, since FSDP2 cannot go on after it
    try:
        for error in ranks.errors(_thawed):
            assert isinstance(error, ValueError), error
            assert "freeze parameters before" in str(error)
    finally:
        ranks.close()
