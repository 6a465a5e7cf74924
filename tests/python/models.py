"""Small models, and a training that is a function of its seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import scalecom
import torch
from devices import DEVICE
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def network(seed: int = 0) -> nn.Module:
    """Dense and compressed tensors, in several of DDP's buckets if those are small."""
    torch.manual_seed(seed)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(),
        nn.Flatten(), nn.Linear(16 * 64, 96), nn.ReLU(), nn.Linear(96, 10),
    )
    return model.to(DEVICE)


def batch(rank: int, step: int, samples: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(1000 * rank + step)
    inputs = torch.randn(samples, 3, 8, 8, generator=random)
    labels = torch.randint(0, 10, (samples,), generator=random)
    return inputs.to(DEVICE), labels.to(DEVICE)


def flat(tensors: Any) -> torch.Tensor:
    return torch.cat([t.detach().reshape(-1) for t in tensors])


def train(
    rank: int,
    method: str | None,
    steps: int,
    wrap: dict[str, Any] | None = None,
    register: dict[str, Any] | None = None,
    prepare: Callable[[nn.Module], nn.Module] | None = None,
    micro_batches: int = 1,
) -> tuple[torch.Tensor, Any, DistributedDataParallel]:
    """Weights after some steps of SGD, the state, and the module."""
    model = network()
    if prepare is not None:
        model = prepare(model)
    ddp = DistributedDataParallel(model, **{"bucket_cap_mb": 0.1, **(wrap or {})})
    state = None if method is None else scalecom.register(ddp, method, **(register or {}))
    optimizer = torch.optim.SGD((p for p in ddp.parameters() if p.requires_grad), lr=0.05)
    for step in range(steps):
        optimizer.zero_grad()
        for micro in range(micro_batches):
            inputs, labels = batch(rank, (step * micro_batches + micro) % 4)  # learnt by heart
            last = micro == micro_batches - 1
            with torch.enable_grad() if last else ddp.no_sync():
                nn.functional.cross_entropy(ddp(inputs), labels).backward()
        optimizer.step()
    return flat(model.parameters()), state, ddp
