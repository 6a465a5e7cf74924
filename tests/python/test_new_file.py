"""Files that the package writes appear whole or not at all, and follow no link."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scalecom import new_file

pytestmark = pytest.mark.cpu("files need no device")


def test_a_file_is_replaced_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for text in ("{}", "[1, 2]"):
        new_file.write(path, text)
        assert path.read_text() == text
    assert list(tmp_path.iterdir()) == [path]


def test_a_name_alone_is_of_the_folder_at_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    new_file.write("a.json", "{}")
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize("mask", [0o022, 0o027])
def test_the_mode_is_that_of_any_new_file(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        new_file.write(tmp_path / "a.json", "{}")
    finally:
        os.umask(before)
    assert (tmp_path / "a.json").stat().st_mode & 0o777 == 0o666 & ~mask


def test_a_pipe_or_a_device_is_not_replaced(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for target in (pipe, link):
        with pytest.raises(OSError, match="no plain file"):
            new_file.write(target, "{}")
    assert pipe.is_fifo() and link.is_symlink() and len(list(tmp_path.iterdir())) == 2


def test_links_are_replaced_and_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("as it was")
    # Names that were once used on the way.
    links = [tmp_path / name for name in ("a.json", "a.json.new", f"a.json.{os.getpid()}.unfinished")]
    for link in links:
        link.symlink_to(victim)
    new_file.write(tmp_path / "a.json", "{}")
    assert victim.read_text() == "as it was"
    assert [link.is_symlink() for link in links] == [False, True, True]


def test_a_name_that_is_taken_is_neither_opened_nor_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scalecom.new_file.secrets.token_hex", lambda _: "guessed")
    victim = tmp_path / "victim"
    victim.write_text("as it was")
    (tmp_path / ".scalecom-guessed.tmp").symlink_to(victim)
    with pytest.raises(FileExistsError):
        new_file.write(tmp_path / "a.json", "{}")
    assert victim.read_text() == "as it was" and (tmp_path / ".scalecom-guessed.tmp").is_symlink()
    assert not (tmp_path / "a.json").exists()


def test_a_failure_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    path.write_text("as it was")

    def full(_new: str, _target: str) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("scalecom.new_file.os.replace", full)
    with pytest.raises(OSError, match="no space left"):
        new_file.write(path, "{}")
    assert path.read_text() == "as it was" and list(tmp_path.iterdir()) == [path]


def test_text_need_not_be_proper_unicode(tmp_path: Path) -> None:
    new_file.write(tmp_path / "a.json", "é\ud800")
    assert (tmp_path / "a.json").read_text(encoding="utf-8") == "é?"
