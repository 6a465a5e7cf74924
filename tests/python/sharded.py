"""A small model under FSDP2, on ranks that stand for nodes, and a training that is a function of its seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import scalecom
import torch
from devices import DEVICE, KIND
from models import flat
from torch import nn
from torch.distributed.checkpoint.state_dict import get_model_state_dict
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard

LABELS = 7


class Block(nn.Module):
    """With rows that no two ranks share evenly."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(33, 50)
        self.down = nn.Linear(50, 33)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return inputs + self.down(torch.relu(self.up(inputs)))


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(12, 33)
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.head = nn.Linear(33, LABELS)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        hidden = self.first(inputs)
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(hidden)


def network(seed: int = 0) -> Network:
    torch.manual_seed(seed)
    return Network().to(DEVICE)


@lru_cache
def mesh_of(nodes: int, shards: int) -> DeviceMesh:
    return init_device_mesh(KIND, (nodes, shards), mesh_dim_names=("node", "shard"))


def shard(model: Network, mesh: DeviceMesh, **policies: Any) -> Network:
    for block in model.blocks:
        fully_shard(block, mesh=mesh, **policies)
    return fully_shard(model, mesh=mesh, **policies)


def batch(rank: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(1000 * rank + step)
    inputs = torch.randn(4, 12, generator=random)
    labels = torch.randint(0, LABELS, (4,), generator=random)
    return inputs.to(DEVICE), labels.to(DEVICE)


def backward(model: nn.Module, rank: int, step: int) -> None:
    inputs, labels = batch(rank, step)
    nn.functional.cross_entropy(model(inputs).float(), labels).backward()


def weights(model: nn.Module) -> torch.Tensor:
    return flat(p.full_tensor() for p in model.parameters())


def steps(model: nn.Module, rank: int, numbers: range, micro_batches: int = 1) -> None:
    optimizer = torch.optim.SGD((p for p in model.parameters() if p.requires_grad), lr=0.05)
    for step in numbers:
        for micro in range(micro_batches):
            last = micro == micro_batches - 1
            model.set_requires_gradient_sync(last)
            model.set_is_last_backward(last)
            backward(model, rank, step * micro_batches + micro)
        optimizer.step()
        optimizer.zero_grad()


def registered(
    method: str | None,
    nodes: int,
    shards: int,
    prepare: Callable[[Network], object] | None = None,
    register: dict[str, Any] | None = None,
    seed: int = 0,
    **policies: Any,
) -> tuple[Network, Any]:
    """A sharded model and its state; with no method, a model under native HSDP."""
    mesh = mesh_of(nodes, shards)
    model = network(seed)
    if prepare is not None:
        prepare(model)
    if method is None:
        return shard(model, mesh, **policies), None
    shard(model, mesh["shard"], **policies)
    return model, scalecom.register_fsdp(model, method, between=mesh["node"].get_group(), **(register or {}))


def apart(model: nn.Module, nodes: int, shards: int) -> Network:
    """A model with the same weights whose nodes take no mean: its gradients are those of this node."""
    other = shard(network(), mesh_of(nodes, shards)["shard"])
    with torch.no_grad():
        for one, given in zip(other.parameters(), model.parameters(), strict=True):
            one.to_local().copy_(given.to_local())
    return other


def is_compressed(name: str, parameter: torch.Tensor) -> bool:
    """At the rates of these tests: all but biases and the first layer."""
    return parameter.dim() > 1 and name != "first.weight"


def whole(model: nn.Module) -> dict[str, Any]:
    """For torch.distributed.checkpoint."""
    return get_model_state_dict(model)


def named_gradients(model: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Of this rank's shards, flat."""
    for name, parameter in model.named_parameters():
        yield name, parameter.grad.to_local().reshape(-1)
