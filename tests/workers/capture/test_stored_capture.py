"""Recordings of several hosts become one capture, and each of them is kept."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

import analysis
from tests.analysis.recorded_hosts import MS, exact, recordings, traffic
from workers.capture.dumpcap import CaptureReport, compressed, compressor, store
from workers.capture.stored_capture import SHARES, Recorded, store_recordings
from workers.errors import TrialFailed

HOSTS = ("n1", "n2", "n3")
PACKETS = 4000


@dataclass
class EndedCapture:
    """A recording whose tool has ended."""

    file: Path

    def stop(self, quiet_s: float) -> CaptureReport:
        return CaptureReport(captured=10, received=12, dropped=0, died=False, limit_reached=False)

    def save(self, path: Path) -> None:
        store(compressed([self.file.read_bytes()], compressor()), path)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    clocks = [exact, lambda _: 38.0 * MS, lambda t: -7.0 * MS + 0.001 * t]
    return [recording.path for recording in recordings(traffic(PACKETS), tmp_path, clocks)]


def stored(files: list[Path], directory: Path, check=lambda: None) -> Recorded:  # type: ignore[no-untyped-def]
    captures = {host: EndedCapture(file) for host, file in zip(HOSTS, files, strict=True)}
    addresses = {host: frozenset({f"10.0.0.{number}"}) for number, host in enumerate(HOSTS, start=1)}
    return store_recordings(captures, directory, addresses, HOSTS, quiet_s=0.0, check=check)  # type: ignore[arg-type]


def test_store_recordings_joins_the_recordings_of_all_hosts(files: list[Path], tmp_path: Path) -> None:
    recorded = stored(files, tmp_path)
    assert recorded.joined is not None
    assert recorded.file is not None
    assert recorded.report == CaptureReport(PACKETS, PACKETS + 6, 0, died=False, limit_reached=False)
    assert set(recorded.joined.clocks) == {"n2", "n3"}
    assert analysis.analyse(recorded.file, mtu=1500).metrics["packets"] == recorded.joined.packets == PACKETS
    assert {f"capture-{host}.pcapng.zst" for host in HOSTS} <= {path.name for path in tmp_path.iterdir()}
    assert not (tmp_path / SHARES).exists()


def test_store_recordings_of_an_unreadable_recording_falls_back_to_the_first(files: list[Path], tmp_path: Path) -> None:
    files[1].write_bytes(b"no capture")
    recorded = stored(files, tmp_path)
    assert recorded.joined is None
    assert len(recorded.reasons) == 1
    assert recorded.file is not None
    assert 0 < analysis.analyse(recorded.file, mtu=1500).metrics["packets"] < PACKETS
    assert not (tmp_path / SHARES).exists()


def test_store_recordings_ends_when_the_trial_is_cancelled(files: list[Path], tmp_path: Path) -> None:
    def cancelled() -> None:
        raise TrialFailed("cancelled")

    with pytest.raises(TrialFailed, match="cancelled"):
        stored(files, tmp_path, cancelled)
    assert not (tmp_path / SHARES).exists()


def test_store_recordings_without_room_fails_the_trial(files: list[Path], tmp_path: Path) -> None:
    with pytest.raises(TrialFailed, match=r"cannot be stored in .*: No such file or directory"):
        stored(files, tmp_path / "absent")
