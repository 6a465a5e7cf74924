"""Options that cannot be are refused at once, and change nothing."""

from __future__ import annotations

from typing import Any

import pytest
import sharded
from models import batch, train
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def _backward(ddp: DistributedDataParallel, rank: int, step: int) -> None:
    inputs, labels = batch(rank, step)
    nn.functional.cross_entropy(ddp(inputs), labels).backward()


def _refusal(state: Any, settings: str) -> str:
    before = state.method, state._core.rates()
    with pytest.raises(ValueError) as refused:
        state.configure(settings)
    assert (state.method, state._core.rates()) == before
    return str(refused.value)


def _refused(rank: int, _size: int, method: str, settings: str) -> str:
    _, state, ddp = train(rank, method, 2)
    words = _refusal(state, settings)
    _backward(ddp, rank, 2)  # the run goes on
    assert state.steps == 3
    return words


@pytest.mark.parametrize(
    ("method", "settings", "word"),
    [
        ("scalecom,rate=10", "rates=flops", "rates=flops needs FLOPs"),
        ("scalecom,rate=10", "beta=0.5,rates=paper", "rates=paper needs FLOPs"),
        ("scalecom,rate=10,rates=flops", "rate=2000", "within [1, 1000]"),
        ("scalecom,rate=2000", "rates=flops", "rates=flops needs FLOPs"),
        ("scalecom,rate=10", "rate=50,beta=7", "beta"),
        ("scalecom,rate=10,groups=2", "select=exact", "whole bucket"),
        ("dense", "rate=10", "rate"),
    ],
)
def test_what_cannot_be_changes_nothing(world, method: str, settings: str, word: str) -> None:
    for words in world(2).run(_refused, method, settings):
        assert word in words


def _there_and_back(rank: int, _size: int) -> list[list[float]]:
    _, state, ddp = train(rank, "scalecom,rate=50,rates=flops", 2)
    rates = [state._core.rates()]
    for step, settings in enumerate(("rates=uniform", "rates=flops"), 2):
        state.configure(settings)
        _backward(ddp, rank, step)
        rates.append(state._core.rates())
    return rates


def test_rates_by_flops_come_back_where_flops_were_counted(world) -> None:
    for first, uniform, again in world(2).run(_there_and_back):
        assert first == again
        assert set(uniform) == {1, 50} and first != uniform


def _refused_under_fsdp(rank: int, _size: int, settings: str) -> str:
    model, state = sharded.registered("scalecom,rate=20", 2, 2)
    sharded.steps(model, rank, range(1))
    words = _refusal(state, settings)
    sharded.steps(model, rank, range(1, 2))
    assert state.steps == 2
    return words


@pytest.mark.parametrize(
    ("settings", "word"), [("rates=flops", "rates=flops needs FLOPs"), ("select=exact", "select=chunk")]
)
def test_what_cannot_be_under_fsdp_changes_nothing(world, settings: str, word: str) -> None:
    for words in world(4).run(_refused_under_fsdp, settings):
        assert word in words
