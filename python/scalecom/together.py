"""What all ranks of all nodes have to agree on, told through two groups: peers at other nodes, and a node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch.distributed as dist

T = TypeVar("T")


def _gather(value: Any, group: dist.ProcessGroup) -> list[Any]:
    values = [None] * dist.get_world_size(group)
    dist.all_gather_object(values, value, group=group)
    return values


def _grid(value: Any, peers: dist.ProcessGroup, node: dist.ProcessGroup) -> list[list[Any]]:
    """Everybody's, by their place in a node and then by node: the same on every rank."""
    return _gather(_gather(value, peers), node)


def check_same(
    everywhere: str, among_peers: str, peers: dist.ProcessGroup, node: dist.ProcessGroup
) -> None:
    """ValueError on every rank, naming who has what, where ranks differ."""
    grid = _grid((dist.get_rank(), everywhere, among_peers), peers, node)
    same = len({one for column in grid for _, one, _ in column}) == 1
    if same and all(len({place for _, _, place in column}) == 1 for column in grid):
        return
    lines = [f"rank {rank} has {place} of {one}" for rank, one, place in sorted(sum(grid, []))]
    raise ValueError(
        "the ranks are not about to do the same: " + "; ".join(lines)
        + "; give every rank the same arguments and the same model, and each the peers of its own shard"
    )


def largest(number: int, peers: dist.ProcessGroup, node: dist.ProcessGroup) -> int:
    """Of all ranks' numbers, the same on every rank."""
    return max(one for column in _grid(number, peers, node) for one in column)


def together(action: Callable[[], T], peers: dist.ProcessGroup, node: dist.ProcessGroup) -> T:
    """Runs `action` on every rank and returns what it gave when it has worked on all of them. Where it
    failed anywhere, every rank raises."""
    try:
        result, failure = action(), None
    except Exception as error:  # noqa: BLE001: it is told, and raised below
        failure = error
    told = None if failure is None else (dist.get_rank(), str(failure))
    others = [one for column in _grid(told, peers, node) for one in column if one is not None]
    if failure is not None:
        raise failure
    if others:
        rank, why = min(others)
        raise RuntimeError(f"rank {rank}: {why}")
    return result
