"""What a backup waits for: its own files and names, each once, and an error of any."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from config.backup.on_disk import sync_tree


def test_it_waits_for_every_file_and_directory_below_and_for_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = tmp_path / "backup"
    (inside / "files" / "1").mkdir(parents=True)
    (inside / "empty").mkdir()
    (inside / "database").write_bytes(b"rows")
    (inside / "files" / "1" / "stdout.txt").write_bytes(b"printed")
    (inside / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").write_bytes(b"of somebody else")
    os.mkfifo(inside / "pipe")  # opening it would wait for a writer
    synced, fsync = [], os.fsync

    def seen(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", seen)
    sync_tree(inside)
    below = ["", "/database", "/empty", "/files", "/files/1", "/files/1/stdout.txt"]
    assert sorted(synced) == [f"{inside}{name}" for name in below]
    assert synced[-1] == str(inside), "its names come last"


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
