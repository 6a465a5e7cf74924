"""What former ranks have saved, put together again: their states, the parts of a memory, the learners' mean."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import torch

_OF_A_SAVE = ("method", "steps", "world")


def merge(states: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The states of ranks as one. ValueError where they are none, or not of one save."""
    merged: dict[str, Any] = {}
    for state in states:
        for key in _OF_A_SAVE:
            if key in merged and key in state and state[key] != merged[key]:
                raise ValueError(
                    f"the states are not of one save: the '{key}' of one is {merged[key]!r}, and of another "
                    f"{state[key]!r}"
                )
        merged.update(state)
    for key in _OF_A_SAVE:
        if key not in merged:
            raise ValueError(f"this is no state of scalecom: it has no '{key}'")
    return merged


def part(key: str, memory: torch.Tensor) -> tuple[str, int, int]:
    """A memory's tensor, and its first element there and the one after its last."""
    match = re.fullmatch(r"(.*)\[(\d+):(\d+)\]", key)
    return (match[1], int(match[2]), int(match[3])) if match else (key, 0, memory.numel())


def join(memories: Mapping[str, torch.Tensor], sizes: Mapping[str, int]) -> dict[str, torch.Tensor]:
    """Memories of whole tensors, of those of a learner's ranks. ValueError where parts leave out some of
    a tensor's elements, or have them twice."""
    joined: dict[str, torch.Tensor] = {}
    parts: dict[str, list[tuple[int, torch.Tensor]]] = {}
    for key, memory in memories.items():
        name, first, _ = part(key, memory)
        if key == name:
            joined[name] = memory.flatten()
        else:
            parts.setdefault(name, []).append((first, memory.flatten()))
    # A rank that has no part of a tensor keeps the whole that it once loaded: the parts are newer.
    for name, some in parts.items():
        some.sort(key=lambda one: one[0])
        ends = [0, *(first + memory.numel() for first, memory in some)]
        begins = [*(first for first, _ in some), sizes.get(name, ends[-1])]
        for end, begin in zip(ends, begins, strict=True):
            if end != begin:
                raise ValueError(
                    f"the parts of the memory of '{name}' do not fit together at element {min(end, begin)}: "
                    "give the states of all ranks of one save"
                )
        joined[name] = torch.cat([memory for _, memory in some])
    return joined


def mean(learners: list[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    """Of the memories of all learners. ValueError where they are not of the same tensors."""
    means: dict[str, torch.Tensor] = {}
    for name in sorted({name for memories in learners for name in memories}):
        all_of_it = [memories[name] for memories in learners if name in memories]
        if len(all_of_it) < len(learners):
            raise ValueError(
                f"{len(learners) - len(all_of_it)} of {len(learners)} learners have no memory of '{name}', "
                "which others have: error feedback would be lost"
            )
        lengths = sorted({memory.numel() for memory in all_of_it})
        if len(lengths) > 1:
            raise ValueError(f"the learners' memories of '{name}' have {lengths[0]} and {lengths[-1]} elements")
        means[name] = torch.stack(all_of_it).mean(0) if len(all_of_it) > 1 else all_of_it[0]
    return means
