"""Packets per bin and largest window sums equal plain arithmetic."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from analysis.packets import PacketTable
from analysis.traffic.rates import ALL, MOST_BINS, MPI, PEAK_WINDOWS, RateAccumulator
from tests.analysis.segments import Segment, slices, table_of

_RANDOM = np.random.default_rng(5)
_MEMBER = np.array([False, True])


def _table(time_ns: npt.NDArray[np.int64]) -> PacketTable:
    """Packets of other traffic and of MPI by chance."""
    lengths, flows = _RANDOM.integers(0, 1448, len(time_ns)), _RANDOM.integers(0, 2, len(time_ns))
    made = zip(time_ns.tolist(), lengths.tolist(), flows.tolist(), strict=True)
    segments = [Segment(stamp, payload=length, flow=flow) for stamp, length, flow in made]
    return table_of(segments, endpoints=((0, 4000, 1, 20000), (0, 4001, 1, 20001)))


def _accumulated(table: PacketTable, parts: int) -> RateAccumulator:
    accumulator = RateAccumulator()
    for piece in slices(table, np.linspace(0, len(table), parts + 1)[1:-1].astype(int).tolist()):
        accumulator.update(piece, _MEMBER)
    return accumulator


def _of(table: PacketTable, scope: int) -> npt.NDArray[np.bool_]:
    chosen: npt.NDArray[np.bool_] = (table.flow == 1) | (scope == ALL)
    return chosen


@pytest.mark.parametrize("seconds", [0.2, 9, 40, 700, 5000])
def test_packets_per_bin_are_those_of_their_stamps(seconds: float) -> None:
    table = _table(10**18 + np.sort(_RANDOM.integers(0, int(seconds * 1e9), 3000)))
    accumulator = _accumulated(table, 7)
    since = table.time_ns - table.time_ns[0]
    for scope in (ALL, MPI):
        rates = accumulator.scope(scope)
        assert int(since[-1]) // rates.bin_ns < MOST_BINS
        assert rates.bin_ns == 100_000 or int(since[-1]) // (rates.bin_ns // 10) >= MOST_BINS
        places = since[_of(table, scope)] // rates.bin_ns
        assert rates.counts().tolist() == np.bincount(places - places[0]).tolist()


def _peaks(time_ns: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> list[int]:
    """The largest sum of any (t - width, t] for stamps that never fall."""
    until = np.searchsorted(time_ns, time_ns, side="right")
    summed = np.concatenate([[0], np.cumsum(sizes)])
    starts = (np.searchsorted(time_ns, time_ns - width, side="right") for width in PEAK_WINDOWS.values())
    return [int((summed[until] - summed[start]).max()) for start in starts]


@pytest.mark.parametrize("parts", [1, 5])
def test_peaks_are_the_largest_sums_of_all_windows(parts: int) -> None:
    bursts = np.where(_RANDOM.random(6000) < 0.02, _RANDOM.exponential(20e6, 6000), _RANDOM.exponential(20e3, 6000))
    time_ns = np.cumsum(bursts).astype(np.int64) // 2000 * 2000  # some stamps are equal
    early = time_ns[:2500] + 10**18
    late = time_ns[2500:] + 10**17  # the clock was set back by years
    table = _table(np.concatenate([early, late]))
    accumulator = _accumulated(table, parts)
    for scope in (ALL, MPI):
        sizes = np.where(_of(table, scope), table.orig_len, 0).astype(np.int64)
        both = (_peaks(early, sizes[:2500]), _peaks(late, sizes[2500:]))
        assert accumulator.scope(scope).peaks == [max(pair) for pair in zip(*both, strict=True)]
