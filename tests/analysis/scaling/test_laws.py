"""Amdahl, Gustafson and the Universal Scalability Law recover their truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import curve_fit

from analysis.scaling import Fit, Study
from analysis.scaling.laws import AMDAHL, GUSTAFSON, USL, fit_law
from tests.analysis.scaling.studies import published_water, simulated, usl_time
from tests.analysis.statistics.intervals import holds

_CASES = [
    pytest.param((1, 2, 4, 8, 16, 32), 0.05, 0.002, id="best 21.8 of 1 to 32"),
    pytest.param((2, 4, 6, 8, 10, 12), 0.05, 0.02, id="best 6.9 of 2 to 12"),
    pytest.param((2, 4, 6, 8, 10, 12), 0.39, 0.04, id="best 3.9 of 2 to 12"),
]


def _usl(study: Study) -> Fit:
    fit = fit_law(USL, study, "elapsed_s", resamples=400)
    assert fit is not None
    return fit


@pytest.mark.parametrize(("hosts", "sigma", "kappa"), _CASES)
def test_usl_finds_the_best_size_and_its_intervals_cover(hosts: tuple[int, ...], sigma: float, kappa: float) -> None:
    # 300 draws: the share of 100 would itself scatter by 2 %
    best = ((1 - sigma) / kappa) ** 0.5
    near, covered = 0, {"best": 0, "sigma": 0, "kappa": 0}
    for seed in range(300):
        fit = _usl(simulated({"elapsed_s": usl_time(100, sigma, kappa)}, hosts=hosts, seed=seed))
        assert fit.best_size is not None
        near += abs(fit.best_size.value / best - 1) <= 0.15
        for name, estimate, truth in (
            ("best", fit.best_size, best),
            ("sigma", fit.parameters["sigma"], sigma),
            ("kappa", fit.parameters["kappa"], kappa),
        ):
            assert estimate.interval is not None
            covered[name] += holds(estimate.interval, truth)
    assert near >= 270
    assert all(270 <= count <= 297 for count in covered.values()), covered


def test_usl_is_exact_without_noise() -> None:
    fit = _usl(simulated({"elapsed_s": usl_time(317.0, 0.3, 0.05)}, noise=0.0))
    values = {name: e.value for name, e in fit.parameters.items()}
    assert values == pytest.approx({"t1": 317.0, "sigma": 0.3, "kappa": 0.05})
    assert fit.at([2.0, 12.0]) == pytest.approx([usl_time(317, 0.3, 0.05)(2), usl_time(317, 0.3, 0.05)(12)])


def test_usl_equals_a_general_least_squares_solver() -> None:
    study = simulated({"elapsed_s": usl_time(100, 0.2, 0.02)}, seed=3)
    x = np.repeat([p.parameters["hosts"] for p in study.points], 5).astype(float)
    y = np.concatenate([p.array("elapsed_s") for p in study.points])
    means = np.repeat([p.array("elapsed_s").mean() for p in study.points], 5)

    def law(n: np.ndarray, t1: float, sigma: float, kappa: float) -> np.ndarray:
        return t1 * (1 + sigma * (n - 1) + kappa * n * (n - 1)) / n

    solved, _ = curve_fit(law, x, y, p0=[90, 0.1, 0.01], sigma=means)
    fit = _usl(study)
    assert [e.value for e in fit.parameters.values()] == pytest.approx(list(solved), rel=1e-5)


def test_usl_without_crosstalk_names_no_best_size_that_the_data_do_not_bear() -> None:
    fit = _usl(simulated({"elapsed_s": lambda n: 20 + 200 / n}, seed=5))
    assert fit.best_size is not None
    assert fit.best_size.interval is not None
    assert fit.best_size.interval.high is None
    assert fit.parameters["kappa"].value >= 0


def test_it_marks_what_is_extrapolated() -> None:
    fit = _usl(simulated({"elapsed_s": usl_time(100, 0.05, 0.02)}))
    predictions = fit.predict([1.0, 2.0, 7.0, 12.0, 24.0])
    assert [p.extrapolated for p in predictions] == [True, False, False, False, True]
    assert all(p.interval is not None and holds(p.interval, p.value) for p in predictions)
    widths = [(p.interval.high or 0) - (p.interval.low or 0) for p in predictions if p.interval]
    assert widths[4] / predictions[4].value > widths[2] / predictions[2].value


def test_it_says_where_a_law_misses_by_more_than_the_repetitions_scatter() -> None:
    step = {2: 228.0, 4: 183.0, 6: 215.0, 8: 243.0, 10: 248.0, 12: 257.0}
    fit = _usl(simulated({"elapsed_s": lambda n: step[int(n)]}, noise=0.01))
    assert fit.misfit.significant
    honest = _usl(simulated({"elapsed_s": usl_time(100, 0.05, 0.02)}))
    assert not honest.misfit.significant


def test_amdahl_recovers_the_serial_share() -> None:
    covered = 0
    for seed in range(60):
        study = simulated({"elapsed_s": lambda n: 100 * (0.1 + 0.9 / n)}, seed=seed)
        fit = fit_law(AMDAHL, study, "elapsed_s", resamples=300)
        assert fit is not None
        share = fit.parameters["serial_share"]
        assert share.interval is not None
        covered += holds(share.interval, 0.1)
    assert 52 <= covered <= 60
    assert fit.best_size is None


def test_gustafson_recovers_the_serial_share_of_growing_work() -> None:
    study = simulated({"elapsed_s": lambda n: 100 * n / (n - 0.2 * (n - 1))}, noise=0.0, kind="weak")
    fit = fit_law(GUSTAFSON, study, "elapsed_s")
    assert fit is not None
    assert {n: e.value for n, e in fit.parameters.items()} == pytest.approx({"t1": 100, "serial_share": 0.2})
    assert fit.at([12.0]) == pytest.approx([100 * 12 / (12 - 0.2 * 11)])


def test_single_values_give_intervals_from_the_misfit_alone() -> None:
    fit = _usl(published_water())
    assert fit.values == 6
    assert fit.misfit.p_value is None
    assert fit.parameters["t1"].interval is not None


def test_too_few_sizes_or_impossible_values_give_no_fit() -> None:
    assert fit_law(USL, simulated({"elapsed_s": lambda n: 1.0}, hosts=(2, 4)), "elapsed_s") is None
    assert fit_law(USL, simulated({"elapsed_s": lambda n: 0.0}, noise=0.0), "elapsed_s") is None
    assert fit_law(AMDAHL, Study([]), "elapsed_s") is None


def test_wild_scatter_gives_wide_intervals_and_no_nonsense() -> None:
    for fit in (
        fit_law(
            AMDAHL,
            simulated({"elapsed_s": lambda n: 5.0}, hosts=(2, 4, 8), repetitions=1, noise=0.9, seed=s),
            "elapsed_s",
        )
        for s in range(5)
    ):
        if fit is not None:
            assert not any(
                np.isnan(end)
                for e in fit.parameters.values()
                if e.interval
                for end in (e.interval.low, e.interval.high)
                if end is not None
            )
