"""Identity of a connection: a 4-tuple and an initial sequence number."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pytest

from analysis.traffic.flows import FlowSet
from analysis.traffic.tcp import TcpAccumulator
from tests.analysis.segments import ACK, FIN, NO_TIME, RST, SYN, Segment, table_of

HOUR_NS = 3600 * 10**9
TWO_FLOWS = ((0, 4000, 1, 20000), (0, 4001, 1, 20000))


def flows_of(
    segments: Sequence[Segment],
    endpoints: Sequence[tuple[int, int, int, int]] = TWO_FLOWS[:1],
    handshakes: Sequence[tuple[int, int, int]] = (),
) -> FlowSet:
    accumulator = TcpAccumulator()
    accumulator.update(table_of(segments, endpoints=endpoints, handshakes=handshakes))
    return accumulator.result()


def opening(time_ns: int = 0, isn: int = 100, peer_isn: int = 900, flow: int = 0) -> list[Segment]:
    return [
        Segment(time_ns, 0, isn, 0, SYN, wscale=7, flow=flow),
        Segment(time_ns + 30, 1, peer_isn, isn + 1, SYN | ACK, wscale=7, flow=flow),
        Segment(time_ns + 50, 0, isn + 1, peer_isn + 1, ACK, flow=flow),
    ]


def test_ports_used_again_make_another_connection() -> None:
    first = [*opening(), Segment(60, 0, 101, 901, ACK, 10), Segment(70, 0, 111, 901, FIN | ACK)]
    second = [*opening(1000, isn=5000, peer_isn=7000), Segment(2000, 0, 5001, 7001, ACK, 20)]
    rows = flows_of(first + second).flows()
    assert [row["payload_bytes"] for row in rows] == [10, 20]
    assert [row["retransmitted_segments"] for row in rows] == [0, 0]
    assert [row["flow"] for row in rows] == [0, 0]


def test_the_side_that_opens_the_second_connection_becomes_its_a() -> None:
    turned = [
        Segment(1000, 1, 5000, 0, SYN),
        Segment(1010, 0, 7000, 5001, SYN | ACK),
        Segment(1020, 1, 5001, 7001, ACK, 5),
    ]
    rows = flows_of(opening() + turned).flows()
    assert [(row["host_a"], row["port_a"]) for row in rows] == [("10.0.0.1", 4000), ("10.0.0.2", 20000)]
    assert (rows[1]["payload_bytes_ab"], rows[1]["payload_bytes_ba"]) == (5, 0)


def test_a_repeated_syn_opens_nothing_and_leaves_no_handshake_time() -> None:
    flows = flows_of([Segment(0, 0, 100, 0, SYN), *opening(1000), Segment(1100, 0, 101, 901, ACK, 8)])
    metrics, missing = flows.metrics()
    assert (len(flows), metrics["connections"]) == (1, 1)
    assert missing["rtt_handshake_s"] == "no handshake without a repeated or lost packet"
    assert flows.flows()[0]["handshake"] == "complete"


def test_an_answer_with_another_number_belongs_to_the_same_syn() -> None:
    cookie = [
        Segment(0, 0, 100, 0, SYN),
        Segment(10, 1, 900, 101, SYN | ACK),
        Segment(99, 1, 1234, 101, SYN | ACK),
        Segment(120, 0, 101, 1235, ACK),
        Segment(130, 1, 1235, 101, ACK, 6),
    ]
    (row,) = flows_of(cookie).flows()
    assert (row["goodput_bytes_ba"], row["acked_unseen_segments"]) == (6, 0)


def test_both_sides_may_open_at_once() -> None:
    crossing = [
        Segment(0, 0, 100, 0, SYN),
        Segment(5, 1, 900, 0, SYN),
        Segment(9, 1, 900, 101, SYN | ACK),
        Segment(11, 0, 100, 901, SYN | ACK),
        Segment(20, 0, 101, 901, ACK, 4),
    ]
    (row,) = flows_of(crossing).flows()
    assert (row["port_a"], row["goodput_bytes"], row["retransmitted_segments"]) == (4000, 4, 0)


def test_idle_connections_are_never_given_up() -> None:
    (row,) = flows_of([*opening(), Segment(90 * HOUR_NS, 0, 101, 901, ACK, 10)]).flows()
    assert row["duration_s"] == pytest.approx(90 * 3600)


def test_flows_from_the_middle_are_followed_but_their_windows_are_not_known() -> None:
    flows = flows_of(
        [Segment(0, 0, 5000, 60, ACK, 10), Segment(40, 1, 60, 5010, ACK), Segment(50, 0, 5010, 60, ACK, 5)]
    )
    metrics, missing = flows.metrics()
    assert metrics["flows_without_handshake"] == 1
    assert metrics["rtt_min_s"] == pytest.approx(40e-9)
    assert metrics["goodput_bytes"] == 15
    unknown = "no SYN captured, so the window scale is unknown"
    assert {name for name, reason in missing.items() if reason == unknown} == {
        "window_mean_bytes", "window_min_bytes", "window_full_events",
    }  # fmt: skip
    assert missing["rtt_handshake_s"] == "no handshake captured"
    assert flows.flows()[0]["window_mean_bytes_ab"] is None


def test_losers_of_simultaneous_mpi_connects_count_as_aborted() -> None:
    loser = [*opening(flow=1), Segment(60, 0, 101, 901, ACK, 24, flow=1), Segment(70, 1, 901, 125, ACK, flow=1)]
    loser += [Segment(80, 1, 901, 125, FIN | ACK, flow=1), Segment(90, 0, 125, 902, RST | ACK, flow=1)]
    segments = [*opening(100), Segment(160, 0, 101, 901, ACK, 24), Segment(170, 1, 901, 125, ACK, 24)]
    handshakes = [(3, 77, 2), (10, 77, 0), (11, 77, 2)]
    flows = flows_of(loser + segments, TWO_FLOWS, handshakes)
    assert flows.metrics()[0]["aborted_connections"] == 1
    assert [(row["aborted"], row["rank_a"], row["rank_b"]) for row in flows.flows()] == [(True, 2, None), (False, 0, 2)]


def test_metrics_of_chosen_flows_leave_the_others_out() -> None:
    segments = [*opening(flow=0), Segment(60, 0, 101, 901, ACK, 7, flow=0)]
    segments += [*opening(100, flow=1), Segment(160, 0, 101, 901, ACK, 30, flow=1)]
    flows = flows_of(segments, TWO_FLOWS)
    second = np.array([False, True])
    assert flows.metrics(second)[0]["goodput_bytes"] == 30
    assert [row["port_a"] for row in flows.flows(second)] == [4001]
    assert flows.metrics()[0]["goodput_bytes"] == 37
    none, missing = flows.metrics(np.zeros(0, np.bool_))
    assert none == {"connections": 0}
    assert set(missing.values()) == {"no TCP connection"}


def test_a_limit_keeps_the_heaviest_flows() -> None:
    segments = [*opening(flow=0), *opening(100, flow=1), Segment(160, 0, 101, 901, ACK, 30, flow=1)]
    assert [row["connection"] for row in flows_of(segments, TWO_FLOWS).flows(limit=1)] == [1]


def test_rows_without_time_are_counted_but_never_timed() -> None:
    untimed = [Segment(int(NO_TIME), s.side, s.seq, s.ack, s.flags, s.payload) for s in opening()]
    untimed += [Segment(int(NO_TIME), 0, 101, 901, ACK, 9), Segment(int(NO_TIME), 1, 901, 110, ACK)]
    flows = flows_of(untimed)
    metrics, missing = flows.metrics()
    assert metrics["goodput_bytes"] == 9
    assert {"rtt_handshake_s", "rtt_min_s", "bdp_bytes"} <= set(missing)
    assert (flows.flows()[0]["start_ns"], flows.flows()[0]["duration_s"]) == (None, None)


def test_a_row_marked_to_skip_is_as_if_not_captured() -> None:
    table = table_of([*opening(), Segment(60, 0, 101, 901, ACK, 7), Segment(60, 0, 101, 901, ACK, 7)])
    accumulator = TcpAccumulator()
    connection_of = accumulator.update(table, skip=table.seq * 0 + [0, 0, 0, 0, 1] != 0)
    assert accumulator.result().metrics()[0]["retransmitted_segments"] == 0
    assert connection_of.tolist() == [0, 0, 0, 0, 2**32 - 1]


def test_every_row_is_plain_json() -> None:
    text = json.dumps(flows_of(opening()).flows(), allow_nan=False)
    assert json.loads(text)[0]["handshake"] == "complete"


def test_a_later_result_does_not_change_an_earlier_one() -> None:
    accumulator = TcpAccumulator()
    accumulator.update(table_of(opening()))
    early = accumulator.result()
    accumulator.update(table_of([Segment(60, 0, 101, 901, ACK, 7)]))
    assert early.metrics()[0]["goodput_bytes"] == 0
    assert accumulator.result().metrics()[0]["goodput_bytes"] == 7
