"""Failures for lack of memory are named as such, with the amount and the setting."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from workers.agent.machine import memory_kills
from workers.hosts.sampling import HostSample, MachineSample, Sample
from workers.hosts.sampling import memory_kills as kills_between
from workers.trial import failure
from workers.trial.rank_usage import RankUsage

LIMIT = 1 << 30


def usage(number: int | None, max_rss_bytes: int, exit_status: int | None = None) -> RankUsage:
    return RankUsage(0, "h1", 1.0, 0.0, max_rss_bytes, 0, 0, exit_status, number, 0, 1, 0.0)


@pytest.mark.parametrize(
    ("number", "exit_status", "rss", "killed_on", "named"),
    [
        (signal.SIGKILL, None, 1 << 20, [failure.THIS_MACHINE], "RANKWIRE_TRIAL_MEMORY_MIB"),
        (signal.SIGKILL, None, 1 << 20, ["node7", "node9"], "node7, node9"),
        (signal.SIGKILL, None, 1 << 20, [], ""),
        (signal.SIGSEGV, None, LIMIT, [], "RANKWIRE_TRIAL_MEMORY_MIB"),
        (signal.SIGABRT, None, LIMIT // 2, [], ""),
        (None, 1, LIMIT, [], "RANKWIRE_TRIAL_MEMORY_MIB"),
        (signal.SIGTERM, None, LIMIT, ["node7"], ""),
    ],
)
def test_out_of_memory(number: int | None, exit_status: int | None, rss: int, killed_on: list[str], named: str) -> None:
    sentence = failure.out_of_memory([usage(number, rss, exit_status)], 0, limit_bytes=LIMIT, killed_on=killed_on)
    assert bool(sentence) is bool(named)
    assert named in sentence


def test_memory_kills_of_samples_are_those_of_each_host() -> None:
    def sample(**kills: int) -> Sample:
        hosts = {host: MachineSample(0, 0, 0, 0, 0, 0, memory_kills=count) for host, count in kills.items()}
        return Sample(0, hosts.pop("n1"), (HostSample("n1", 0, 0, 0, 0),), hosts)

    assert kills_between([sample(n1=4, n2=1, n3=0), sample(n1=4, n2=1, n3=0), sample(n1=4, n2=3, n3=0)]) == {"n2": 2}


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
