"""Checkpoints of a run: the model, whatever trains it, and what the compressor has not sent yet."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, Protocol

import scalecom
import torch
import torch.distributed as dist


class Part(Protocol):
    """Such as a module or an optimizer."""

    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any], /) -> Any: ...


def _numbers(folder: Path) -> list[int]:
    return sorted(int(f.name) for f in folder.glob("*") if f.name.isdecimal())


def _flush(path: Path) -> None:
    """To the disk: a file, or the names in a folder."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def save(folder: Path, number: int, state: scalecom.State, **parts: Part) -> None:
    """Writes folder/number on every rank's behalf, complete or not at all, though the power may fail, and
    drops older ones but for the last.

    Every rank calls it; the folder is one that all of them see."""
    first = dist.get_rank() == 0
    partial = folder / f"{number}.partial"
    if first:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
    dist.barrier()
    state.save(partial / "memories")
    if first:
        torch.save({name: part.state_dict() for name, part in parts.items()}, partial / "parts.pt")
    dist.barrier()  # all memories are there, and on the disk
    if first:
        older = _numbers(folder)
        _flush(partial / "parts.pt")
        _flush(partial)
        partial.rename(folder / str(number))
        _flush(folder)
        for former in older[:-1]:
            shutil.rmtree(folder / str(former))
    dist.barrier()


def load(folder: Path, state: scalecom.State, device: torch.device, **parts: Part) -> int:
    """Takes the last checkpoint up, with any number of ranks, and returns its number; 0 without one."""
    numbers = _numbers(folder)
    if not numbers:
        return 0
    last = folder / str(numbers[-1])
    saved = torch.load(last / "parts.pt", map_location=device, weights_only=True)
    for name, part in parts.items():
        part.load_state_dict(saved[name])
    state.load(last / "memories")
    return numbers[-1]
