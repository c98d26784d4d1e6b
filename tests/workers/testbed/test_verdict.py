"""From arrivals to rates, losses and delays, and what counts as kept."""

from __future__ import annotations

import pytest
from scipy import stats

from tests.words import plain
from workers.testbed import verdict
from workers.testbed.schedule import RequestedPath
from workers.testbed.verdict import Way

FRAME = 1514


def arrivals(times_s: list[float], first: int = 0) -> list[tuple[int, int, int, int, int]]:
    """Datagrams numbered from `first` that arrived at these times."""
    return [(first + number, 0, 0, round(1e9 * t), 1500) for number, t in enumerate(times_s)]


def way(**arrivals: object) -> Way:
    """A direction without a fault, except for what is given."""
    good: dict[str, object] = {
        "udp_bps": 3e8,
        "tcp_bps": 2.8e8,
        "burst_bps": 3e8,
        "delays_s": [0.004] * 20,
        "probed": 1000,
        "mtu": 1500,
    }
    return Way(**{**good, **arrivals})  # type: ignore[arg-type]


def not_kept(request: RequestedPath, arrivals: Way) -> list[str]:
    """The quantities outside of their tolerance."""
    return [row.quantity for row in verdict.rows("n1", "n2", request, arrivals) if row.kept is False]


def test_a_stream_has_the_rate_of_its_arrivals_without_what_left_a_bucket_at_once() -> None:
    gap_s = 8 * FRAME / 1e8
    at_once = [0.0] * 10
    steady = [gap_s * number for number in range(1, 100)]
    assert verdict.rate_of_stream(arrivals(at_once + steady), FRAME) == pytest.approx(1e8, rel=0.02)
    assert verdict.rate_of_stream(arrivals([0.0, 1.0]), FRAME) is None


def test_the_rate_of_trains_is_their_median_and_allows_for_losses() -> None:
    gap_s = 8 * FRAME / 1e8
    trains = [a for k in range(3) for a in arrivals([k + gap_s * n for n in range(10)], first=10 * k)]
    late_end = arrivals([5.0, 9.0], first=30)  # its second half is lost, the rest came late
    without = [a for a in trains if a[0] not in (4, 17)]
    assert verdict.rate_of_trains([*without, *late_end], 10, FRAME) == pytest.approx(1e8)


def test_losses_are_counted_at_the_ends_too_and_in_runs() -> None:
    seen = [(number, 0, 0, 0, 0) for number in (1, 2, 3, 6, 7)]
    assert verdict.losses(seen, sent=10) == (5, 3)
    assert verdict.losses([*seen, seen[0]], sent=10)[0] == 5
    assert verdict.losses([(n, 0, 0, 0, 0) for n in range(10)], sent=10) == (0, 0)


@pytest.mark.parametrize(("lost", "sent"), [(0, 1000), (1, 8000), (80, 8000), (8000, 8000)])
def test_the_interval_of_independent_losses_is_the_exact_one(lost: int, sent: int) -> None:
    exact = stats.binomtest(lost, sent).proportion_ci(0.99, method="exact")
    assert verdict.loss_interval(lost, sent) == pytest.approx((exact.low, exact.high))


def test_losses_in_runs_tell_less() -> None:
    low, high = verdict.loss_interval(160, 16_000)
    wide_low, wide_high = verdict.loss_interval(160, 16_000, run=5.0)
    assert wide_low < low < 0.01 < high < wide_high


def test_a_link_as_asked_is_kept_in_every_quantity() -> None:
    assert not_kept(RequestedPath(3e8, 1500, delay_s=0.004), way()) == []


@pytest.mark.parametrize(
    ("arrivals", "outside"),
    [
        ({"udp_bps": 2.8e8, "tcp_bps": 2.6e8}, ["bandwidth"]),
        ({"udp_bps": 3.3e8}, ["bandwidth"]),
        ({"udp_bps": 2.0e8, "tcp_bps": 2.84e8}, []),  # TCP shows that the link carries it
        ({"udp_bps": None, "tcp_bps": None}, ["bandwidth"]),
        ({"burst_bps": 6e8}, ["rate of a short burst"]),
        ({"burst_bps": 1.5e8}, []),
        ({"delays_s": [0.0042] * 20}, []),
        ({"delays_s": [0.0044] * 20}, ["delay"]),
        ({"delays_s": []}, ["delay"]),
        ({"lost": 1}, ["loss"]),
        ({"probed": 0}, ["loss"]),
        ({"mtu": 1400}, ["path MTU"]),
        ({"longer_refused": False}, ["path MTU"]),
    ],
)
def test_what_is_outside_of_its_tolerance_is_named(arrivals: dict[str, object], outside: list[str]) -> None:
    request = RequestedPath(3e8, 1500, delay_s=0.004)
    assert not_kept(request, way(**arrivals)) == outside


def test_long_delays_may_be_wrong_by_five_percent_and_short_ones_by_a_third_of_a_millisecond() -> None:
    assert not_kept(RequestedPath(3e8, 1500, delay_s=0.1), way(delays_s=[0.1049] * 20)) == []
    assert not_kept(RequestedPath(3e8, 1500, delay_s=0.1), way(delays_s=[0.1051] * 20)) == ["delay"]
    assert not_kept(RequestedPath(3e8, 1500), way(delays_s=[0.00029] * 20)) == []


def test_loss_is_kept_when_it_is_in_the_interval() -> None:
    request = RequestedPath(3e8, 1500, delay_s=0.004, loss=0.01)
    assert not_kept(request, way(lost=85, probed=8000)) == []
    assert not_kept(request, way(lost=30, probed=8000)) == ["loss"]
    assert not_kept(request, way(lost=0, probed=8000)) == ["loss"]


def test_the_length_of_bursts_is_kept_when_it_is_in_its_interval() -> None:
    exact = stats.binomtest(32, 160).proportion_ci(0.99, method="exact")
    assert verdict.run_interval(160, 32) == pytest.approx((1 / exact.high, 1 / exact.low))
    request = RequestedPath(3e8, 1500, delay_s=0.004, loss=0.01, loss_burst=5.0)
    assert not_kept(request, way(lost=160, loss_runs=34, probed=16_000)) == []
    assert not_kept(request, way(lost=160, loss_runs=155, probed=16_000)) == ["length of loss bursts"]
    rows = verdict.rows("n1", "n2", request, way(lost=160, loss_runs=40, probed=16_000))
    (row,) = [row for row in rows if row.quantity == "length of loss bursts"]
    assert plain(verdict.sentence(row)).startswith(
        "the length of loss bursts from n1 to n2 is 4 packets instead of 5 packets"
    )


def test_jitter_is_reported_in_the_sense_of_its_distribution() -> None:
    delays = [0.004 + 0.001 * (k / 1000 - 0.5) * 2 for k in range(1001)]
    assert verdict.spread(delays, "uniform") == pytest.approx(0.001, rel=0.01)
    normal = [float(stats.norm.ppf((k + 0.5) / 1000, 0.004, 0.001)) for k in range(1000)]
    assert verdict.spread(normal, "normal") == pytest.approx(0.001, rel=0.01)


def test_a_sentence_has_both_values_and_the_tolerance() -> None:
    rows = verdict.rows("n1", "n2", RequestedPath(3e8, 1500, delay_s=0.004), way(udp_bps=2.5e8, tcp_bps=None))
    assert plain(verdict.sentence(rows[0])) == (
        "the bandwidth from n1 to n2 is 250 Mbit/s instead of 300 Mbit/s (tolerance 5 %)"
    )


@pytest.mark.parametrize(
    ("burst_bps", "at_once"),
    [
        (1e8, FRAME),  # every frame after the first waited for the rate
        (0.97e8, FRAME),  # a busy machine spaced the train out
        (1e8 * 43 / 41, 3 * FRAME),  # two more frames of 44 left with the first
    ],
)
def test_the_burst_is_what_left_ahead_of_the_rate(burst_bps: float, at_once: float) -> None:
    rows = verdict.rows("n1", "n2", RequestedPath(1e8, 1500), way(burst_bps=burst_bps))
    (burst,) = [row for row in rows if row.quantity == "burst"]
    assert (burst.achieved, burst.unit, burst.kept) == (pytest.approx(at_once), "B", None)
