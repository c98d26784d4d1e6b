"""Connections of real traffic, as tcptrace and tshark count them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.capture.stream import stream
from analysis.kernels.tcp_state import RTT_NS
from analysis.traffic.flows import FlowSet
from analysis.traffic.tcp import TcpAccumulator
from tests.analysis.oracles.tcptrace import tcptrace
from tests.analysis.oracles.tools import tshark_fields
from tests.analysis.recordings.two_hosts import record_stream

TCPTRACE = {
    "total packets": "packets",
    "pure acks sent": "pure_acks",
    "actual data pkts": "data_segments",
    "actual data bytes": "payload_bytes",
    "unique bytes sent": "goodput_bytes",
    "rexmt data pkts": "retransmitted_segments",
    "rexmt data bytes": "retransmitted_bytes",
    "outoforder pkts": "out_of_order_segments",
    "zero win adv": "zero_window_events",
    "zwnd probe pkts": "zero_window_probes",
}
STREAMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "offloads": {"offloads": True},
    "loss behind the capture": {"loss_permille": 20, "device": "v2"},
    "loss before the capture": {"loss_permille": 20, "device": "v1"},
    "small buffer": {"buffer_bytes": 8192},
}


def followed(path: Path) -> FlowSet:
    accumulator = TcpAccumulator()
    for table in stream(path):
        accumulator.update(table)
    return accumulator.result()


@pytest.fixture(scope="module", params=STREAMS)
def streamed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """iperf3 between two hosts: a control connection and 3 MB of data."""
    place = tmp_path_factory.mktemp("stream") / "stream.pcapng"
    return request.param, record_stream(place, "-n", "3M", **STREAMS[request.param])


def assert_equals_tcptrace(path: Path, flows: FlowSet) -> None:
    """Compare connections that carried data with tcptrace's."""
    theirs = [reference for reference in tcptrace(path) if reference["actual data pkts"] != ("0", "0")]
    ours = [row for row in flows.flows() if row["data_segments"] > 0]
    assert len(ours) == len(theirs) > 0
    for reference, row in zip(theirs, ours, strict=True):
        assert (f"{row['host_a']}:{row['port_a']}", f"{row['host_b']}:{row['port_b']}") == reference["host"]
        for label, name in TCPTRACE.items():
            for way, theirs_one_way in zip(("ab", "ba"), reference[label], strict=True):
                if label.startswith("rexmt") and max(row[f"syns_{way}"], row[f"fins_{way}"]) > 1:
                    continue  # tcptrace counts a SYN or FIN that comes again as a byte of data
                assert str(row[f"{name}_{way}"]) == theirs_one_way, f"{row['port_a']} {way}: {label}"


def test_every_connection_of_an_mpi_run_equals_tcptrace(mpi_capture: Path) -> None:
    assert_equals_tcptrace(mpi_capture, followed(mpi_capture))


def test_streams_with_and_without_loss_equal_tcptrace(streamed: tuple[str, Path]) -> None:
    kind, path = streamed
    flows = followed(path)
    metrics, _ = flows.metrics()
    if kind == "loss behind the capture":
        assert metrics["retransmitted_segments"] > 0
        assert metrics["out_of_order_segments"] == 0
    elif kind == "loss before the capture":
        assert metrics["out_of_order_segments"] > 0
    assert_equals_tcptrace(path, flows)


@pytest.mark.parametrize(
    ("name", "expression"),
    [
        ("zero_window_events", "tcp.analysis.zero_window"),
        ("window_full_events", "tcp.analysis.window_full"),
        ("acked_unseen_segments", "tcp.analysis.ack_lost_segment"),
    ],
)
def test_counts_equal_those_of_tshark(streamed: tuple[str, Path], name: str, expression: str) -> None:
    kind, path = streamed
    metrics, _ = followed(path).metrics()
    theirs = len(tshark_fields(path, "frame.number", display_filter=expression))
    if name == "acked_unseen_segments":  # tshark counts an ACK recorded microseconds before its data, too
        assert metrics[name] <= theirs
    else:
        assert metrics[name] == theirs
    if kind == "small buffer" and name == "window_full_events":
        assert metrics[name] > 0


def test_duplicate_acks_are_those_of_tshark_but_for_answers_to_needless_repetitions(streamed: tuple[str, Path]) -> None:
    """tshark also counts the D-SACK that answers a needless repetition.

    Nothing is outstanding then (RFC 5681). It compares with the last ACK and not with the highest: one that repeats the
    highest behind overtaken ones is none to it.
    """
    _, path = streamed
    ours = followed(path).metrics()[0]["duplicate_acks"]
    duplicates = "tcp.analysis.duplicate_ack"
    theirs = tshark_fields(path, "frame.number", display_filter=duplicates)
    answers = tshark_fields(path, "frame.number", display_filter=f"{duplicates} && tcp.options.sack.dsack_le")
    assert ours - acks_behind_overtaken_ones(path) <= len(theirs) <= ours + len(answers)


def acks_behind_overtaken_ones(path: Path) -> int:
    """Return ACKs that repeat their side's highest unlike the one before."""
    seen: dict[tuple[str, str], tuple[int, int]] = {}
    count = 0
    for stream_number, port, text in tshark_fields(
        path, "tcp.stream", "tcp.srcport", "tcp.ack", display_filter="tcp.flags.ack == 1"
    ):
        ack = int(text)
        highest, last = seen.get((stream_number, port), (ack, ack))
        count += ack == highest != last
        seen[stream_number, port] = max(highest, ack), ack
    return count


def test_repetitions_and_gap_fillers_together_are_what_tshark_calls_suspect(streamed: tuple[str, Path]) -> None:
    _, path = streamed
    metrics, _ = followed(path).metrics()
    # a lost segment of one byte that comes again is a keep-alive to tshark
    kinds = ("retransmission", "spurious_retransmission", "out_of_order", "keep_alive")
    expression = "tcp.len > 0 && (" + " || ".join(f"tcp.analysis.{kind}" for kind in kinds) + ")"
    suspect = tshark_fields(path, "frame.number", display_filter=expression)
    assert metrics["retransmitted_segments"] + metrics["out_of_order_segments"] == len(suspect)


def test_round_trips_are_those_of_tshark_but_for_repeated_data(streamed: tuple[str, Path]) -> None:
    _, path = streamed
    pure = "tcp.analysis.ack_rtt && tcp.len == 0 && tcp.flags.syn == 0 && tcp.flags.fin == 0 && tcp.flags.reset == 0"
    fields = ("tcp.analysis.ack_rtt", "tcp.analysis.acks_frame", "tcp.stream", "tcp.dstport")
    rows = tshark_fields(path, *fields, display_filter=pure)
    without_data = {row[0] for row in tshark_fields(path, "frame.number", display_filter="tcp.len == 0")}
    flows = followed(path)
    for row in flows.flows():
        senders = {
            str(row[f"port_{end}"]) for end in ("a", "b") if row["rtt_of"] in ("both", "ab" if end == "a" else "ba")
        }
        theirs = Counter(
            round(float(rtt_s) * 1e9)
            for rtt_s, frame, number, sender in rows
            if frame not in without_data and int(number) == row["connection"] and sender in senders
        )
        ours = Counter(flows.pooled(RTT_NS, np.arange(len(flows)) == row["connection"]).tolist())
        assert sum(ours.values()) == row["rtt_samples"]
        assert ours <= theirs
        if row["retransmitted_segments"] == row["out_of_order_segments"] == 0:
            assert ours == theirs
    assert sum(row["rtt_samples"] for row in flows.flows()) > 10


def test_handshake_and_its_halves_are_the_times_between_its_three_packets(streamed: tuple[str, Path]) -> None:
    kind, path = streamed
    rows = tshark_fields(path, "tcp.stream", "frame.time_epoch", "tcp.flags", display_filter="tcp")
    for row in followed(path).flows():
        times = [int(r[1].replace(".", "")) for r in rows if int(r[0]) == row["connection"]][:3]
        if kind.startswith("loss") and row["rtt_handshake_s"] is None:
            continue  # one of the three was itself lost
        assert row["handshake"] == "complete"
        assert row["rtt_half_b_s"] == pytest.approx((times[1] - times[0]) * 1e-9, rel=1e-9)
        assert row["rtt_half_a_s"] == pytest.approx((times[2] - times[1]) * 1e-9, rel=1e-9)
        assert row["rtt_handshake_s"] == pytest.approx((times[2] - times[0]) * 1e-9, rel=1e-9)
