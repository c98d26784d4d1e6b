"""The longest chain of messages, on traffic of known latency and volume."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.packets import PacketTable
from analysis.traffic.chains import IDS, ChainAccumulator
from tests.analysis.segments import ACK, HEADER_BYTES, NO_TIME, SYN, Segment, slices, table_of

MS = 1_000_000
TURN = 2 * MS
"""From the bridge to a host and back."""
RATE_BPS = 1e7
FULL = 1446
FULL_NS = 1_200_000
"""1500 bytes at 10 Mbit/s."""
BEGIN = 100 * MS
RING = tuple((host, 4000, (host + 1) % 3, 20000) for host in range(3))


def handshake(flow: int, turn_ns: int = TURN) -> list[Segment]:
    return [
        Segment(flow, 0, 0, 0, SYN, flow=flow),
        Segment(flow + turn_ns, 1, 0, 1, SYN | ACK, flow=flow),
        Segment(flow + 2 * turn_ns, 0, 1, 1, ACK, flow=flow),
    ]


def measured(segments: list[Segment], turn_ns: int = TURN, **options: object) -> dict[str, float]:
    """Metrics of a ring of three hosts after the handshakes of its connections."""
    hands = [segment for flow in range(len(RING)) for segment in handshake(flow, turn_ns)]
    chains = ChainAccumulator(RATE_BPS)
    chains.update(in_order([*hands, *segments]))
    metrics, missing = chains.metrics()
    assert (set(metrics), missing) == (set(IDS), {})
    return metrics


def in_order(segments: list[Segment]) -> PacketTable:
    return table_of(sorted(segments, key=lambda segment: segment.time_ns), endpoints=RING)


def stream(begin_ns: int, count: int, *, side: int = 0, flow: int = 0, first: int = 1) -> list[Segment]:
    """Full segments, one behind the other at the link's rate."""
    return [Segment(begin_ns + k * FULL_NS, side, first + k * FULL, 1, ACK, FULL, flow=flow) for k in range(count)]


def test_messages_that_answer_each_other_cost_one_turn_each() -> None:
    there_and_back = [Segment(BEGIN + k * TURN, k % 2, 1 + k // 2 * 10, 1, ACK, 10) for k in range(101)]
    metrics = measured(there_and_back)
    assert metrics["chain_latency_s"] == pytest.approx(100 * 0.002, rel=1e-9)
    assert metrics["chain_messages"] == 100
    assert metrics["chain_volume_s"] < 101 * 64 * 8 / RATE_BPS


def test_a_token_ring_costs_a_turn_and_its_bytes_at_every_host() -> None:
    step_ns = 4 * FULL_NS + TURN
    hops = [
        segment
        for k in range(30)
        for segment in stream(BEGIN + k * step_ns, 4, flow=k % 3, first=1 + k // 3 * 4 * FULL)
    ]
    metrics = measured(hops)
    assert metrics["chain_latency_s"] == pytest.approx(29 * 0.002, rel=1e-9)
    assert metrics["chain_volume_s"] == pytest.approx(30 * 4 * 0.0012, rel=1e-9)


def test_ring_of_simultaneous_senders_costs_one_message_and_one_turn_per_step() -> None:
    step_ns = 4 * FULL_NS + TURN
    sent = [
        segment
        for k in range(30)
        for flow in range(3)
        for segment in stream(BEGIN + k * step_ns + flow, 4, flow=flow, first=1 + k * 4 * FULL)
    ]
    metrics = measured(sent)
    assert metrics["chain_latency_s"] == pytest.approx(29 * 0.002, rel=1e-6)
    assert metrics["chain_volume_s"] == pytest.approx(30 * 4 * 0.0012, rel=1e-3)


def test_a_full_link_both_ways_is_volume_and_not_latency() -> None:
    both = [*stream(BEGIN, 500), *stream(BEGIN + FULL_NS // 2, 500, side=1)]
    metrics = measured(both)
    assert metrics["chain_latency_s"] <= 0.002
    assert metrics["chain_volume_s"] == pytest.approx(500 * 0.0012, rel=0.01)


def test_queues_are_no_latency() -> None:
    """A full queue makes round trips of 50 ms without any delay of the path."""
    data = stream(BEGIN, 500)
    acks = [Segment(segment.time_ns + 50 * MS, 1, 1, segment.seq + FULL, ACK) for segment in data]
    metrics = measured([*data, *acks], turn_ns=20_000)
    assert metrics["chain_latency_s"] <= 0.0001
    assert metrics["chain_volume_s"] == pytest.approx(500 * 0.0012, rel=0.01)


def test_host_that_computes_between_messages_does_not_wait() -> None:
    data = [Segment(BEGIN + k * 20 * MS, 0, 1 + k * 100, 1, ACK, 100) for k in range(50)]
    acks = [Segment(segment.time_ns + TURN, 1, 1, segment.seq + 100, ACK) for segment in data]
    assert measured([*data, *acks])["chain_latency_s"] == 0


def test_a_window_that_waits_for_its_ack_costs_both_turns() -> None:
    data = [Segment(BEGIN + k * 2 * TURN, 0, 1 + k * 100, 1, ACK, 100) for k in range(50)]
    acks = [Segment(segment.time_ns + TURN, 1, 1, segment.seq + 100, ACK) for segment in data]
    assert measured([*data, *acks])["chain_latency_s"] == pytest.approx(49 * 0.004, rel=1e-9)


def test_a_time_out_costs_the_silence_before_it() -> None:
    first = Segment(BEGIN, 0, 1, 1, ACK, FULL)
    again = Segment(BEGIN + 203 * MS, 0, 1, 1, ACK, FULL)
    answer = Segment(BEGIN + 203 * MS + TURN, 1, 1, 1 + FULL, ACK, 10)
    metrics = measured([first, again, answer])
    assert metrics["chain_retransmission_s"] == pytest.approx(0.203)
    assert metrics["chain_latency_s"] == pytest.approx(0.002)


def test_reordering_and_keep_alives_are_no_retransmissions() -> None:
    late = stream(BEGIN, 10)
    late[3], late[4] = (
        Segment(late[3].time_ns, 0, late[4].seq, 1, ACK, FULL),
        Segment(late[4].time_ns, 0, late[3].seq, 1, ACK, FULL),
    )
    alive = Segment(BEGIN + 7_200_000 * MS, 0, 10 * FULL, 1, ACK, 1)
    assert measured([*late, alive])["chain_retransmission_s"] == 0


def test_many_senders_to_one_host_fill_its_port() -> None:
    to_one = [*stream(BEGIN, 100, flow=1), *stream(BEGIN + 1, 100, side=1, flow=2)]
    assert measured(to_one)["chain_volume_s"] == pytest.approx(200 * 0.0012, rel=0.01)


def test_it_says_what_is_missing() -> None:
    data = table_of(stream(BEGIN, 3))
    chains = ChainAccumulator()
    assert chains.metrics() == ({}, dict.fromkeys(IDS, "no TCP data with a time stamp"))
    chains.update(data)
    metrics, missing = chains.metrics()
    assert metrics == {"chain_retransmission_s": 0}
    assert missing["chain_volume_s"] == "the rate of the links is unknown"
    assert "no handshake" in missing["chain_latency_s"]


@st.composite
def conversations(draw: st.DrawFn) -> list[Segment]:
    """Draw data and ACKs of three hosts, some sent again, some without a stamp."""
    segments, now = [], BEGIN
    for _ in range(draw(st.integers(1, 80))):
        now += draw(st.sampled_from([0, 1, 60_000, FULL_NS, TURN, TURN + 1, 5 * MS, 210 * MS]))
        segments.append(
            Segment(
                draw(st.sampled_from([now] * 9 + [int(NO_TIME)])),
                draw(st.integers(0, 1)),
                1 + FULL * draw(st.integers(0, 5)),
                1,
                ACK,
                draw(st.sampled_from([0, 1, 10, FULL])),
                flow=draw(st.integers(0, 2)),
            )
        )
    return segments


@settings(max_examples=60, deadline=None)
@given(conversations(), st.lists(st.integers(0, 80), max_size=3))
def test_the_parts_add_up_to_no_more_than_the_run_however_the_packets_come(
    segments: list[Segment], cuts: list[int]
) -> None:
    table = table_of([*(s for flow in range(3) for s in handshake(flow)), *segments], endpoints=RING)
    whole, parted = ChainAccumulator(RATE_BPS), ChainAccumulator(RATE_BPS)
    whole.update(table)
    for part in slices(table, [min(cut, len(table)) for cut in cuts]):
        parted.update(part)
    assert parted.metrics() == whole.metrics()
    metrics = whole.metrics()[0]
    stamped = [s for s in segments if s.time_ns != NO_TIME]
    received_s = sum((HEADER_BYTES + s.payload) * 8 / RATE_BPS for s in stamped)
    lasts_s = (max(s.time_ns for s in stamped) / 1e9 if stamped else 0) + received_s
    parts = ("chain_latency_s", "chain_volume_s", "chain_retransmission_s")
    assert sum(metrics.get(name, 0) for name in parts) <= lasts_s
