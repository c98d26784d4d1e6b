"""Connections without ranks have the ranks of hosts with one rank each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import analysis
from tests.analysis.capture_files import Frame, pcap
from tests.analysis.frames import ethernet, ipv4, tcp

RECORDED = Path(__file__).parent.parent / "data"
FIRST, SECOND = "10.217.0.1", "10.217.0.2"
MPICH = pytest.mark.parametrize("name", ["mpich-ucx.pcap", "mpich-libfabric.pcap", "intel-mpi.pcap"])


def measured(name: str, host_ranks: Mapping[str, Sequence[int]]) -> analysis.CaptureAnalysis:
    return analysis.analyse(RECORDED / name, host_ranks=host_ranks)


def named(result: analysis.CaptureAnalysis) -> list[tuple[str, Any, str, Any]]:
    return [(row["host_a"], row["rank_a"], row["host_b"], row["rank_b"]) for row in result.flows]


@MPICH
def test_a_host_with_one_rank_gives_its_connections_that_rank(name: str) -> None:
    result = measured(name, {FIRST: [7], SECOND: [3]})
    hosts, ranks = result.matrices["hosts"], result.matrices["ranks"]
    assert (ranks["labels"], ranks["source"], ranks["by_host_alone"]) == ([3, 7], "one_rank_per_host", None)
    assert ranks["connections_without_ranks"] == 0
    assert {(a, rank) for a, rank, _, _ in named(result)} | {(b, rank) for _, _, b, rank in named(result)} == {
        (FIRST, 7),
        (SECOND, 3),
    }
    turned = [row[::-1] for row in hosts["payload_bytes"][::-1]]  # rank 3 is on the second host
    assert ranks["payload_bytes"] == turned
    assert ranks["payload_bytes"][0][1] > 0


@MPICH
def test_host_with_several_ranks_stays_a_host_with_a_reason(name: str) -> None:
    result = measured(name, {FIRST: [0, 1], SECOND: [2]})
    ranks = result.matrices["ranks"]
    assert (ranks["labels"], ranks["source"]) == ([], None)
    assert ranks["by_host_alone"].endswith(f"the rank on a connection, and several ranks ran on {FIRST}")
    assert ranks["connections_without_ranks"] == len(result.flows) > 0
    for a, rank_a, b, rank_b in named(result):
        assert {a: rank_a, b: rank_b} == {FIRST: None, SECOND: 2}


@MPICH
def test_unknown_hosts_of_ranks_are_the_reason(name: str) -> None:
    ranks = measured(name, {}).matrices["ranks"]
    assert ranks["by_host_alone"].endswith("and the hosts of the ranks are unknown")
    assert measured(name, {FIRST: [0]}).matrices["ranks"]["by_host_alone"] == ranks["by_host_alone"]


def test_ranks_of_a_handshake_take_precedence() -> None:
    before, after = (measured("open-mpi-5.pcap", ranks).matrices["ranks"] for ranks in ({}, {FIRST: [7], SECOND: [3]}))
    assert before == after
    assert (after["source"], after["by_host_alone"]) == ("btl_handshake", None)


def test_other_traffic_between_those_hosts_has_no_rank(tmp_path: Path) -> None:
    """A daemon on another port has no rank, the MPI connection has one."""
    frames = [
        ethernet(ipv4(tcp(40_000, port, seq=1, ack=1, payload=bytes(10)), source=FIRST, destination=SECOND))
        for port in (22, 30_005)
    ]
    path = tmp_path / "daemon.pcap"
    path.write_bytes(pcap([Frame.whole(10**15 + number, frame) for number, frame in enumerate(frames)]))
    result = analysis.analyse(path, mpi_ports=(30_000, 30_099), host_ranks={FIRST: [0], SECOND: [1]})
    assert [(row["port_b"], row["rank_a"], row["rank_b"]) for row in result.flows] == [(22, None, None), (30_005, 0, 1)]
    assert result.matrices["ranks"]["payload_bytes"] == [[0, 10], [0, 0]]


def test_many_hosts_with_several_ranks_are_named_by_number(tmp_path: Path) -> None:
    frames = [
        ethernet(ipv4(tcp(40_000, 30_005, payload=bytes(10)), source=f"10.0.0.{number}", destination="10.0.0.9"))
        for number in range(1, 7)
    ]
    path = tmp_path / "many.pcap"
    path.write_bytes(pcap([Frame.whole(10**15 + number, frame) for number, frame in enumerate(frames)]))
    crowded = {f"10.0.0.{number}": [2 * number, 2 * number + 1] for number in range(1, 10)}
    ranks = analysis.analyse(path, mpi_ports=(30_000, 30_099), host_ranks=crowded).matrices["ranks"]
    assert ranks["by_host_alone"].endswith("ran on 10.0.0.1, 10.0.0.2, 10.0.0.3 and 4 other hosts")
