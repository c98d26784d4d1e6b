"""Memory of recordings: allocated before use, reused, never too much."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from workers.capture import slot_memory
from workers.capture.slot_memory import SlotMemory, filled_bytes

MIB = 1 << 20


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlotMemory]:
    """That of a machine with 128 MiB free: 8 are made ready, 16 kept."""
    monkeypatch.setattr(slot_memory, "available_memory_bytes", lambda: 128 * MIB)
    memory = SlotMemory()
    yield memory
    memory.close()


def occupied_bytes(descriptor: int) -> int:
    return 512 * os.fstat(descriptor).st_blocks


def test_its_pages_are_in_use_before_anything_is_recorded(memory: SlotMemory) -> None:
    descriptor = memory.take()
    assert occupied_bytes(descriptor) == 8 * MIB
    assert filled_bytes(descriptor) == 0
    os.write(descriptor, b"slot")
    assert filled_bytes(descriptor) == 4
    memory.give_back(descriptor)


def test_the_next_recording_gets_the_same_pages_from_their_start(memory: SlotMemory) -> None:
    first = memory.take()
    os.write(first, bytes(MIB))
    memory.give_back(first)
    second = memory.take()
    assert second == first
    assert filled_bytes(second) == 0
    assert occupied_bytes(second) == 8 * MIB
    memory.give_back(second)


def test_a_large_recording_is_given_up_beyond_what_is_kept(memory: SlotMemory) -> None:
    descriptor = memory.take()
    os.write(descriptor, b"x" * (20 * MIB))
    assert occupied_bytes(descriptor) == 20 * MIB
    memory.give_back(descriptor)
    assert occupied_bytes(descriptor) == 16 * MIB


def slots_open() -> int:
    """Return such files of this process; its servers have others."""
    held = 0
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            held += "memfd:slots" in str(link.readlink())
    return held


def test_no_memory_is_an_error_and_leaves_no_file(memory: SlotMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    before = slots_open()
    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(OSError, match="No space left"):
        memory.take()
    assert slots_open() == before
