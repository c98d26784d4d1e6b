"""Costs, ratings and contention."""

from __future__ import annotations

import pytest

from analysis.conclusions.observations.economics import ClusterFacts, contention, rate

# Eadline and Layton 2006: eight single-CPU nodes of 1.756 GHz and two operations per cycle, $2490, 900 W under load
_FACTS = ClusterFacts(hosts=8, clock_hz=1.756e9, flops_per_cycle=2, price=2490, watts=900)


def test_it_gives_the_published_price_and_power_of_the_hpl_study() -> None:
    best = rate(14.53, _FACTS)
    assert best.price_per_gflops == pytest.approx(171, abs=0.5)
    assert best.mflops_per_watt == pytest.approx(16.14, abs=0.005)
    later = rate(14.53, ClusterFacts(price=2063))
    assert later.price_per_gflops == pytest.approx(142, abs=0.5)
    assert later.peak_share is None


@pytest.mark.parametrize(
    ("gflops", "printed_percent"),
    [(0.0084, 0), (10.6, 38), (11.51, 41), (12.74, 45), (13.26, 47), (11.45, 41), (14.53, 52), (7.45, 27)],
)
def test_it_gives_the_published_share_of_the_peak(gflops: float, printed_percent: int) -> None:
    assert _FACTS.peak_flops == pytest.approx(28.10e9, rel=2e-4)
    share = rate(gflops, _FACTS).peak_share
    assert share is not None
    assert round(100 * share) == printed_percent


def test_a_bought_host_costs_its_price_over_the_years() -> None:
    facts = ClusterFacts(hosts=8, price=2490, years_of_use=3)
    assert facts.host_hour == pytest.approx(2490 / 8 / (3 * 8766))
    assert ClusterFacts(hosts=8, price=2490).host_hour is None


def test_power_costs_on_top_of_a_host_where_both_are_known() -> None:
    facts = ClusterFacts(hosts=8, price_per_host_hour=0.36, watts=1200, price_per_kwh=0.30)
    assert facts.host_hour == pytest.approx(0.36 + 0.15 * 0.30)
    assert contention(3600.0, 1800.0, 2, facts).price_lost == pytest.approx(0.36 + 0.15 * 0.30)
    assert ClusterFacts(hosts=8, price_per_host_hour=0.36, watts=1200).host_hour == 0.36
    assert ClusterFacts(hosts=8, watts=1200, price_per_kwh=0.30).host_hour is None


def test_it_says_what_contention_takes() -> None:
    # 10 nodes pulling against a broadcast: 4.4 times shorter
    lost = contention(440.0, 100.0, 10, ClusterFacts(price_per_host_hour=1.8))
    assert lost.utilisation_lost == pytest.approx(1 - 1 / 4.4)
    assert lost.price_lost == pytest.approx(1.7)
    assert contention(90.0, 100.0, 10).utilisation_lost == 0


def test_it_refuses_what_cannot_be() -> None:
    with pytest.raises(ValueError, match="positive"):
        rate(0.0, _FACTS)
    with pytest.raises(ValueError, match="positive"):
        contention(1.0, 0.0, 2)
