"""Checkpoints as examples/checkpoint.py writes them: on the disk before others are dropped."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from devices import DEVICE
from models import train

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import checkpoint  # noqa: E402: its folder is no package


def _save_thrice(rank: int, _size: int, folder: str) -> tuple[int, int]:
    _, state, ddp = train(rank, "scalecom,rate=20", 2)
    for number in (1, 2, 3):
        checkpoint.save(Path(folder), number, state, model=ddp.module)
    return checkpoint.load(Path(folder), state, DEVICE, model=ddp.module), state.steps


def test_the_last_two_are_kept(world, tmp_path: Path) -> None:
    assert world(2).run(_save_thrice, str(tmp_path)) == [(3, 2), (3, 2)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2", "3"]


def _watched_save(rank: int, _size: int, folder: str) -> list[tuple[str, str]]:
    """What a save does that the disk hears of, in its order."""
    _, state, ddp = train(rank, "scalecom,rate=20", 1)
    for number in (1, 2):
        checkpoint.save(Path(folder), number, state, model=ddp.module)
    seen: list[tuple[str, str]] = []
    flush, rename, remove = os.fsync, Path.rename, checkpoint.shutil.rmtree

    def note(what: str, path: object) -> None:
        seen.append((what, os.path.relpath(str(path), folder)))

    def noted_flush(file: int) -> None:
        note("flush", os.readlink(f"/proc/self/fd/{file}"))
        flush(file)

    def noted_rename(path: Path, to: Path) -> None:
        note("rename", path)
        rename(path, to)

    def noted_remove(path: Path, ignore_errors: bool = False) -> None:
        note("remove", path)
        remove(path, ignore_errors)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", noted_flush)
        patch.setattr(Path, "rename", noted_rename)
        patch.setattr(checkpoint.shutil, "rmtree", noted_remove)
        checkpoint.save(Path(folder), 3, state, model=ddp.module)
    return seen


def test_all_is_on_the_disk_before_it_counts_and_before_others_go(world, tmp_path: Path) -> None:
    seen, of_others = world(2).run(_watched_save, str(tmp_path.resolve()))
    renamed = seen.index(("rename", "3.partial"))
    assert seen[renamed - 2:renamed] == [("flush", "3.partial/parts.pt"), ("flush", "3.partial")]
    assert seen[renamed + 1:] == [("flush", "."), ("remove", "1")]
    assert not of_others
