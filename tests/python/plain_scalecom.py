"""ScaleCom, stated a second time and plainly, for every node's shard of one tensor."""

from __future__ import annotations

import torch


class PlainScaleCom:
    """What all nodes do to their gradients of one row of numbers."""

    def __init__(self, nodes: int, elements: int, rate: int, beta: float) -> None:
        self._memories = [torch.zeros(elements) for _ in range(nodes)]
        self._chunk = min(rate, max(1, elements))
        self._beta = beta

    def step(self, gradients: list[torch.Tensor], step: int) -> torch.Tensor:
        """The mean that every node gets. The leader, one node after the other, names the largest entry
        of every chunk; all send theirs, and keep a share beta of what they do not send."""
        beta = self._beta
        wanted = [m + g for m, g in zip(self._memories, gradients, strict=True)]
        leader = wanted[step % len(wanted)]
        chosen = [
            begin + int(chunk.abs().argmax())
            for begin, chunk in zip(range(0, len(leader), self._chunk), leader.split(self._chunk), strict=True)
        ]
        mean = torch.zeros_like(leader)
        mean[chosen] = torch.stack([w[chosen] for w in wanted]).mean(0)
        for memory, gradient, want in zip(self._memories, gradients, wanted, strict=True):
            memory += beta * gradient
            memory[chosen] -= beta * want[chosen]
        return mean
