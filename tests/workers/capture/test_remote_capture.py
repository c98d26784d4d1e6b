"""Recordings that other hosts send, which may be hostile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from workers.capture import remote
from workers.capture.remote import MESSAGES, PACKETS, RemoteCapture
from workers.errors import ClusterUnavailable
from workers.hosts.processes import Process
from workers.hosts.remote_agent import RemoteAgent

COUNTS = "Packets captured: 3\nPackets received/dropped on interface 'eth0': 3/0 (pcap:0)"


class EndedRecorder:
    """Recorder and its host, which sends these bytes and messages."""

    host = "n1"

    def __init__(self, size: int, messages: str, packets: bytes = b"") -> None:
        self.stated, self.files = size, {PACKETS: packets, MESSAGES: messages.encode()}

    def size(self, path: str) -> int:
        return self.stated if path == PACKETS else len(self.files[path])

    def read(self, path: str, offset: int = 0, *, most: int) -> Iterator[bytes]:
        yield self.files[path][:most]

    def poll(self) -> int:
        return 0

    def wait(self, timeout_s: float | None = None) -> int:
        return 0

    def send_signal(self, number: int) -> None:
        pass


def capture_of(recorder: EndedRecorder) -> RemoteCapture:
    return RemoteCapture(cast(RemoteAgent, recorder), cast(Process, recorder), "eth0", None)


def test_it_takes_no_more_than_the_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of a hundred hosts sent 2 GiB, and all are in memory together."""
    monkeypatch.setattr(remote, "available_memory_bytes", lambda: 4000)
    with pytest.raises(ClusterUnavailable, match=r"The capture of host n1 has .*, and the worker has memory for"):
        capture_of(EndedRecorder(3001, COUNTS)).stop()
    cheating = capture_of(EndedRecorder(1000, COUNTS, b"x" * 10_000))
    cheating.stop()
    assert cheating.file.stat().st_size == 3000


@pytest.mark.parametrize(
    ("counts", "captured"), [(COUNTS, 3), (COUNTS.replace("3", "9" * 5000), 0), (COUNTS.replace("3", "\u0663"), 0)]
)
def test_counts_that_no_recorder_reports_are_none(counts: str, captured: int, tmp_path: Path) -> None:
    report = capture_of(EndedRecorder(0, counts)).stop()
    assert (report.captured, report.received) == (captured, captured)
