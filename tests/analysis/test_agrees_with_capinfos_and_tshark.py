"""Integer metrics of a real MPI run equal those of capinfos and tshark exactly."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

import analysis
from analysis.packets import CUT, IPV4, NO_FLOW, REVERSE, TCP
from tests.analysis.conftest import MPI_PORTS
from tests.analysis.tools import capinfos, tshark_fields


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
    known = np.flatnonzero(table.flow != NO_FLOW)[first_of_flow]
    assert not (table.kind[known] & REVERSE).any()


def test_mpi_traffic_is_what_touches_the_launchers_ports(mpi_capture: Path) -> None:
    low, high = MPI_PORTS
    inside = f"tcp.port in {{{low}..{high}}}"
    lengths = [int(row[0]) for row in tshark_fields(mpi_capture, "frame.len", display_filter=inside)]
    mpi = analysis.analyse(mpi_capture, mpi_ports=MPI_PORTS).mpi.metrics
    assert (mpi["packets"], mpi["wire_bytes"]) == (len(lengths), sum(lengths))


def test_without_a_port_range_it_finds_mpi_by_the_btl_handshakes(
    mpi_capture: Path, measured: analysis.CaptureAnalysis
) -> None:
    with_ports = analysis.analyse(mpi_capture, mpi_ports=MPI_PORTS)
    assert measured.mpi.metrics["payload_bytes"] == with_ports.mpi.metrics["payload_bytes"] > 0
    assert measured.metrics["non_mpi_share"] >= 0
