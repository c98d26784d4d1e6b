"""Integer metrics of a real MPI run equal those of capinfos and tshark exactly."""

from __future__ import annotations

import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

import analysis
from analysis.packets import CUT, IPV4, NO_FLOW, REVERSE, TCP
from tests.analysis.conftest import MPI_PORTS
from tests.analysis.oracles.tools import capinfos, tshark_fields
from tests.analysis.recordings.recording import record

IPV6_EXCHANGE = """
import socket, threading
server = socket.create_server(("::1", 0), family=socket.AF_INET6)
def answer():
    peer, _ = server.accept()
    with peer:
        while peer.recv(65536):
            peer.sendall(b"got it")
threading.Thread(target=answer).start()
with socket.create_connection(server.getsockname()[:2]) as client:
    for _ in range(300):
        client.sendall(b"x" * 7001)
        client.recv(6)
"""


@pytest.fixture(scope="module")
def measured(mpi_capture: Path) -> analysis.CaptureAnalysis:
    return analysis.analyse(mpi_capture)


def test_it_counts_the_packets_and_bytes_of_capinfos(mpi_capture: Path, measured: analysis.CaptureAnalysis) -> None:
    facts = capinfos(mpi_capture)
    assert measured.metrics["packets"] == int(facts["Number of packets"]) > 500
    assert measured.metrics["wire_bytes"] == int(facts["Data size (bytes)"])


def test_its_duration_is_that_of_capinfos_to_the_nanosecond(
    mpi_capture: Path, measured: analysis.CaptureAnalysis
) -> None:
    table = analysis.read_capture(mpi_capture)
    assert measured.duration_ns == table.time_ns[-1] - table.time_ns[0]
    latest_minus_earliest = int(table.time_ns.max() - table.time_ns.min())
    seconds = Decimal(capinfos(mpi_capture)["Capture duration (seconds)"])
    assert abs(Decimal(latest_minus_earliest) / 10**9 - seconds) < Decimal("1e-6")


def test_every_column_of_every_packet_is_what_tshark_reads(mpi_capture: Path) -> None:
    table = analysis.read_capture(mpi_capture)
    rows = tshark_fields(
        mpi_capture, "frame.time_epoch", "frame.len", "frame.cap_len", "ip.src", "ip.dst", "tcp.srcport",
        "tcp.dstport", "tcp.len", "tcp.seq_raw", "tcp.ack_raw", "tcp.window_size_value", "tcp.flags", "tcp.stream",
    )  # fmt: skip
    assert len(rows) == len(table)
    transport = (table.kind & TCP) != 0
    for number, row in enumerate(rows):
        assert table.time_ns[number] == int(row[0].replace(".", ""))
        assert (table.orig_len[number], table.cap_len[number]) == (int(row[1]), int(row[2]))
        assert transport[number] == bool(row[5])
        if row[5]:
            assert [table.hosts[table.src[number]], table.hosts[table.dst[number]]] == row[3:5]
            ours = [table.sport, table.dport, table.payload, table.seq, table.ack, table.window]
            assert [int(column[number]) for column in ours] == [int(text) for text in row[5:11]]
            assert table.tcp_flags[number] == int(row[11], 16) & 0xFF
            assert table.kind[number] & (IPV4 | TCP | CUT) == IPV4 | TCP


def test_flows_group_packets_as_tshark_streams_do(mpi_capture: Path) -> None:
    table = analysis.read_capture(mpi_capture)
    streams = tshark_fields(mpi_capture, "tcp.stream")
    pairs = {(int(flow), row[0]) for flow, row in zip(table.flow, streams, strict=True) if row[0]}
    assert len({flow for flow, _ in pairs}) == len({stream for _, stream in pairs}) == len(pairs)
    first_of_flow = np.unique(table.flow[table.flow != NO_FLOW], return_index=True)[1]
    rows = np.flatnonzero(table.flow != NO_FLOW)[first_of_flow]
    assert not (table.kind[rows] & REVERSE).any()


def test_mpi_traffic_is_what_touches_the_launchers_ports(mpi_capture: Path) -> None:
    low, high = MPI_PORTS
    inside = f"tcp.port in {{{low}..{high}}}"
    lengths = [int(row[0]) for row in tshark_fields(mpi_capture, "frame.len", display_filter=inside)]
    mpi = analysis.analyse(mpi_capture, mpi_ports=MPI_PORTS).mpi.metrics
    assert (mpi["packets"], mpi["wire_bytes"]) == (len(lengths), sum(lengths))


def test_it_finds_mpi_by_the_btl_handshakes_without_a_port_range(
    mpi_capture: Path, measured: analysis.CaptureAnalysis
) -> None:
    with_ports = analysis.analyse(mpi_capture, mpi_ports=MPI_PORTS)
    assert measured.mpi.metrics["payload_bytes"] == with_ports.mpi.metrics["payload_bytes"] > 0
    assert measured.metrics["non_mpi_share"] >= 0


def test_shares_and_sums_are_those_of_tsharks_fields(mpi_capture: Path, measured: analysis.CaptureAnalysis) -> None:
    rows = tshark_fields(mpi_capture, "frame.len", "tcp.len", "tcp.flags", "tcp.window_size_value", "udp.length")
    sizes = [int(row[0]) for row in rows]
    segments = [(int(row[1]), int(row[2], 16)) for row in rows if row[1]]
    managing = [flags for _, flags in segments if flags & 7]
    pure = [flags for length, flags in segments if length == 0 and flags & 0x17 == 0x10]
    datagrams = sum(int(row[4]) - 8 for row in rows if row[4])
    metrics = measured.metrics
    assert metrics["payload_bytes"] == sum(length for length, _ in segments) + datagrams
    assert metrics["small_packet_share"] == sum(size < 100 for size in sizes) / len(sizes)
    assert metrics["pure_ack_share"] == len(pure) / len(segments)
    assert metrics["management_share"] == len(managing) / len(segments)
    assert measured.window_sum == sum(int(row[3]) for row in rows if row[3])


def test_ipv6_traffic_is_read_as_tshark_reads_it(tmp_path: Path) -> None:
    capture = record(tmp_path / "six.pcapng", [sys.executable, "-c", IPV6_EXCHANGE])
    table = analysis.read_capture(capture)
    rows = tshark_fields(capture, "ipv6.src", "tcp.srcport", "tcp.len", "tcp.seq_raw", "tcp.window_size_value")
    assert len(rows) == len(table) > 100
    for number, (source, *numbers) in enumerate(rows):
        if source and numbers[0]:
            assert table.hosts[table.src[number]] == source
            ours = (table.sport, table.payload, table.seq, table.window)
            assert [int(column[number]) for column in ours] == [int(text) for text in numbers]
    assert analysis.analyse(capture).metrics["goodput_bytes"] >= 300 * (7001 + 6)
