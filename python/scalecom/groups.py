"""How ranks are divided into groups: dense inside each, the method between them."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from scalecom import _core


@dataclass(frozen=True)
class Levels:
    """This rank's two groups beside that of all ranks, and the learner that it is a part of."""

    inside: Any
    between: Any
    learner: int
    learners: int
    learner_of: list[int]  # by rank
    parts: list[tuple[list[int], Any]]  # as the extension takes them


@contextmanager
def ended_on_error(group: Any) -> Iterator[list[Any]]:
    """A list for what is made of the ranks of a group: where an error comes out, that is ended if it can be."""
    made: list[Any] = []
    try:
        yield made
    except BaseException:
        for one in made if can_end_groups_of(group) else []:
            dist.destroy_process_group(one)
        raise


def same_ranks(group: Any, deadline: timedelta) -> Any:
    """The ranks of a group once more, so that nobody else's calls get between ours."""
    return _new_group(group, list(range(dist.get_world_size(group))), deadline)


def can_end_groups_of(group: Any) -> bool:
    """Whether what was made of its ranks can be ended before the process is: torch gives a new group of
    some of all ranks the name of one that was ended, under which the store still has its addresses."""
    return dist.get_world_size(group) == dist.get_world_size()


def divide(group: Any, spec: str, deadline: timedelta) -> Levels | None:
    """As `groups=` in the method's options says: by host for "node", else by whole numbers of ranks in
    a row; nothing where it says nothing. ValueError, on every rank, where that cannot be."""
    wanted = _agreed(group, spec)
    if wanted is None:
        return None
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    rows = _by_host(group) if wanted == "node" else _by_number(size, int(wanted))
    columns = [list(column) for column in zip(*rows, strict=True)]
    learner_of = [next(i for i, row in enumerate(rows) if one in row) for one in range(size)]
    inside, between = (_own_of(group, lists, rank, deadline) for lists in (rows, columns))
    return Levels(inside[1], between[1], learner_of[rank], len(rows), learner_of, [inside, between])


def _agreed(group: Any, spec: str) -> str | None:
    """The groups that all ranks want. They make them together, so none may be of another mind."""
    try:
        _core.check(spec)
        own = (_core.groups_of(spec), "")
    except ValueError as error:
        own = (None, str(error))
    everybody: list[tuple[str | None, str]] = [own] * dist.get_world_size(group)
    dist.all_gather_object(everybody, own, group=group)
    for rank, (_, error) in enumerate(everybody):
        if error:
            raise ValueError(own[1] or f"rank {rank}: {error}")
    different = next((r for r, one in enumerate(everybody) if one != everybody[0]), None)
    if different is not None:
        raise ValueError(
            f"[groups] rank 0 has groups={everybody[0][0]} and rank {different} has "
            f"groups={everybody[different][0]}; give every rank the same options"
        )
    return own[0]


def _by_number(size: int, members: int) -> list[list[int]]:
    if size % members != 0:
        raise ValueError(f"[groups] {size} ranks do not divide into groups of {members}")
    return [list(range(first, first + members)) for first in range(0, size, members)]


def _by_host(group: Any) -> list[list[int]]:
    hosts: list[str] = [""] * dist.get_world_size(group)
    dist.all_gather_object(hosts, os.environ.get("SCALECOM_NODE", socket.gethostname()), group=group)
    rows: dict[str, list[int]] = {}
    for rank, host in enumerate(hosts):
        rows.setdefault(host, []).append(rank)
    sizes = [len(row) for row in rows.values()]
    if len(set(sizes)) > 1:
        raise ValueError(
            "[groups] groups=node needs the same number of ranks on every host; there are "
            f"{', '.join(map(str, sizes))}; groups=N makes groups of N ranks in a row"
        )
    return list(rows.values())


def _own_of(group: Any, lists: list[list[int]], rank: int, deadline: timedelta) -> tuple[list[int], Any]:
    """Makes a group of each list, and returns the one that this rank is in. Where `group` is not the
    whole world, each rank makes its own alone."""
    whole_world = dist.get_world_size(group) == dist.get_world_size()
    made = [(ranks, _new_group(group, ranks, deadline)) for ranks in lists if whole_world or rank in ranks]
    return next((ranks, part) for ranks, part in made if rank in ranks)


def _new_group(group: Any, ranks: list[int], deadline: timedelta) -> Any:
    """Of ranks of a group."""
    everybody = dist.get_process_group_ranks(group)
    backend = dist.get_backend(group)
    if backend == "nccl":
        backend = "cpu:gloo,cuda:nccl"  # what the ranks agree on is in host memory
    return dist.new_group(
        [everybody[rank] for rank in ranks], timeout=deadline, backend=backend,
        use_local_synchronization=len(everybody) != dist.get_world_size(),
    )
