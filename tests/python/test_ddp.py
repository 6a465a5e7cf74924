"""All that DistributedDataParallel can do, with and without the hook."""

from __future__ import annotations

import logging

import pytest
import torch
from devices import DEVICE, HOST_ONLY
from models import batch, flat, network, train
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import scalecom


def _same_everywhere(results: list[torch.Tensor]) -> None:
    for result in results[1:]:
        assert torch.equal(result, results[0])


def _weights(rank: int, _size: int, *arguments: object) -> torch.Tensor:
    return train(rank, *arguments)[0]


@pytest.mark.parametrize("size", [2, 3, 4])
def test_dense_is_ddp_bit_for_bit(world, size: int) -> None:
    plain = world(size).run(_weights, None, 6)
    hooked = world(size).run(_weights, "dense", 6)
    _same_everywhere(plain + hooked)


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize(
    "method",
    ["scalecom,rate=10,check=conserve", "scalecom,rate=20,leaders=sharded,check=conserve",
     "scalecom,rate=10,select=exact,check=conserve", "scalecom,rate=10,values=bf16", "half",
     "powersgd,rank=2", pytest.param("adacomp", marks=HOST_ONLY),
     pytest.param("sketched_sgd,rate=50", marks=HOST_ONLY)],
)
def test_ranks_stay_together(world, size: int, method: str) -> None:
    _same_everywhere(world(size).run(_weights, method, 8))


class _Lines(logging.Handler):
    """What is logged, as it reads."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def _announced(_rank: int, _size: int, method: str) -> list[str]:
    log, handler = logging.getLogger("scalecom"), _Lines()
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        scalecom.register(DistributedDataParallel(network()), method)
    finally:
        log.setLevel(before)
        log.removeHandler(handler)
    return handler.lines


@pytest.mark.parametrize(
    ("method", "said"),
    [("scalecom,rate=20", "3 of 8 parameters compressed, 99.7% of 100762 elements; 346 elements travel dense"),
     ("sketched_sgd,rate=20", "3 of 8 parameters compressed"),
     ("scalecom,rate=1e+05", "0 of 8 parameters compressed"),
     ("dense", "8 parameters, 100762 elements"),
     ("powersgd,rank=2", "8 parameters, 100762 elements"),
     ("adacomp", "8 parameters, 100762 elements")],
)
def test_rank_0_says_what_is_compressed(world, method: str, said: str) -> None:
    first, second = world(2).run(_announced, method)
    assert len(first) == 1 and first[0].startswith(method)
    assert f": {said}" in first[0]
    assert not second


def _loss(rank: int, _size: int, method: str | None, steps: int) -> float:
    _, _, ddp = train(rank, method, steps)
    with torch.no_grad():
        inputs, labels = batch(rank, 0)
        return float(nn.functional.cross_entropy(ddp.module(inputs), labels))


def test_it_learns(world) -> None:
    before = sum(world(2).run(_loss, None, 0))
    after = sum(world(2).run(_loss, "scalecom,rate=20,beta=0.5", 150))
    assert after < 0.8 * before


WRAPS = {
    "views": {"gradient_as_bucket_view": True},
    "static": {"static_graph": True},
    "unused": {"find_unused_parameters": True},
}


@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS.keys())
def test_wraps(world, wrap: dict[str, bool]) -> None:
    method = "scalecom,rate=10,check=conserve"
    _same_everywhere(world(2).run(_weights, method, 5, wrap))
    _same_everywhere(
        world(2).run(_weights, None, 5, wrap) + world(2).run(_weights, "dense", 5, wrap)
    )


def _accumulated(rank: int, _size: int, method: str | None) -> torch.Tensor:
    return train(rank, method, 4, micro_batches=3)[0]


def test_gradient_accumulation(world) -> None:
    _same_everywhere(world(2).run(_accumulated, None) + world(2).run(_accumulated, "dense"))
    _same_everywhere(world(2).run(_accumulated, "scalecom,rate=10,check=conserve"))


def _steps_counted(rank: int, _size: int, wrap: dict[str, bool]) -> int:
    return train(rank, "scalecom,rate=10", 7, wrap)[1].steps


@pytest.mark.parametrize("wrap", [{}, *WRAPS.values()], ids=["plain", *WRAPS.keys()])
def test_a_step_is_a_step_though_buckets_change(world, wrap: dict[str, bool]) -> None:
    assert world(2).run(_steps_counted, wrap) == [7, 7]


def _uneven(rank: int, _size: int) -> torch.Tensor:
    model = network()
    ddp = DistributedDataParallel(model)
    scalecom.register(ddp, "scalecom,rate=10")
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)
    with ddp.join():
        for step in range(3 + 2 * rank):
            optimizer.zero_grad()
            inputs, labels = batch(rank, step)
            nn.functional.cross_entropy(ddp(inputs), labels).backward()
            optimizer.step()
    return flat(model.parameters())


def test_join_with_uneven_inputs(world) -> None:
    _same_everywhere(world(2).run(_uneven))


def _channels_last(model: nn.Module) -> nn.Module:
    return model.to(memory_format=torch.channels_last)


def _frozen(model: nn.Module) -> nn.Module:
    for parameter in model[2].parameters():
        parameter.requires_grad_(False)
    return model


def _prepared(rank: int, _size: int, method: str, prepare: object) -> torch.Tensor:
    return train(rank, method, 5, prepare=prepare)[0]


@pytest.mark.parametrize("prepare", [_channels_last, _frozen])
def test_models_of_all_kinds(world, prepare: object) -> None:
    _same_everywhere(world(2).run(_prepared, "scalecom,rate=10,check=conserve", prepare))
    _same_everywhere(
        world(2).run(_prepared, None, prepare) + world(2).run(_prepared, "dense", prepare)
    )


class _Tied(nn.Module):
    """A parameter of its own, and one that has two names."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(40))
        self.into, self.out = nn.Linear(40, 40), nn.Linear(40, 40)
        self.out.weight = self.into.weight

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.out(self.into(inputs) * self.scale)


def _ignoring(rank: int, _size: int, ignored: list[str]) -> tuple[list[str], int]:
    """What the method knows, and the steps."""
    torch.manual_seed(0)
    model = _Tied().to(DEVICE)
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(model, ignored)
    ddp = DistributedDataParallel(model)
    state = scalecom.register(ddp, "scalecom,rate=10,check=conserve")
    for _ in range(3):
        ddp(torch.randn(4, 40).to(DEVICE)).square().mean().backward()
    return state._names, state.steps


@pytest.mark.parametrize(
    ("ignored", "names"),
    [(["into.bias"], ["scale", "into.weight", "out.bias"]),
     # DDP looks for ".scale" and reduces it all the same; and a tensor that has another name.
     (["scale"], ["scale", "into.weight", "into.bias", "out.bias"]),
     (["into.weight"], ["scale", "into.bias", "out.weight", "out.bias"])],
)
def test_what_ddp_ignores_is_left_to_it(world, ignored: list[str], names: list[str]) -> None:
    assert world(2).run(_ignoring, ignored) == [(names, 3)] * 2


def _in_bf16(rank: int, _size: int) -> torch.Tensor:
    model = network().to(torch.bfloat16)
    ddp = DistributedDataParallel(model)
    scalecom.register(ddp, "scalecom,rate=10,check=conserve")
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)
    for step in range(5):
        optimizer.zero_grad()
        inputs, labels = batch(rank, step)
        nn.functional.cross_entropy(ddp(inputs.bfloat16()).float(), labels).backward()
        optimizer.step()
    return flat(model.parameters())


def test_bf16_gradients(world) -> None:
    _same_everywhere(world(2).run(_in_bf16))


def _autocast(rank: int, _size: int) -> torch.Tensor:
    model = network()
    ddp = DistributedDataParallel(model)
    scalecom.register(ddp, "scalecom,rate=10,check=conserve")
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)
    for step in range(4):
        optimizer.zero_grad()
        inputs, labels = batch(rank, step)
        with torch.autocast(DEVICE.type, torch.bfloat16):
            loss = nn.functional.cross_entropy(ddp(inputs), labels)
        loss.backward()
        optimizer.step()
    return flat(model.parameters())


def test_autocast(world) -> None:
    _same_everywhere(world(2).run(_autocast))


def _compiled(rank: int, _size: int, method: str | None) -> torch.Tensor:
    compiled = lambda m: torch.compile(m, backend="aot_eager")  # noqa: E731
    return train(rank, method, 3, {"bucket_cap_mb": 25}, prepare=compiled)[0]


def test_compiled_models(world) -> None:
    _same_everywhere(world(2).run(_compiled, None) + world(2).run(_compiled, "dense"))
    _same_everywhere(world(2).run(_compiled, "scalecom,rate=10,check=conserve"))


def _normalised(rank: int, _size: int, method: str | None) -> torch.Tensor:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 16, 3, padding=1),
        nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 64, 10),
    )
    model = nn.SyncBatchNorm.convert_sync_batchnorm(model).to(DEVICE)
    ddp = DistributedDataParallel(model)
    if method is not None:
        scalecom.register(ddp, method)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)
    for step in range(5):
        optimizer.zero_grad()
        inputs, labels = batch(rank, step)
        nn.functional.cross_entropy(ddp(inputs), labels).backward()
        optimizer.step()
    figures = [b for b in model.buffers() if b.is_floating_point()]
    assert figures
    return flat([*model.parameters(), *figures])


@pytest.mark.gpu("DistributedDataParallel takes SyncBatchNorm on GPUs only")
def test_synchronised_batch_norm(world) -> None:
    _same_everywhere(world(2).run(_normalised, "scalecom,rate=10,check=conserve"))
    _same_everywhere(world(2).run(_normalised, None) + world(2).run(_normalised, "dense"))


@pytest.mark.cpu("on a GPU it works")
def test_synchronised_batch_norm_on_the_cpu_is_torchs_to_refuse(world) -> None:
    for error in world(2).errors(_normalised, "dense"):
        assert isinstance(error, ValueError)
        assert "SyncBatchNorm layers only work with GPU modules" in str(error)


def _two_modules(rank: int, _size: int) -> torch.Tensor:
    models = [network(0), network(1)]
    modules = [DistributedDataParallel(m, bucket_cap_mb=0.1) for m in models]
    for module, rate in zip(modules, (10, 30), strict=True):
        scalecom.register(module, f"scalecom,rate={rate},check=conserve")
    optimizer = torch.optim.SGD([p for m in models for p in m.parameters()], lr=0.05)
    for step in range(4):
        optimizer.zero_grad()
        inputs, labels = batch(rank, step)
        sum(nn.functional.cross_entropy(m(inputs), labels) for m in modules).backward()
        optimizer.step()
    return flat(p for m in models for p in m.parameters())


def test_several_modules_in_a_process(world) -> None:
    _same_everywhere(world(2).run(_two_modules))


def _in_subgroups(rank: int, size: int) -> torch.Tensor:
    groups = [torch.distributed.new_group([0, 1]), torch.distributed.new_group([2, 3])]
    model = network()
    ddp = DistributedDataParallel(model, process_group=groups[rank // 2])
    scalecom.register(ddp, "scalecom,rate=10,check=conserve")
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)
    for step in range(4):
        optimizer.zero_grad()
        inputs, labels = batch(rank, step)
        nn.functional.cross_entropy(ddp(inputs), labels).backward()
        optimizer.step()
    assert size == 4
    return flat(model.parameters())


def test_subgroups(world) -> None:
    results = world(4).run(_in_subgroups)
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[2], results[3])
    assert not torch.equal(results[0], results[2])


def _by_flops(rank: int, _size: int) -> list[float]:
    _, state, _ = train(rank, "scalecom,rate=50", 3, register={"rates": "flops"})
    return state._core.rates()


def test_rates_by_flops(world) -> None:
    rates, others = world(2).run(_by_flops)
    assert rates == others
    # conv1 and biases are dense; the second convolution, used at 64 places, sends more than fc1.
    names = [n for n, _ in network().named_parameters()]
    by_name = dict(zip(names, rates, strict=True))
    assert by_name["0.weight"] == 1
    assert by_name["2.weight"] < by_name["5.weight"]
    assert by_name["5.weight"] > 1
    assert all(by_name[n] == 1 for n in names if n.endswith("bias"))


def _by_pattern(rank: int, _size: int) -> list[float]:
    _, state, _ = train(rank, "scalecom,rate=50", 2, register={"rates": "5.*:200;2.weight:dense"})
    return state._core.rates()


def test_rates_by_pattern(world) -> None:
    rates = dict(zip((n for n, _ in network().named_parameters()), world(2).run(_by_pattern)[0], strict=True))
    assert rates["5.weight"] == 200
    assert rates["2.weight"] == 1
    assert rates["7.weight"] == 50


def _configured(rank: int, _size: int) -> tuple[list[float], list[float], float]:
    _, state, ddp = train(rank, "scalecom,rate=10", 2)
    before, sent = state._core.rates(), state.stats()["bytes_sent"]
    state.configure("rate=50")
    inputs, labels = batch(rank, 2)
    nn.functional.cross_entropy(ddp(inputs), labels).backward()
    return before, state._core.rates(), (state.stats()["bytes_sent"] - sent) / (sent / 2)


def test_other_rates_between_steps(world) -> None:
    for before, after, share in world(2).run(_configured):
        assert max(before) == 10 and max(after) == 50
        assert share < 0.5


class _Scalars(dict):
    def add_scalar(self, tag: str, value: float, step: int) -> None:
        self[tag] = (value, step)


def _observed(rank: int, _size: int) -> tuple[float, dict[str, tuple[float, int]]]:
    _, state, _ = train(rank, "scalecom,rate=50", 6)
    scalars = _Scalars()
    state.write(scalars)
    memories = state._core.memories()
    own = torch.cat([memories[n] for n in sorted(memories)]).to(DEVICE)
    both = [torch.empty_like(own) for _ in range(2)]
    torch.distributed.all_gather(both, own)
    cosine = float(nn.functional.cosine_similarity(*both, dim=0))
    assert state.similarity() == pytest.approx(cosine, abs=1e-4)
    return cosine, dict(scalars)


def test_similarity_and_writer(world) -> None:
    for cosine, scalars in world(2).run(_observed):
        assert -1 < cosine < 1
        assert scalars["scalecom/steps"] == (6, 6)
        assert scalars["scalecom/memory_norm"][0] > 0


def _traffic(rank: int, _size: int) -> dict[str, float]:
    return train(rank, "scalecom,rate=50", 10)[1].stats()


def test_stats(world) -> None:
    for stats in world(2).run(_traffic):
        assert stats["steps"] == 10
        assert 5 < stats["effective_rate"] < 50
        assert stats["bytes_sent"] > 0
        assert stats["memory_norm"] > 0
