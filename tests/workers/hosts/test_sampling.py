"""Counters over time: whose CPU time, whose frames, and the rates between samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import pytest

from tests.workers.clusters.trials import start_tool
from workers.agent import ranks
from workers.errors import ClusterUnavailable
from workers.hosts.sampling import HostSample, MachineSample, Sample, shares, stored_shares
from workers.launchers import Session, rank

MACHINE = MachineSample(1.0, 1.0, 1.0, 1 << 30, 1, 0.5)


def sample(second: float, *hosts: HostSample) -> Sample:
    return Sample(int(second * 1e9), MACHINE, hosts)


def test_shares_are_differences_over_the_interval_s_true_length() -> None:
    before = HostSample("n1", 1.0, 0.5, 100, 1, rx_bytes=10, rx_packets=1, tx_bytes=20, tx_packets=2, drops=3)
    after = HostSample("n1", 2.0, 0.75, 300, 2, rx_bytes=1010, rx_packets=11, tx_bytes=520, tx_packets=7, drops=5)
    assert shares([sample(5.0, before), sample(7.0, after)]) == [
        {
            "t_s": 2.0,
            "host": "n1",
            "cpu_user_share": 0.5,
            "cpu_system_share": 0.125,
            "memory_bytes": 300,
            "runnable": 2,
            "rx_Bps": 500.0,
            "tx_Bps": 250.0,
            "rx_pps": 5.0,
            "tx_pps": 2.5,
            "drops": 2,
        }
    ]


def test_ports_that_wait_have_a_share_of_the_ticks() -> None:
    def host(waits: float, sent: float) -> HostSample:
        counted = {"fabric_wait_ticks": (1.0, waits), "fabric_sent_bytes": (1.0 + sent / 1e4, sent)}
        return HostSample("n1", 1.0, 1.0, 1, 1, counters=counted)

    (row,) = shares([sample(1.0, host(100.0, 4000.0)), sample(2.0, host(350.0, 7000.0))])
    assert row["fabric_wait_share"] == 0.25
    (still,) = shares([sample(1.0, host(100.0, 4000.0)), sample(2.0, host(100.0, 4000.0))])
    assert "fabric_wait_share" not in still


@pytest.mark.parametrize(("waits", "sent"), [(-1.0, 4.0), (-1.0, 8.0), (8.0, -4.0)])
def test_counters_that_restarted_have_no_share_of_the_ticks(waits: float, sent: float) -> None:
    before, after = (
        HostSample(
            "n1", 1.0, 1.0, 1, 1, counters={"fabric_wait_ticks": (at_s, ticks), "fabric_sent_bytes": (at_s, size)}
        )
        for at_s, ticks, size in ((1.0, 100.0, 100.0), (2.0, 100.0 + waits, 100.0 + sent))
    )
    (row,) = shares([sample(1.0, before), sample(2.0, after)])
    assert "fabric_wait_share" not in row


def test_a_single_sample_or_an_empty_interval_gives_no_rate() -> None:
    host = HostSample("n1", 1.0, 1.0, 1, 1)
    assert shares([sample(1.0, host)]) == []
    assert shares([sample(1.0, host), sample(1.0, host)]) == []


def test_cpu_time_and_memory_are_those_of_the_host_that_runs_the_program(
    testbed: Session, eventually: Callable[..., object]
) -> None:
    before = testbed.sample()
    process, _ = start_tool(testbed, "/usr/bin/python3", "-c", 'b = b"x" * 50_000_000\nwhile True: pass', host="n3")
    try:
        eventually(lambda: testbed.sample().hosts[2].cpu_user_s - before.hosts[2].cpu_user_s >= 0.2)
        after = testbed.sample()
    finally:
        process.terminate(0.0)
    assert [host.host for host in after.hosts] == ["n1", "n2", "n3", "n4"]
    assert after.hosts[2].memory_bytes > 50_000_000
    assert after.hosts[2].runnable == 1
    for index in (0, 1, 3):
        assert after.hosts[index].cpu_user_s == before.hosts[index].cpu_user_s
        assert after.hosts[index].memory_bytes == 0
    assert after.machine.memory_available_bytes > 0


def test_counters_never_run_backwards_when_programs_end(testbed: Session) -> None:
    for _ in range(3):
        process, _ = start_tool(testbed, "/usr/bin/python3", "-c", "sum(range(2_000_000))", host="n1")
        before = testbed.sample().hosts[0]
        process.wait(20.0)
        after = testbed.sample().hosts[0]
        assert after.cpu_user_s >= before.cpu_user_s
        assert after.cpu_system_s >= before.cpu_system_s


def test_processor_time_is_known_by_rank_while_the_rank_runs(
    testbed: Session, eventually: Callable[..., object]
) -> None:
    argv = ("/usr/bin/env", "OMPI_COMM_WORLD_RANK=3", "/usr/bin/python3", "-c", "while True: pass")
    process, _ = start_tool(testbed, *argv, host="n3")
    try:
        eventually(lambda: testbed.sample().hosts[2].ranks.get("3", 0.0) >= 0.2)
        assert [set(host.ranks) for host in testbed.sample().hosts] == [set(), set(), {"3"}, set()]
    finally:
        process.terminate(0.0)
    eventually(lambda: not testbed.sample().hosts[2].ranks)


def test_agent_knows_ranks_by_the_variables_of_the_wrapper() -> None:
    assert ranks.RANK_VARIABLES == rank.RANK_VARIABLES


def test_what_is_kept_says_by_the_clock_of_the_packets_when_it_began() -> None:
    host = HostSample("n1", 0.0, 0.0, 0, 0)
    samples = [
        replace(item, machine=replace(item.machine, realtime_offset_ns=1_000_000_000_000))
        for item in (sample(5.0, host), sample(6.0, host), sample(7.0, host))
    ]
    first, second = stored_shares(samples)
    assert first["began_s"] == 1005.0
    assert "began_s" not in second
    assert stored_shares(samples[:1]) == []


HOST = {"host": "n1", "cpu_user_s": 1.0, "cpu_system_s": 1.0, "memory_bytes": 1, "runnable": 1}
ANSWER = {"monotonic_ns": 1, "machine": asdict(MACHINE), "hosts": [HOST]}


@pytest.mark.parametrize(
    "odd",
    [
        {"hosts": [{**HOST, "ranks": {str(rank): 1.0 for rank in range(5000)}}]},
        {"hosts": [{**HOST, "ranks": {"x" * 1000: 1.0}}]},
        {"hosts": [{**HOST, "counters": {"package_j": [1.0, float("nan")]}}]},
        {"hosts": [{**HOST, "counters": {"package_j": [1.0] * 100_000}}]},
        {"hosts": [{**HOST, "host": "x" * 10_000}]},
        {"hosts": [{**HOST, "cpu_user_s": "x" * 10_000}]},
        {"hosts": [HOST] * 10_000},
        {"hosts": {}},
        {"machine": {**asdict(MACHINE), "cpu_numbers": "0," * 10_000}},
        {"machine": {**asdict(MACHINE), "cpu_user_s": float("inf")}},
        {"further": {"n2": {}}},
    ],
)
def test_samples_of_hostile_hosts_are_refused(odd: dict[str, Any]) -> None:
    assert Sample.from_message(ANSWER).hosts[0].host == "n1"
    with pytest.raises(ClusterUnavailable, match="sends no sample"):
        Sample.from_message({**ANSWER, **odd})


@pytest.mark.parametrize(
    "hosts", [["n2"], ["n1", "n1"], [f"n{number}" for number in range(100)]], ids=["other", "two", "many"]
)
def test_another_machine_sends_samples_of_itself_alone(hosts: list[str]) -> None:
    """They are kept until the trial ends: 4096 hosts a second fill the memory."""
    one = asdict(sample(1.0, *(HostSample(host, 1.0, 0.5, 100, 1) for host in hosts)))
    with pytest.raises(ClusterUnavailable, match="n1 sends no sample"):
        Sample.of_machine("n1", one)


def test_another_machine_sends_no_ranks() -> None:
    """The live view reads their names as numbers."""
    for ranks_of_host, is_fine in (({}, True), ({"x": 1.0}, False)):
        one = asdict(sample(1.0, HostSample("n1", 1.0, 0.5, 100, 1, ranks=ranks_of_host)))
        if is_fine:
            assert Sample.of_machine("n1", one).hosts[0].host == "n1"
        else:
            with pytest.raises(ClusterUnavailable, match="n1 sends no sample"):
                Sample.of_machine("n1", one)


def test_counters_read_at_nearly_the_same_time_have_no_rate() -> None:
    before, after = (
        HostSample("n1", 1.0, 1.0, 1, 1, counters={"package_j": (at_s, joules)})
        for at_s, joules in ((0.0, 0.0), (5e-324, 2.0**62))
    )
    (row,) = shares([sample(1.0, before), sample(2.0, after)])
    assert "package_W" not in row
