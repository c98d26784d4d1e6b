"""Recordings of several hosts are taken on by other processes: the joined capture is the same to the byte, whoever made its shares."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import analysis
from analysis.capture.join import Joined
from analysis.capture.sharding import Recording
from tests.analysis.recorded_hosts import MS, exact, recordings, traffic
from tests.worker_process import CeleryWorker
from workers.capture import prepared_recordings
from workers.capture.prepared_recordings import Shares
from workers.errors import TrialFailed

DEADLINE_S = 100.0
CLOCKS = [exact, lambda _: 38.0 * MS, lambda t: -7.0 * MS + 0.001 * t]


@pytest.fixture
def recorded(tmp_path: Path) -> list[Recording]:
    return recordings(traffic(4000), tmp_path, CLOCKS)


@pytest.fixture
def helper(
    transactional_db: None, empty_redis: object, start_celery_worker: Callable[..., CeleryWorker]
) -> Iterator[CeleryWorker]:
    """A worker that takes analysis alone."""
    worker = start_celery_worker(queues="analysis")
    yield worker
    worker.kill()  # it would help other tests, too


def wait_until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.02)


def nothing() -> None:
    """Nobody wants the trial to end."""


def made_alone(recorded: list[Recording], directory: Path) -> tuple[Joined, dict[str, bytes]]:
    """What one process makes, and every file of it."""
    directory.mkdir()
    alone = Shares.begin(directory / "shares", recorded)
    alone.finish(nothing)
    return result_of(alone, directory)


def result_of(done: Shares, directory: Path) -> tuple[Joined, dict[str, bytes]]:
    for number, recording in enumerate(done.recordings):
        done.keep_packed(number, directory / recording.host)
    told = done.join(directory / "capture.pcapng.zst")
    return told, {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


def figures(path: Path) -> dict[str, object]:
    return {**analysis.analyse(path, mtu=1500).to_dict(), "file": ""}


def test_a_group_makes_what_one_process_makes(
    recorded: list[Recording], helper: CeleryWorker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepared_recordings, "HELPED_FROM_BYTES", 0)
    told, files = made_alone(recorded, tmp_path / "alone")
    helped = Shares.begin(tmp_path / "shares", recorded)
    helped.ask_for_help()
    wait_until(lambda: helped.is_done(1) and helped.is_done(2), f"others make shares: {helper.output()[-2000:]}")
    assert not helped.is_done(0), "the first one is left to who asks"
    helped.finish(nothing)
    together = tmp_path / "together"
    together.mkdir()
    assert result_of(helped, together) == (told, files)
    assert figures(together / "capture.pcapng.zst") == figures(tmp_path / "alone" / "capture.pcapng.zst")
    assert told.packets == 4000
    assert set(told.clocks) == {"n2", "n3"}


def test_a_share_whose_maker_is_killed_is_made_again(
    recorded: list[Recording], helper: CeleryWorker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepared_recordings, "HELPED_FROM_BYTES", 0)
    told, files = made_alone(recorded, tmp_path / "alone")
    content = recorded[2].path.read_bytes()
    recorded[2].path.unlink()
    os.mkfifo(recorded[2].path)  # who reads it waits, and so is found at it
    helped = Shares.begin(tmp_path / "shares", recorded)
    helped.ask_for_help()
    wait_until(lambda: list(helped.place.glob("2.[0-9]*")), "another one is at the last share")
    assert not helped.take(2)
    helper.kill()
    recorded[2].path.unlink()
    recorded[2].path.write_bytes(content)
    helped.finish(nothing)
    together = tmp_path / "together"
    together.mkdir()
    assert result_of(helped, together) == (told, files)


def test_who_never_gets_ready_is_not_waited_for(recorded: list[Recording], tmp_path: Path) -> None:
    waiting = Shares.begin(tmp_path / "shares", recorded)
    with waiting._claimed(1) as claimed:
        assert claimed
        waiting.finish(nothing, patience_s=0.1)
    together = tmp_path / "together"
    together.mkdir()
    assert result_of(waiting, together) == made_alone(recorded, tmp_path / "alone")


def test_a_cancelled_trial_is_not_joined(recorded: list[Recording], tmp_path: Path) -> None:
    def cancelled() -> None:
        raise TrialFailed("cancelled")

    waiting = Shares.begin(tmp_path / "shares", recorded)
    with pytest.raises(TrialFailed, match="cancelled"):
        waiting.finish(cancelled)
    assert not any(waiting.is_done(number) for number in range(3))


def test_help_for_a_trial_that_is_over_does_nothing(tmp_path: Path) -> None:
    prepared_recordings.help_with(tmp_path / "shares", 1)
    assert not list(tmp_path.iterdir())


def test_small_recordings_bother_nobody(
    recorded: list[Recording], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(prepared_recordings.queue, "share_out", lambda *what: asked.append(what))
    begun = Shares.begin(tmp_path / "shares", recorded)
    begun.ask_for_help()
    assert not asked
    monkeypatch.setattr(prepared_recordings, "HELPED_FROM_BYTES", 1000)
    begun.ask_for_help()
    assert asked == [(begun.place, range(1, 3))]


def test_a_recording_that_cannot_be_read_is_told(recorded: list[Recording], tmp_path: Path) -> None:
    recorded[1].path.write_bytes(b"no capture")
    begun = Shares.begin(tmp_path / "shares", recorded)
    begun.finish(nothing)
    with pytest.raises(analysis.CaptureError):
        begun.join(tmp_path / "capture.pcapng.zst")
    assert (begun.place / "0").is_dir()


def test_a_full_disk_is_told_in_a_sentence(recorded: list[Recording], tmp_path: Path) -> None:
    with pytest.raises(TrialFailed, match=r"cannot be stored in .*: No such file or directory"):
        Shares.begin(tmp_path / "absent" / "shares", recorded)
