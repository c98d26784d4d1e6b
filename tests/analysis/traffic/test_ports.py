"""The busiest port equals that of a slow reader, or has a reason for its absence."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.capture.stream import stream
from analysis.packets import PacketTable
from analysis.traffic import ports
from analysis.traffic.ports import PEAK, PortAccumulator
from tests.analysis.oracles.tools import tshark_fields
from tests.analysis.segments import ACK, Segment, slices, table_of

MS = 1_000_000
HOSTS = ("10.0.0.1", "10.0.0.2", "10.0.0.3")


def slow_peak_bps(rows: list[tuple[int, str, str, int]]) -> float:
    """Return the peak of rows (time in ns, source, destination, bytes)."""
    moved: dict[tuple[str, str], dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for time_ns, source, target, size in rows:
        moved["sent", source][time_ns // MS] += size
        moved["received", target][time_ns // MS] += size
    windows = [sum(each.get(end - k, 0) for k in range(10)) for each in moved.values() for end in list(each)]
    return max(windows) * 8 / 0.01


@st.composite
def tables(draw: st.DrawFn) -> PacketTable:
    """Draw 2 to 60 segments of three hosts, simultaneous or far apart."""
    segments, now = [], 0
    for _ in range(draw(st.integers(2, 60))):
        now += draw(st.sampled_from([0, 1, 40_000, MS, 3 * MS, 9 * MS, 10 * MS, 57 * MS]))
        segments.append(Segment(now, 0, 0, 0, ACK, draw(st.integers(0, 1448))))
    table = table_of(segments, hosts=HOSTS)
    ends = draw(st.lists(st.permutations([0, 1, 2]), min_size=len(table), max_size=len(table)))
    table.src[:], table.dst[:] = [end[0] for end in ends], [end[1] for end in ends]
    return table


@settings(max_examples=60, deadline=None)
@given(tables(), st.lists(st.integers(0, 60), max_size=3))
def test_it_equals_the_slow_reader_however_the_packets_come(table: PacketTable, cuts: list[int]) -> None:
    accumulator = PortAccumulator()
    for part in slices(table, [min(cut, len(table)) for cut in cuts]):
        accumulator.update(part)
    rows = [
        (int(t), HOSTS[s], HOSTS[d], int(n))
        for t, s, d, n in zip(table.time_ns, table.src, table.dst, table.orig_len, strict=True)
    ]
    assert accumulator.metrics(10 * MS) == ({PEAK: pytest.approx(slow_peak_bps(rows))}, {})


def test_it_reads_a_real_capture_as_tshark_does(mpi_capture: Path) -> None:
    accumulator = PortAccumulator()
    first, last = 0, 0
    for table in stream(mpi_capture):
        accumulator.update(table)
        first, last = first or int(table.time_ns[0]), int(table.time_ns[-1])
    fields = tshark_fields(mpi_capture, "frame.time_epoch", "ip.src", "ip.dst", "frame.len", display_filter="ip")
    rows = []
    for time, source, target, size in fields:
        seconds, _, fraction = time.partition(".")
        rows.append((int(seconds) * 10**9 + int(fraction.ljust(9, "0")[:9]), source, target, int(size)))
    assert accumulator.metrics(last - first)[0][PEAK] == pytest.approx(slow_peak_bps(rows))


def test_two_ports_are_never_added_up() -> None:
    table = table_of([Segment(k, 0, 0, 0, ACK, 946) for k in range(20)], hosts=HOSTS)
    table.src[:], table.dst[:] = [0, 1] * 10, [1, 0] * 10
    accumulator = PortAccumulator()
    accumulator.update(table)
    assert accumulator.metrics(10 * MS)[0][PEAK] == 10 * int(table.orig_len[0]) * 8 / 0.01


def test_it_leaves_out_repeated_packets_and_those_from_before_the_window() -> None:
    table = table_of([Segment(t, 0, 0, 0, ACK, 100) for t in (50 * MS, 5 * MS, 50 * MS)], hosts=HOSTS)
    accumulator = PortAccumulator()
    accumulator.update(table, skip=np.array([False, False, True]))
    assert accumulator.metrics(10 * MS)[0][PEAK] == int(table.orig_len[0]) * 8 / 0.01


def test_it_says_what_it_cannot_know(monkeypatch: pytest.MonkeyPatch) -> None:
    accumulator = PortAccumulator()
    assert accumulator.metrics(10 * MS) == ({}, {PEAK: "no IP packets with a time stamp"})
    accumulator.update(table_of([Segment(0, 0, 0, 0, ACK, 100)], hosts=HOSTS))
    assert accumulator.metrics(9 * MS) == ({}, {PEAK: "the capture is shorter than the window"})
    monkeypatch.setattr(ports, "MOST_HOSTS", 2)
    assert accumulator.metrics(10 * MS) == ({}, {PEAK: "more than 2 addresses"})
