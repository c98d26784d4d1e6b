"""Connections that make room for others stay part of every sum, and go on where they were left."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.kernels import set_aside as kernel
from analysis.kernels import tcp_state as state
from analysis.traffic.flow_metrics import SUMMED
from analysis.traffic.flows import FlowSet
from analysis.traffic.tcp import TcpAccumulator
from tests.analysis.segments import ACK, SYN, Segment, slices, table_of

CONNECTIONS = 40
ENDPOINTS = [(0, 1000 + k, 1, 20000) for k in range(CONNECTIONS)]
LATE_ACK_NS = 90_000


def opening(flow: int, begin: int) -> list[Segment]:
    turn_ns = 1000 * (flow + 10)
    return [
        Segment(begin, 0, 100, 0, SYN, flow=flow, wscale=2),
        Segment(begin + turn_ns, 1, 500, 101, SYN | ACK, flow=flow, wscale=3),
        Segment(begin + 2 * turn_ns, 0, 101, 501, ACK, flow=flow),
    ]


def visit(flow: int, begin: int, number: int) -> list[Segment]:
    """Ten bytes and their ACK; every other time the bytes of the last visit are sent again."""
    seq = 101 + 10 * number
    segments = [
        Segment(begin, 0, seq, 501, ACK, 10, flow=flow),
        Segment(begin + 50 * flow + 40, 1, 501, seq + 10, ACK, flow=flow),
    ]
    if number % 2:
        segments.append(Segment(begin + 5000, 0, seq - 10, 501, ACK, 10, flow=flow))
    return segments


def in_turn(visits: int) -> list[Segment]:
    segments = []
    for number in range(visits):
        for flow in range(CONNECTIONS):
            begin = 1_000_000 * (number * CONNECTIONS + flow)
            segments += opening(flow, begin) if number == 0 else visit(flow, begin, number - 1)
    return segments


def followed(segments: list[Segment], cuts: tuple[int, ...] = (), **limits: int) -> FlowSet:
    accumulator = TcpAccumulator(**limits)  # type: ignore[arg-type]
    member = np.arange(CONNECTIONS) % 3 == 0
    for piece in slices(table_of(segments, endpoints=ENDPOINTS), cuts):
        accumulator.update(piece, None, member)
    return accumulator.result()


@pytest.mark.parametrize("mask", [None, np.arange(CONNECTIONS) % 3 == 0], ids=["all", "mpi"])
def test_sums_and_quantiles_are_those_of_all_connections(mask: np.ndarray | None) -> None:
    segments = in_turn(8)
    whole, bounded = followed(segments), followed(segments, max_connections=8)
    assert (bounded.connections, bounded.limits.interrupted) == (CONNECTIONS, 0)
    assert bounded.limits.set_aside + len(bounded) > CONNECTIONS
    assert whole.limits.set_aside == 0
    (exact, missing), (found, missing_too) = whole.metrics(mask), bounded.metrics(mask)
    assert missing.keys() == missing_too.keys()
    assert exact["retransmitted_segments"] == exact["connections"] * 3
    placed = int(sum(bounded.records[f"retransmitted_segments_{way}"].sum() for way in ("ab", "ba")))
    assert bounded.limits.repeated_aside == 3 * CONNECTIONS - placed > 0
    assert 0 < bounded.limits.mpi_aside < bounded.limits.set_aside
    for name in (
        "connections",
        "flows_without_handshake",
        *SUMMED,
        "rtt_samples",
        "rtt_min_s",
        "rtt_median_s",
        "rtt_p95_s",
    ):
        assert found[name] == exact[name], name
    for name in ("window_mean_bytes", "window_min_bytes", "bytes_in_flight_max", "bytes_in_flight_p95"):
        assert found[name] == pytest.approx(exact[name]), name
    assert found["rtt_handshake_s"] == pytest.approx(exact["rtt_handshake_s"], rel=0.06)  # the middle two are 5 % apart


def test_the_cut_into_tables_changes_nothing() -> None:
    segments = in_turn(5)
    results = [followed(segments, cuts, max_connections=8) for cuts in ((), (7, 100, 333))]
    assert results[0].records.tobytes() == results[1].records.tobytes()
    assert results[0].metrics() == results[1].metrics()
    assert results[0].limits == results[1].limits


def test_what_was_on_its_way_is_told() -> None:
    segments = [segment for flow in range(CONNECTIONS) for segment in opening(flow, 1_000_000 * flow)]
    segments += [Segment(10**8 + flow, 0, 101, 501, ACK, 10, flow=flow) for flow in range(CONNECTIONS)]
    segments += [Segment(10**9 + flow, 1, 501, 111, ACK, flow=flow) for flow in range(CONNECTIONS)]
    limits = followed(segments, max_connections=8).limits
    assert 0 < limits.interrupted <= limits.resumed


def test_the_heaviest_keep_their_rows() -> None:
    segments = in_turn(2)
    segments.insert(3, Segment(999_000, 0, 101, 501, ACK, 1400, flow=0))
    rows = followed(segments, max_connections=8).flows()
    assert {"port_a": 1000, "payload_bytes": 1410} in [
        {name: row[name] for name in ("port_a", "payload_bytes")} for row in rows
    ]


def test_a_syn_on_used_ports_is_another_connection() -> None:
    segments = [*in_turn(2), Segment(10**10, 0, 9_999, 0, SYN, flow=0)]
    assert followed(segments, max_connections=8).connections == CONNECTIONS + 1


def test_connections_that_take_turns_without_end_are_left_out_in_the_end() -> None:
    limits = followed(in_turn(8), max_connections=8, most_times=5).limits
    assert (limits.set_aside, limits.untracked_packets > 0) == (20, True)


def test_without_setting_aside_further_connections_are_left_out() -> None:
    flows = followed(in_turn(1), max_connections=8, set_aside=False)
    assert len(flows) == 8
    assert flows.limits.untracked_packets == 3 * (CONNECTIONS - 8)


def remembered(initiator: int, handshake: int, **side: int) -> tuple[np.void, np.void]:
    """A connection, of which both sides are alike, set aside and taken up again: itself and its first side."""
    store = np.zeros(1, state.STORE)
    connections, sides = np.zeros(2, state.CONNECTION), np.zeros(4, state.DIRECTION)
    connections["initiator"][0], connections["handshake"][0] = initiator, handshake
    for name, value in ({"oldest": state.NO_NODE, "runs_below": state.NO_NODE} | side).items():
        sides[name][:2] = value
    rests = np.full(4, 0xFF, np.uint8).repeat(kernel.REST.itemsize).view(kernel.REST)  # what others left there
    kernel.keep_rests(np.array([0]), np.array([1]), connections, sides, rests)
    store["rests"], store["rest_room"], store["connections"] = rests.ctypes.data, len(rests), 1
    index = kernel.take_up(connections, sides, store[0], 7, kernel.NOTHING_KEPT - 2)
    assert int(connections[index]["flow"]) == 7
    return connections[index], sides[2 * index]


@pytest.mark.parametrize("initiator", [state.UNKNOWN, 0, 1])
@pytest.mark.parametrize("handshake", range(state.HANDSHAKE_UNTIMED + 1))
@pytest.mark.parametrize("wscale", [state.NO_SYN, state.UNKNOWN, 0, 14])
def test_what_is_remembered_is_what_was(initiator: int, handshake: int, wscale: int) -> None:
    for number, window, acked in ((2**32 - 1, 65_535, 1), (state.UNKNOWN, state.UNKNOWN, 0), (0, 0, 1)):
        said = {"isn": number, "base": number, "highest": 4_000_000_000, "last_window": window, "acked_known": acked}
        connection, side = remembered(initiator, handshake, wscale=wscale, **said)
        assert (int(connection["initiator"]), int(connection["handshake"])) == (initiator, handshake)
        expected = (number, number, window, wscale, acked)
        assert tuple(int(side[name]) for name in ("isn", "base", "last_window", "wscale", "acked_known")) == expected
        assert int(side["highest"]) == int(side["run_end"]) == (0 if number == state.UNKNOWN else 4_000_000_000)
        assert int(side["acked"]) == acked * int(side["highest"])


def test_bytes_far_from_the_first_one_are_remembered_by_a_later_one() -> None:
    _, side = remembered(0, 3, isn=5, base=5, highest=10 * 2**32 + 17, acked_known=1)
    assert (int(side["base"]) + int(side["highest"])) % 2**32 == 5 + 17
    assert int(side["highest"]) == 2**32 - 1  # all that was seen before lies below it
    assert int(side["isn"]) == state.UNKNOWN


def test_a_syn_that_is_sent_again_after_room_was_made_opens_no_other_connection() -> None:
    def syns(begin: int, number: int = 100) -> list[Segment]:
        return [Segment(begin + flow, 0, number + flow, 0, SYN, flow=flow) for flow in range(CONNECTIONS)]

    again = followed(syns(0) + syns(10**9) + syns(2 * 10**9), max_connections=8)
    assert again.connections == CONNECTIONS
    assert again.limits.interrupted == 0
    assert again.metrics()[0]["flows_without_handshake"] == 0
    assert followed(syns(0) + syns(10**9, 900), max_connections=8).connections == 2 * CONNECTIONS


def test_a_handshake_that_goes_on_after_room_was_made_is_complete_and_untimed() -> None:
    opened = [opening(flow, 1_000_000 * flow) for flow in range(CONNECTIONS)]
    segments = [part[0] for part in opened] + [segment for part in opened for segment in part[1:]]
    limited, whole = followed(segments, max_connections=8), followed(segments)
    assert limited.connections == whole.connections == CONNECTIONS
    assert set(limited.records["handshake"][:-2]) <= {state.HANDSHAKE_UNTIMED, state.HANDSHAKE_DONE}
    timed = limited.metrics()[0].get("rtt_handshake_s")
    assert timed is None or timed in set(whole.records["rtt_handshake_s"])
