"""Backups flush their own files and directories, and report errors."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from config.backup.layout import sync_tree


def test_it_waits_for_every_file_and_directory_below_and_for_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = tmp_path / "backup"
    (inside / "files").mkdir(parents=True)
    (inside / "files" / "stdout.txt").write_bytes(b"printed")
    os.mkfifo(inside / "pipe")  # opening it would wait for a writer
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda number: synced.append(str(Path(f"/proc/self/fd/{number}").readlink())))
    sync_tree(inside)
    assert synced == [f"{inside}{name}" for name in ("/files/stdout.txt", "/files", "")]


@pytest.mark.parametrize(("code", "raised"), [(errno.EIO, True), (errno.ENOSPC, True), (errno.EINVAL, False)])
def test_a_file_that_did_not_reach_the_disk_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, raised: bool
) -> None:
    (tmp_path / "database").write_bytes(b"rows")

    def full(_descriptor: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", full)
    if not raised:  # a file system that cannot be asked
        sync_tree(tmp_path)
        return
    with pytest.raises(OSError, match=os.strerror(code)):
        sync_tree(tmp_path)
