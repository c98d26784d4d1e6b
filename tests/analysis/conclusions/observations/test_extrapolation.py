"""From few nodes and searches to many: equations, intervals, the mark."""

import numpy as np
import pytest

from analysis.conclusions.observations.extrapolation import extrapolate, fit_phase, times_faster
from analysis.scaling import Point, Study

SIZES = (1, 2, 4, 6, 10)


def study(phases, *, scatter=0.01, repetitions=3, sizes=SIZES):
    rng = np.random.default_rng(1)
    points = [
        Point(
            {"nodes": n},
            {name: list(law(n) * rng.normal(1, scatter, repetitions)) for name, law in phases.items()},
        )
        for n in sizes
    ]
    return Study(points, axis="nodes", time_metric="run_s")


PULL = {"first_s": lambda n: 0.2 + 4.0 * n, "later_s": lambda n: 1.5}


def test_it_finds_a_shared_link_linear_and_a_search_constant():
    first, later = (fit_phase(study(PULL), name) for name in PULL)
    assert (first.title, later.title) == ("linear", "constant")
    assert first.parameters["N"].value == pytest.approx(4.0, rel=0.02)
    assert later.parameters["constant"].value == pytest.approx(1.5, rel=0.02)


def test_it_finds_a_tree_logarithmic():
    fit = fit_phase(study({"first_s": lambda n: 2.0 + 3.0 * np.log2(n)}), "first_s")
    assert fit.title == "logarithmic"


def test_it_leaves_equal_times_constant():
    assert fit_phase(study({"first_s": lambda n: 0.1}, scatter=0.0), "first_s").title == "constant"


def test_it_adds_up_the_phases_with_an_interval_that_holds_the_truth():
    first, later = (fit_phase(study(PULL), name) for name in PULL)
    extrapolated = extrapolate(first, later, nodes=100, searches=1000, measured_searches=3)
    truth = (0.2 + 400) + 999 * 1.5
    assert extrapolated.total_s.value == pytest.approx(extrapolated.first_s.value + extrapolated.later_s.value)
    assert extrapolated.total_s.value == pytest.approx(truth, rel=0.02)
    assert extrapolated.total_s.interval.low < truth < extrapolated.total_s.interval.high
    assert (extrapolated.beyond_nodes, extrapolated.beyond_searches) == (True, True)
    inside = extrapolate(first, later, nodes=5, searches=3, measured_searches=3)
    assert (inside.beyond_nodes, inside.beyond_searches) == (False, False)


def test_it_compares_two_methods_with_an_interval():
    slow = [fit_phase(study(PULL), name) for name in PULL]
    fast = [fit_phase(study({"f": lambda n: 4.2, "l": lambda n: 1.5}), name) for name in ("f", "l")]
    at = {"nodes": 10, "searches": 1, "measured_searches": 3}
    ratio = times_faster(extrapolate(*slow, **at), extrapolate(*fast, **at, stream=1))
    assert ratio.interval.low < 40.2 / 4.2 < ratio.interval.high
    assert ratio.value == pytest.approx(40.2 / 4.2, rel=0.03)


def test_it_takes_what_two_methods_have_in_common_out_of_their_comparison():
    later = fit_phase(study(PULL, scatter=0.1), "later_s")
    slow, fast = (fit_phase(study({"f": law}, scatter=0.001), "f") for law in (lambda n: 4.0 * n, lambda n: 2.0 * n))
    at = {"nodes": 10, "searches": 100, "measured_searches": 3}
    ratio = times_faster(extrapolate(slow, later, **at), extrapolate(fast, later, **at, stream=1))
    total = extrapolate(slow, later, **at).total_s
    width = (ratio.interval.high - ratio.interval.low) / ratio.value
    assert width < 0.3 * (total.interval.high - total.interval.low) / total.value


def test_it_judges_single_trials_by_their_distance_from_the_line():
    first, later = (fit_phase(study(PULL, scatter=0.02, repetitions=1), name) for name in PULL)
    extrapolated = extrapolate(first, later, nodes=20, searches=10, measured_searches=3)
    assert extrapolated.total_s.interval.low < 0.2 + 80 + 9 * 1.5 < extrapolated.total_s.interval.high


def test_it_fits_nothing_to_two_sizes():
    assert fit_phase(study(PULL, sizes=(1, 2)), "first_s") is None


@pytest.mark.parametrize("target", [{"nodes": 0, "searches": 1}, {"nodes": 1, "searches": 0}])
def test_it_refuses_an_impossible_target(target):
    first, later = (fit_phase(study(PULL), name) for name in PULL)
    with pytest.raises(ValueError, match="at least one"):
        extrapolate(first, later, **target, measured_searches=3)


def test_no_time_beyond_the_measured_nodes_has_an_interval_below_zero():
    random = np.random.default_rng(3)
    falling = [
        Point({"nodes": n}, {"first": list((10 - n) * np.exp(random.normal(0, 0.1, 3)))}) for n in (1, 3, 5, 7, 8)
    ]
    fit = fit_phase(Study(falling, axis="nodes"), "first")
    assert fit is not None
    result = extrapolate(fit, fit, nodes=9.7, searches=2, measured_searches=2)
    assert result.draws.min() < 0, "the line of some draws crosses zero"
    assert result.total_s.low is not None
    assert result.total_s.low > 0
