"""This process's place among those that torchrun started."""

from __future__ import annotations

import os
from dataclasses import dataclass

import torch
import torch.distributed as dist


@dataclass(frozen=True)
class Place:
    rank: int
    size: int
    device: torch.device

    @property
    def first(self) -> bool:
        """Whether this is the one that writes and prints."""
        return self.rank == 0

    def total(self, *figures: float) -> list[float]:
        """The sums over all ranks, which all call it."""
        sums = torch.tensor(figures, dtype=torch.float64, device=self.device)
        dist.all_reduce(sums)
        return sums.tolist()


def join() -> Place:
    """Meets the other ranks: over NCCL with a GPU each, where there are GPUs, or over gloo."""
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    return Place(dist.get_rank(), dist.get_world_size(), device)
