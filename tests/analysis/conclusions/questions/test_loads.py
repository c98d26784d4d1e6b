"""Load tests, weak scaling and single points."""

from __future__ import annotations

import pytest

from analysis.conclusions import Accepted, Factor, Scatter
from analysis.conclusions.wording import level
from tests.analysis.conclusions.designs import GFLOPS, HOSTS, JOBS, RATE, asks, checked, values

WALLS = {(1e7, 1): 1.0, (1e7, 4): 5.0, (1e7, 16): 30.0, (1e8, 1): 1.0, (1e8, 4): 1.5, (1e8, 16): 3.0}
ROWS = [
    Accepted(1e7, 7.0, (4.0, 16.0), False, "link", 1.02, 16, "link"),
    Accepted(1e8, 16.0, None, True, None, 0.44, 16, "server's processors"),
]


def test_it_reports_what_each_link_carries_and_what_isused_up():
    result = checked(asks([RATE, JOBS], WALLS, accepted=ROWS))

    assert values(result, "carried") == [7.0, 16.0]
    assert values(result, "used up first") == ["link", None]
    assert values(result, "use") == [1.0, 0.44]
    assert "read between 4 and 16" in result.sentence


def test_a_load_within_the_scatter_of_the_rule_is_not_decided():
    walls = {**WALLS, (1e7, 16): 10.15}

    result = checked(
        asks([RATE, JOBS], walls, accepted=[Accepted(1e7, 4.0, None, False, None, 0.5, 4, "link"), ROWS[1]])
    )

    assert result.strength == "moderate"
    assert "not enough data for the exact number" in result.sentence


def test_the_limit_of_links_that_one_job_fills_is_arithmetic():
    walls = {(rate, jobs): float(jobs) for rate in (1e7, 1e8) for jobs in (1, 4, 16)}
    full = [Accepted(rate, 9.0, (4.0, 16.0), False, "link", 0.95, 1, "link") for rate in (1e7, 1e8)]
    result = checked(asks([RATE, JOBS], walls, accepted=full))
    mixed = checked(asks([RATE, JOBS], {**walls, (1e8, 16): 5.0}, accepted=[full[0], ROWS[1]]))

    assert result.strength == "open", "no capacity was measured"
    assert values(result, "arithmetic limit") == [10.0, 10.0]
    assert mixed.strength == "firm"
    assert values(mixed, "arithmetic limit", **{"link.bandwidth": 1e8}) == []


def test_links_without_a_single_job_are_open():
    rows = [Accepted(1e7, None, None, False, None, None, None)]

    assert checked(asks([RATE, JOBS], WALLS, accepted=rows)).strength == "open"


def test_weak_scaling_reports_efficiency_and_where_it_falls():
    result = checked(asks([HOSTS], {1: 10.0, 2: 10.5, 4: 14.0, 8: 20.0}, weak=True))

    assert values(result, "efficiency", hosts=8) == [pytest.approx(0.5)]
    assert values(result, "falls below 80 %") == [4]


def test_an_efficiency_that_falls_and_rises_again_is_reported_where_it_fell():
    result = checked(asks([HOSTS], {1: 10.0, 2: 10.2, 4: 20.0, 8: 10.5}, weak=True))

    assert values(result, "falls below 80 %") == [4]
    assert values(result, "stays above 80 %") == []


def test_weak_scaling_of_a_rate_is_divided_by_the_size():
    result = checked(asks([HOSTS], {1: 1.0, 2: 1.96, 4: 3.8}, weak=True, deciding=GFLOPS))

    assert values(result, "efficiency", hosts=4) == [pytest.approx(0.95)]
    assert values(result, "stays above 80 %") == [4]


def test_an_efficiency_near_the_line_is_not_decided():
    result = checked(asks([HOSTS], {1: 10.0, 2: 12.4}, weak=True))

    assert result.strength == "open"


def test_a_noisy_efficiency_is_no_claim():
    result = checked(asks([HOSTS], {1: 10.0, 2: 13.0}, weak=True, repetitions=[0.8, 1.0, 1.25]))

    assert values(result, "falls below 80 %") == []


def test_one_point_reports_value_and_scatter():
    result = checked(asks([], {(): 5.0}))

    assert result.strength == "firm"
    assert values(result, "Elapsed time") == [pytest.approx(5.0, rel=1e-3)]
    assert values(result, "scatter") == [pytest.approx(0.01, rel=0.01)]


def test_one_trial_of_a_point_is_open_or_leans_on_known_scatter():
    alone = checked(asks([], {(): 5.0}, repetitions=[1.0], trial_s=30.0))
    result = checked(asks([], {(): 5.0}, repetitions=[1.0], prior=Scatter(0.02, 10, "history")))

    assert alone.strength == "open"
    assert alone.missing is not None
    assert alone.missing.seconds == 120
    assert result.strength == "moderate"
    assert "history" in result.sentence


@pytest.mark.parametrize(("repetitions", "has_interval"), [([0.1, 3.0], False), ([0.99, 1.01], True)])
def test_two_wild_trials_have_no_interval(repetitions, has_interval):
    figure = checked(asks([], {(): 5.0}, repetitions=repetitions)).figure("Elapsed time")

    assert figure is not None
    assert (figure.low is not None, figure.high is not None) == (has_interval, has_interval)


def test_one_of_a_kind_is_singular():
    per_host = Factor("ranks_per_host", "ranks per host", "scale", "", "ranks per host")

    assert level(per_host, 1) == "1 rank per host"
    assert level(per_host, 2) == "2 ranks per host"
    assert level(Factor("size", "problem size", "load", "", "problem size"), 4) == "problem size 4"
