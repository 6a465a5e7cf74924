"""A clear exception on every rank."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
import torch._dynamo
import torch.distributed as dist
from devices import DEVICE
from models import batch, network
from ranks import Ranks
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import scalecom


def _twice(_rank: int, _size: int) -> None:
    ddp = DistributedDataParallel(network())
    scalecom.register(ddp, "scalecom")
    scalecom.register(ddp, "scalecom")


def _after_another_hook(_rank: int, _size: int) -> None:
    ddp = DistributedDataParallel(network())
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    ddp.register_comm_hook(None, default_hooks.allreduce_hook)
    scalecom.register(ddp, "scalecom")


@pytest.mark.parametrize("case", [_twice, _after_another_hook])
def test_one_hook_a_life(world, case: object) -> None:
    for error in world(2).errors(case):
        assert isinstance(error, ValueError)
        assert "has a communication hook already" in str(error)


def _mixed_precision_of_ddp(_rank: int, _size: int) -> None:
    from torch.nn.parallel.distributed import _MixedPrecision

    precision = _MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16)
    scalecom.register(DistributedDataParallel(network(), mixed_precision=precision), "scalecom")


def test_ddps_own_mixed_precision_is_a_hook_too(world) -> None:
    for error in world(2).errors(_mixed_precision_of_ddp):
        assert isinstance(error, ValueError)
        assert "use torch.autocast" in str(error)


def _reduced_in_python(_rank: int, _size: int) -> None:
    with torch._dynamo.config.patch(optimize_ddp="python_reducer"):
        ddp = DistributedDataParallel(network())
    scalecom.register(ddp, "scalecom")


def test_ddp_without_hooks_is_refused(world) -> None:
    for error in world(2).errors(_reduced_in_python):
        assert isinstance(error, ValueError)
        assert "optimize_ddp" in str(error)


def _not_ddp(_rank: int, _size: int) -> None:
    scalecom.register(network(), "scalecom")


def test_a_model_that_is_not_ddp(world) -> None:
    for error in world(2).errors(_not_ddp):
        assert isinstance(error, TypeError)
        assert "wrap the model" in str(error)


def _frozen_or_thawed_since(_rank: int, _size: int, frozen: bool) -> None:
    model = network()
    model[2].weight.requires_grad_(frozen)
    ddp = DistributedDataParallel(model, find_unused_parameters=True)
    model[2].weight.requires_grad_(not frozen)
    scalecom.register(ddp, "scalecom")


@pytest.mark.parametrize("frozen", [True, False])
def test_parameters_that_were_frozen_or_thawed_since(world, frozen: bool) -> None:
    for error in world(2).errors(_frozen_or_thawed_since, frozen):
        assert isinstance(error, ValueError)
        assert f"{8 if frozen else 7} parameters, and {7 if frozen else 8} are trained now" in str(error)


def _sparse(_rank: int, _size: int) -> None:
    model = nn.Sequential(nn.Embedding(50, 16, sparse=True), nn.Linear(16, 4)).to(DEVICE)
    ddp = DistributedDataParallel(model)
    scalecom.register(ddp, "scalecom")
    ddp(torch.arange(4).to(DEVICE)).sum().backward()


@pytest.mark.cpu("NCCL has no sparse all-reduce for DDP to begin with")
def test_a_sparse_gradient_is_named(world) -> None:
    for error in world(2).errors(_sparse):
        assert "make the embedding with sparse=False" in str(error)


def _without_cuda(_rank: int, _size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("scalecom._core.has_cuda", lambda: False)
        scalecom.register(DistributedDataParallel(network()), "scalecom")


@pytest.mark.gpu("there is no model on a GPU")
def test_a_model_on_a_gpu_with_a_build_without_cuda(world) -> None:
    for error in world(2).errors(_without_cuda):
        assert isinstance(error, ValueError)
        assert "this scalecom was built without CUDA" in str(error)


def _spec(_rank: int, _size: int, spec: str) -> None:
    scalecom.register(DistributedDataParallel(network()), spec)


@pytest.mark.parametrize(
    ("spec", "word"),
    [("scalecon", "allowed: dense, half, scalecom"), ("scalecom,rat=3", "rate"),
     ("scalecom,rate=0", "rate"), ("scalecom,rates=fc", "rates"),
     ("scalecom,rate=2000,rates=flops", "within [1, 1000]")],
)
def test_a_method_that_is_not(world, spec: str, word: str) -> None:
    for error in world(2).errors(_spec, spec):
        assert isinstance(error, ValueError)
        assert word in str(error)


def _refused(rank: int, _size: int, spec: str, has_hook: bool) -> tuple[int, int]:
    """Groups before and after a call that is refused; then one that is not."""
    before = len(dist.distributed_c10d._world.pg_map)
    ddp = DistributedDataParallel(network())
    if has_hook:
        ddp._register_builtin_comm_hook(dist.BuiltinCommHookType.ALLREDUCE)
    with pytest.raises(ValueError):
        scalecom.register(ddp, spec)
    after = len(dist.distributed_c10d._world.pg_map)
    if has_hook:
        ddp = DistributedDataParallel(network())
    state = scalecom.register(ddp, "scalecom")
    inputs, labels = batch(rank, 0)
    nn.functional.cross_entropy(ddp(inputs), labels).backward()
    state.close()
    return before, after


@pytest.mark.parametrize(
    ("spec", "has_hook"),
    [("scalecon", False), ("scalecom,groups=3", False), ("scalecom,rates=no such*:4", False),
     ("scalecom,groups=1,rates=no such*:4", False), ("scalecom,groups=2", True)],
)
def test_what_is_refused_leaves_no_group(world, spec: str, has_hook: bool) -> None:
    for before, after in world(2).run(_refused, spec, has_hook):
        assert after == before


def _ranks_differ(rank: int, _size: int) -> None:
    ddp = DistributedDataParallel(network())
    scalecom.register(ddp, f"scalecom,rate={10 + rank}")
    inputs, labels = batch(rank, 0)
    nn.functional.cross_entropy(ddp(inputs), labels).backward()


def test_ranks_with_different_options_all_say_so() -> None:
    ranks = Ranks(2)  # of its own, since DDP cannot go on after it
    try:
        for error in ranks.errors(_ranks_differ):
            assert isinstance(error, RuntimeError | ValueError)
            assert "not about to do the same" in str(error)
            assert "rate=10" in str(error) and "rate=11" in str(error)
    finally:
        ranks.close()


def test_another_torch_is_named() -> None:
    from scalecom import _check

    with pytest.raises(ImportError, match="was built for torch .*, and this is torch 1.2.3") as raised:
        _check.torch_version("1.2.3+cu99")
    assert str(raised.value).endswith(": pip install --force-reinstall --no-deps .")  # as docs/pytorch.md has it
    _check.torch_version(torch.__version__)


@pytest.mark.parametrize("use", ["import scalecom; scalecom.register", "from scalecom import register",
                                 "from scalecom.fsdp import register_fsdp"])
def test_another_torch_is_named_at_first_use(use: str) -> None:
    code = f"import torch; torch.__version__ = '1.2.3'; import scalecom; {use}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "was built for torch" in done.stderr.splitlines()[-1], done.stderr


def test_what_the_package_has_not_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'registre'"):
        scalecom.registre  # noqa: B018
    assert set(scalecom.__all__) <= set(dir(scalecom))
    assert all(getattr(scalecom, name) is not None for name in scalecom.__all__)
