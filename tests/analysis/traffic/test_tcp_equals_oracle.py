"""The TCP pass gives what the definitions give when they are applied byte by byte."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.kernels import tcp_state as state
from analysis.traffic.tcp import TcpAccumulator
from tests.analysis.oracles.tcp import follow
from tests.analysis.segments import ACK, FIN, RST, SYN, Segment, slices, table_of

COUNTED = tuple(
    name for name in state.COUNTERS
    if name not in ("wire_bytes", "rtt_samples", "response_samples", "gaps_forgotten", "segments_forgotten")
)  # fmt: skip

Event = tuple[int, str, int, int, int]
EVENTS = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.sampled_from(("send", "send", "send", "lose", "resend", "early", "ack", "ack", "again", "below", "fin", "close", "rst")),
        st.integers(0, 40),
        st.integers(1, 12),
        st.integers(0, 30),
    ),
    min_size=1,
    max_size=60,
)  # fmt: skip


@st.composite
def connections(draw: st.DrawFn) -> list[Segment]:
    """Draw a connection with loss, reordering, repeats and closed windows."""
    isns = (draw(st.integers(0, 2**32 - 1)), draw(st.sampled_from((0, 5, 2**31 - 3, 2**32 - 20))))
    scales = (draw(st.sampled_from((0, 3, 15, 255))), draw(st.sampled_from((0, 2, 255))))
    segments = []
    if draw(st.booleans()):
        segments = [
            Segment(0, 0, isns[0], 0, SYN, window=60, wscale=scales[0]),
            Segment(7, 1, isns[1], isns[0] + 1, SYN | ACK, window=50, wscale=scales[1]),
            Segment(12, 0, isns[0] + 1, isns[1] + 1, ACK, window=9),
        ]
    return segments + _play(draw(EVENTS), [isns[0] + 1, isns[1] + 1])


def _play(events: Sequence[Event], following: list[int]) -> list[Segment]:
    time_ns, windows, begins, segments = 20, [9, 9], tuple(following), []
    for side, what, back, length, pause in events:
        time_ns += pause
        peer = 1 - side
        seq, ack, flags, payload = following[side], following[peer], ACK, 0
        if what == "lose":
            following[side] += length
            continue
        if what in ("send", "fin", "rst"):
            payload = length if what == "send" else 0
            flags = {"send": ACK, "fin": ACK | FIN, "rst": RST | ACK}[what]
            following[side] += payload + (what == "fin")
        elif what == "resend":
            seq, payload = max(begins[side], seq - back), length
            following[side] = max(following[side], seq + payload)
        elif what == "early":
            seq, payload = seq + back, length
            following[side] = seq + payload
        elif what == "ack":
            ack = max(begins[peer], ack - back)
        elif what == "below":
            seq, payload = seq - 1, back % 2
        elif what == "close":
            windows[side] = (0, 1, 9)[back % 3]
        segments.append(Segment(time_ns, side, seq, ack, flags, payload, windows[side]))
    return segments


def _measured(segments: Sequence[Segment], cuts: Sequence[int] = ()) -> TcpAccumulator:
    accumulator = TcpAccumulator()
    for piece in slices(table_of(segments), [cut for cut in cuts if cut <= len(segments)]):
        accumulator.update(piece)
    return accumulator


@settings(max_examples=400, deadline=None)
@given(connections())
def test_it_counts_what_the_oracle_counts(segments: list[Segment]) -> None:
    if not segments:
        return
    flows = _measured(segments).result()
    record = flows.records[0]
    assert len(flows) == 1
    first = next((s.side for s in segments if s.flags & SYN), 0)
    for way, side in zip(("ab", "ba"), follow(segments)[:: -1 if first else 1], strict=True):
        assert {name: int(record[f"{name}_{way}"]) for name in COUNTED} == {name: side.counts[name] for name in COUNTED}
        assert int(record[f"rtt_samples_{way}"]) == len(side.rtt_ns)
        assert int(record[f"response_samples_{way}"]) == len(side.response_ns)
        assert np.nanmax([record[f"bytes_in_flight_max_{way}"], -1]) == max(side.in_flight, default=-1)
        known = [min(side.rtt_ns)] if side.rtt_ns else []
        assert [record[f"rtt_min_s_{way}"]] == known or np.allclose(
            record[f"rtt_min_s_{way}"] * 1e9, known or np.nan, equal_nan=True
        )


@settings(max_examples=200, deadline=None)
@given(connections())
def test_its_quantiles_and_windows_are_those_of_all_samples(segments: list[Segment]) -> None:
    if not segments:
        return
    a, b = follow(segments)
    metrics, missing = _measured(segments).result().metrics()
    rtt, response, in_flight = (
        [*x, *y] for x, y in ((a.rtt_ns, b.rtt_ns), (a.response_ns, b.response_ns), (a.in_flight, b.in_flight))
    )
    expected = {}
    if rtt:
        expected |= {"rtt_min_s": min(rtt) * 1e-9, "rtt_median_s": np.median(rtt) * 1e-9}
        expected |= {"rtt_p95_s": np.quantile(rtt, 0.95) * 1e-9}
    if response:
        expected["response_latency_s"] = np.median(response) * 1e-9
    if in_flight:
        expected |= {"bytes_in_flight_max": max(in_flight), "bytes_in_flight_p95": np.quantile(in_flight, 0.95)}
    if -1 in (a.wscale, b.wscale) or None not in (a.wscale, b.wscale):
        plain = -1 in (a.wscale, b.wscale)
        scaled = [w << (0 if plain else side.wscale or 0) for side in (a, b) for w in side.windows]
        advertised = scaled + a.syn_windows + b.syn_windows
        expected |= {"window_mean_bytes": np.mean(advertised), "window_min_bytes": min(advertised)}
    sampled = ("rtt_min_s", "rtt_median_s", "rtt_p95_s", "response_latency_s")
    sampled += ("bytes_in_flight_max", "bytes_in_flight_p95", "window_mean_bytes", "window_min_bytes")
    assert {name for name in sampled if name not in missing} == set(expected)
    for name, value in expected.items():
        assert np.isclose(metrics[name], value, rtol=1e-12), name


@settings(max_examples=200, deadline=None)
@given(connections(), st.lists(st.integers(0, 60), max_size=4))
def test_any_split_into_chunks_gives_the_same_result(segments: list[Segment], cuts: list[int]) -> None:
    whole, pieces = _measured(segments).result(), _measured(segments, cuts).result()
    assert whole.records.tobytes() == pieces.records.tobytes()
    assert whole.metrics() == pieces.metrics()
