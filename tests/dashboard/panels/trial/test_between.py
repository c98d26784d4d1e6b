"""Squares of matrices link to packets by a display filter."""

from __future__ import annotations

from typing import Any

from dashboard.panels.trial.between import Between
from dashboard.panels.trial.packets import LONGEST_FILTER

HOSTS = ["10.0.0.1", "10.0.0.2", "fd00::3"]


def flow(
    rank_a: int | None, rank_b: int | None, *, port: int = 50000, sent: int = 10, jobid: int | None = 7
) -> dict[str, Any]:
    ends = {"host_a": "10.0.0.1", "port_a": port, "host_b": "10.0.0.2", "port_b": 1024}
    return {**ends, "rank_a": rank_a, "rank_b": rank_b, "jobid": jobid, "wire_bytes_ab": sent, "wire_bytes_ba": 1}


def analysis(*flows: dict[str, Any]) -> dict[str, Any]:
    return {"flows": list(flows), "matrices": {"hosts": {"labels": HOSTS}, "ranks": {"labels": [0, 1, 2], "jobid": 7}}}


def test_from_host_to_host_are_the_packets_with_these_addresses() -> None:
    assert Between.of(analysis(), "host", "10.0.0.1", "10.0.0.2") == Between("ip.src == 10.0.0.1 && ip.dst == 10.0.0.2")
    assert Between.of(analysis(), "host", "fd00::3", "10.0.0.2") == Between("ipv6.src == fd00::3 && ip.dst == 10.0.0.2")


def test_neighbours_that_are_one_row_are_meant_together() -> None:
    result = Between.of(analysis(), "host", "10.0.0.1 to 10.0.0.2", "fd00::3")
    assert result == Between("(ip.src == 10.0.0.1 || ip.src == 10.0.0.2) && ipv6.dst == fd00::3")


def test_from_rank_to_rank_are_the_packets_of_their_connections_in_that_direction() -> None:
    results = analysis(flow(0, 1), flow(0, 2, port=50001), flow(0, 1, port=50002, jobid=8))
    there, back = (Between.of(results, "rank", *ranks) for ranks in (("0", "1"), ("1", "0")))
    assert there == Between("ip.src == 10.0.0.1 && tcp.srcport == 50000 && ip.dst == 10.0.0.2 && tcp.dstport == 1024")
    assert back == Between("ip.src == 10.0.0.2 && tcp.srcport == 1024 && ip.dst == 10.0.0.1 && tcp.dstport == 50000")


def test_of_many_connections_those_with_most_bytes_fit_the_filter_and_the_others_are_counted() -> None:
    result = Between.of(analysis(*(flow(0, 1, port=50000 + n, sent=n) for n in range(40))), "rank", "0", "1")
    assert result is not None
    clauses = result.filter.split(" || ")
    assert "tcp.srcport == 50039" in clauses[0]
    assert 5 < len(clauses) == 40 - result.left_out
    assert len(result.filter) <= LONGEST_FILTER


def test_nothing_is_known_of_ranks_that_share_a_host_nor_of_names_that_are_none() -> None:
    results = analysis(flow(0, 1), flow(None, 2))
    for kind, source, target in (
        ("rank", "1", "2"),
        ("rank", "0", "9"),
        ("host", "10.0.0.9", "10.0.0.1"),
        ("host", "", ""),
    ):
        assert Between.of(results, kind, source, target) is None
    assert Between.of({}, "host", "10.0.0.1", "10.0.0.2") is None
