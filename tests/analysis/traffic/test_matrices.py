"""Traffic matrices: bytes by sender and receiver, of hosts and of ranks."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.addresses import Addresses
from analysis.capture.stream import stream
from analysis.packets import NO_HOST, PacketTable
from analysis.traffic import matrices
from analysis.traffic.flows import FlowSet
from analysis.traffic.matrices import MatrixAccumulator
from analysis.traffic.tcp import TcpAccumulator
from tests.analysis.oracles.tools import tshark_fields
from tests.analysis.segments import ACK, SYN, Segment, slices, table_of

ENDPOINTS = ((0, 4000, 1, 20000), (2, 4001, 0, 20000))


def followed(*tables: PacketTable) -> tuple[MatrixAccumulator, FlowSet]:
    pairs, tcp = MatrixAccumulator(), TcpAccumulator()
    for table in tables:
        pairs.update(table)
        tcp.update(table)
    return pairs, tcp.result()


def captured(path: Path) -> dict[str, Any]:
    pairs, flows = followed(*stream(path))
    return pairs.result(flows)


def two_connections(handshakes: list[tuple[int, int, int]]) -> PacketTable:
    segments = [
        Segment(0, 0, 100, 50, ACK, 24, flow=0),
        Segment(10, 1, 50, 124, ACK, 24, flow=0),
        Segment(20, 0, 124, 74, ACK, 76, flow=0),
        Segment(25, 0, 124, 74, ACK, 76, flow=0),
        Segment(90, 1, 74, 200, ACK, flow=0),
        Segment(100, 0, 7, 9, ACK, 24, flow=1),
    ]
    hosts = ("10.0.0.10", "10.0.0.9", "fd00::1")
    return table_of(segments, endpoints=ENDPOINTS, hosts=hosts, handshakes=handshakes)


def test_rows_send_and_columns_receive_in_order_of_address() -> None:
    pairs, flows = followed(two_connections([]))
    hosts = pairs.result(flows)["hosts"]
    assert hosts["labels"] == ["10.0.0.9", "10.0.0.10", "fd00::1"]
    assert hosts["packets"] == [[0, 2, 0], [3, 0, 0], [0, 1, 0]]
    assert hosts["payload_bytes"] == [[0, 24, 0], [176, 0, 0], [0, 24, 0]]
    assert hosts["wire_bytes"][1][0] == 176 + 3 * 54
    assert hosts["retransmitted_segments"] == [[0, 0, 0], [1, 0, 0], [0, 0, 0]]
    assert hosts["rtt_min_s"] == [[None] * 3] * 3  # the only pure ACK answers repeated bytes


def test_packets_that_are_not_ip_and_skipped_ones_are_left_out() -> None:
    table = two_connections([])
    table.kind[0] = 0
    pairs = MatrixAccumulator()
    pairs.update(table, skip=np.arange(len(table)) == 2)
    cells = pairs.result(TcpAccumulator().result())["hosts"]["packets"]
    assert np.sum(cells) == len(table) - 2


def test_neighbour_discovery_is_counted_but_makes_no_rows() -> None:
    table = table_of([Segment(k, 0, 0, 0, SYN) for k in range(5)])
    table.src[:], table.dst[:] = [0, 0, 2, 0, 1], [1, 1, 3, 4, 5]
    hosts = ("10.0.0.1", "10.0.0.2", "fe80::1", "ff02::2", "224.0.0.251", "239.1.1.1")
    pairs = MatrixAccumulator()
    pairs.update(
        PacketTable(**{name: getattr(table, name) for name in PacketTable.columns()}, hosts=Addresses.of(hosts))
    )
    result = pairs.result(TcpAccumulator().result())["hosts"]
    assert result["labels"] == ["10.0.0.1", "10.0.0.2", "239.1.1.1"]
    assert result["packets"] == [[0, 2, 0], [0, 0, 1], [0, 0, 0]]
    assert (result["neighbourhood_packets"], result["omitted"]) == (2, 0)


def test_ranks_come_from_the_handshakes_whatever_the_chunks() -> None:
    table = two_connections([(0, 77, 5), (1, 77, 2), (5, 77, 9)])
    for cuts in ((), (1, 3), (2, 2, 5)):
        pairs, flows = followed(*slices(table, cuts))
        ranks = pairs.result(flows)["ranks"]
        assert (ranks["labels"], ranks["source"], ranks["jobid"]) == ([2, 5], "btl_handshake", 77)
        assert ranks["payload_bytes"] == [[0, 24], [176, 0]]
        assert ranks["retransmitted_segments"] == [[0, 0], [1, 0]]
        assert ranks["connections_without_ranks"] == 1
        assert "shared memory" in ranks["note"]


def test_without_ranks_the_matrix_is_empty_and_names_no_source() -> None:
    pairs, flows = followed(two_connections([]))
    ranks = pairs.result(flows)["ranks"]
    assert (ranks["labels"], ranks["packets"], ranks["source"]) == ([], [], None)


def test_one_of_several_jobs_is_shown_and_the_others_are_counted() -> None:
    pairs, flows = followed(two_connections([(0, 77, 5), (1, 77, 2), (5, 88, 1)]))
    assert pairs.result(flows)["ranks"]["jobid"] == 77
    assert pairs.result(flows)["ranks"]["jobs"] == 2


def test_the_largest_rows_stay_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrices, "LARGEST_MATRIX", 2)
    pairs, flows = followed(two_connections([]))
    hosts = pairs.result(flows)["hosts"]
    assert (hosts["labels"], hosts["omitted"]) == (["10.0.0.9", "10.0.0.10"], 1)


def test_thousands_of_pairs_are_counted_exactly() -> None:
    random = np.random.default_rng(5)
    table = table_of([Segment(k, 0, 0, 0, SYN) for k in range(20_000)])
    table.src[:], table.dst[:] = random.integers(0, 60, (2, len(table)))
    table.src[:5] = table.dst[:5] = NO_HOST
    named = tuple(f"10.0.1.{k}" for k in range(60))
    pairs = MatrixAccumulator()
    for piece in slices(table, (100, 7000)):
        columns = {name: getattr(piece, name) for name in PacketTable.columns()}
        pairs.update(PacketTable(**columns, hosts=Addresses.of(named)))
    expected = np.zeros((60, 60), np.int64)
    np.add.at(expected, (table.src[5:], table.dst[5:]), 1)
    assert pairs.result(TcpAccumulator().result())["hosts"]["packets"] == expected.tolist()


def test_an_mpi_run_gives_the_matrix_that_its_handshakes_and_tshark_give(mpi_capture: Path) -> None:
    rows = tshark_fields(mpi_capture, "tcp.stream", "tcp.srcport", "tcp.len", "tcp.payload", display_filter="tcp")
    rank_of: dict[tuple[str, str], int] = {}
    for number, port, _, payload in rows:
        if payload[16:40] == b"OPAL-TCP-BTL".hex():
            rank_of[number, port] = int.from_bytes(bytes.fromhex(payload[8:16]), "little")
    ports = defaultdict(set)
    for number, port, _, _ in rows:
        ports[number].add(port)
    expected = np.zeros((3, 3), np.int64)
    for number, port, size, _ in rows:
        (peer,) = ports[number] - {port}
        if {(number, port), (number, peer)} <= rank_of.keys():
            expected[rank_of[number, port], rank_of[number, peer]] += int(size)
    ranks = captured(mpi_capture)["ranks"]
    assert (ranks["labels"], ranks["source"]) == ([0, 1, 2], "btl_handshake")
    assert ranks["payload_bytes"] == expected.tolist()
    assert (expected + np.eye(3, dtype=np.int64) > 0).all()
    json.dumps(ranks, allow_nan=False)
