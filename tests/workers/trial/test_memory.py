"""Failures for lack of memory are named as such, with the amount and the setting."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from workers.keeper.machine import memory_kills
from workers.trial import failure
from workers.trial.rank_usage import RankUsage

LIMIT = 1 << 30


def usage(number: int | None, max_rss_bytes: int, exit_status: int | None = None) -> RankUsage:
    return RankUsage(0, "h1", 1.0, 0.0, max_rss_bytes, 0, 0, exit_status, number, 0, 1, 0.0)


@pytest.mark.parametrize(
    ("number", "exit_status", "rss", "kills", "named"),
    [
        (signal.SIGKILL, None, 1 << 20, 1, True),
        (signal.SIGKILL, None, 1 << 20, 0, False),
        (signal.SIGSEGV, None, LIMIT, 0, True),
        (signal.SIGABRT, None, LIMIT // 2, 0, False),
        (None, 1, LIMIT, 0, True),
        (signal.SIGTERM, None, LIMIT, 0, False),
    ],
)
def test_out_of_memory(number: int | None, exit_status: int | None, rss: int, kills: int, named: bool) -> None:
    sentence = failure.out_of_memory([usage(number, rss, exit_status)], 0, limit_bytes=LIMIT, kernel_kills=kills)
    assert bool(sentence) is named
    assert ("RANKWIRE_TRIAL_MEMORY_MIB" in sentence) is named


def test_memory_kills_reads_the_counter_of_the_kernel(tmp_path: Path) -> None:
    counters = tmp_path / "vmstat"
    counters.write_text("pgfault 5\noom_kill 3\noom_kill_other 9\n")
    assert memory_kills(counters) == 3
    counters.write_text("pgfault 5\n")
    assert memory_kills(counters) == 0


def test_available_memory_is_that_of_the_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(failure, "_LIMIT_OF_CONTAINER", limit)
    limit.write_text("1048576\n")
    assert failure.available_bytes() == 1 << 20
    limit.write_text("max\n")
    assert failure.available_bytes() > 1 << 20
