"""Quantiles and distances of gaps that are never sorted as a whole are those of the sorted ones."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import scipy.stats

from analysis.traffic.interarrival import GapStore

_RANDOM = np.random.default_rng(17)
GAPS = {
    "of a fine clock": _RANDOM.exponential(40_000, 30_000).astype(np.int64),
    "of a clock that ticks in microseconds": _RANDOM.exponential(4, 30_000).astype(np.int64) * 1000,
    "of a clock that was set back, some beyond 31 bits": np.concatenate(
        [_RANDOM.integers(-5_000_000_000, 5_000_000_000, 3000), np.arange(-200, 200), np.zeros(500, np.int64)]
    ),
    "one alone": np.array([7]),
    "none above zero but one": np.array([-3, 0, 0, 12]),
}


CLOCKS = {
    "told nothing": (1, 1, 1),
    "of microseconds": (1000, 1000, 1000),
    "of milliseconds": (10**6, 10**6, 10**6),
    "of seconds": (10**9, 10**9, 10**9),
    "found finer and finer": (10**9, 10**6, 1),
    "found finer at the end": (1000, 1000, 10),
}
"""What is known of the clock while the first, the second and the last third of the gaps are added."""


def ordered(gaps: npt.NDArray[np.int64], units: tuple[int, ...] = (1, 1, 1)) -> GapStore:
    store = GapStore()
    for piece, unit in zip(np.array_split(gaps, 3), units, strict=True):
        store.add(piece, unit)
    return store


@pytest.mark.parametrize("kind", GAPS)
def test_quantiles_are_those_of_sorted_gaps(kind: str) -> None:
    gaps = GAPS[kind]
    order = ordered(gaps).in_order()
    assert len(order) == len(gaps)
    for share in (0.0, 0.01, 0.25, 0.5, 0.95, 0.99, 1.0):
        assert order.quantile(share) == pytest.approx(np.quantile(gaps, share), rel=1e-12, abs=1e-6)
    assert order.positive().tolist() == np.sort(gaps[gaps > 0]).tolist()


@pytest.mark.parametrize("kind", GAPS)
def test_the_distance_is_that_of_every_gap_looked_at(kind: str) -> None:
    gaps = GAPS[kind]
    positive = gaps[gaps > 0] * 1e-9
    order = ordered(gaps).in_order()
    for frozen in (
        scipy.stats.expon(scale=positive.mean()),
        scipy.stats.lognorm(1.3, scale=np.median(positive)),
        scipy.stats.pareto(0.7, scale=positive.min()),
    ):
        truth = scipy.stats.kstest(positive, frozen.cdf).statistic
        assert order.distance(frozen.cdf, scale=1e-9) == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize("clock", CLOCKS)
def test_gaps_of_every_clock_are_told_exactly(clock: str) -> None:
    thirds = np.array_split(np.concatenate([_RANDOM.exponential(3, 30_000).astype(np.int64), np.arange(-3, 9000)]), 3)
    gaps = np.concatenate([third * unit for third, unit in zip(thirds, CLOCKS[clock], strict=True)])
    order, plain = ordered(gaps, CLOCKS[clock]).in_order(), ordered(gaps).in_order()
    assert order.positive().tolist() == np.sort(gaps[gaps > 0]).tolist()
    for share in (0.0, 0.25, 0.5, 0.95, 0.999, 1.0):
        assert order.quantile(share) == pytest.approx(np.quantile(gaps, share), rel=1e-12, abs=1e-6)
    frozen = scipy.stats.lognorm(1.3, scale=np.median(gaps[gaps > 0]) * 1e-9)
    truth = scipy.stats.kstest(gaps[gaps > 0] * 1e-9, frozen.cdf).statistic
    assert order.distance(frozen.cdf, scale=1e-9) == plain.distance(frozen.cdf, scale=1e-9) == pytest.approx(truth)


def test_a_clock_that_ticks_keeps_what_its_groups_tell_only_there() -> None:
    store = GapStore(most_gaps=100)
    store.add(np.arange(1, 1000) * 1000, 1000)
    assert store.exact
    store.add(np.arange(1, 3), 1)  # 1 and 2 ns: now the 997 others from 2048 ns on are no longer alone in their groups
    assert not store.exact
    assert store.count == 1001


def test_the_distance_needs_few_evaluations() -> None:
    looked_at: list[int] = []

    def cdf(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        looked_at.append(len(x))
        return -np.expm1(-x / 50_000)

    ordered(_RANDOM.exponential(40_000, 200_000).astype(np.int64)).in_order().distance(cdf)
    assert sum(looked_at) < 20_000
