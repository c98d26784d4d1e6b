"""The performance model normal form, against Extra-P and slow fits."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.scaling import Point, Study
from analysis.scaling.fitting import cross_validation_error, sample
from analysis.scaling.pmnf import pmnf, search, terms
from tests.analysis.scaling.studies import simulated
from tests.analysis.statistics.intervals import holds

_RECORD = json.loads((Path(__file__).parents[3] / "benchmarks/scaling_extrap.json").read_text())
_RELATIVE_DIFFERS = {
    # no power of x: a parabola read backwards; the two weightings stretch different wrong shapes over it
    "tests/data/text/strong_scaling/one_parameter_1.txt",
    # 256, 64, 16, 4, 1 plus 5 to 1: relative residuals also fit the small end, where the part that is no power shows
    "tests/data/text/strong_scaling/one_parameter_6.txt met3",
}


def _study(example: dict[str, Any]) -> Study:
    return Study([Point({"hosts": x}, {"y": v}) for x, v in zip(example["x"], example["values"], strict=True)])


@pytest.mark.parametrize("example", _RECORD["examples"], ids=lambda e: e["name"])
def test_it_picks_the_leading_term_that_extrap_picks(example: dict[str, Any]) -> None:
    study = _study(example)
    for errors in ("absolute", "relative"):
        data = sample(study, "y", errors=errors)
        assert data is not None
        # The term that rules as N grows, the slowest to fall where all fall.
        leading = max(search(data)[0].terms, key=lambda term: (term.power, term.logs), default=None)
        leading_terms = [] if leading is None else [[float(leading.power), float(leading.logs)]]
        if errors == "relative" and example["name"] in _RELATIVE_DIFFERS:
            assert leading_terms != example["extrap"]["terms"], "the exception is no longer needed"
        else:
            assert leading_terms == example["extrap"]["terms"]


def test_its_coefficients_are_extraps_when_residuals_are_weighed_equal() -> None:
    example = next(e for e in _RECORD["examples"] if e["name"].endswith("one_parameter_3.txt"))
    fit = pmnf(_study(example), "y", errors="absolute")
    assert fit is not None
    assert example["extrap"]["function"] == "-1.2988175595135387 + 0.2018255805983842 * p^(2)"
    assert [e.value for e in fit.parameters.values()] == pytest.approx([-1.2988175595135387, 0.2018255805983842])


def test_its_closed_leave_one_out_error_equals_leaving_out() -> None:
    data = sample(simulated({"y": lambda n: 3 + 2 * n**1.5}, seed=4), "y")
    assert data is not None
    for hypothesis in search(data)[1]:
        slow = cross_validation_error(data, hypothesis.basis, nonnegative=False)
        assert slow == pytest.approx(hypothesis.cv_error)


def test_it_finds_a_falling_and_a_growing_part() -> None:
    fit = pmnf(simulated({"elapsed_s": lambda n: 2 + 100 / n + 3 * n}, noise=0.0), "elapsed_s")
    assert fit is not None
    assert {n: e.value for n, e in fit.parameters.items()} == pytest.approx({"constant": 2, "N": 3, "N^-1": 100})
    assert fit.best_size is not None
    assert fit.best_size.value == pytest.approx((100 / 3) ** 0.5, rel=0.02)


def test_it_models_packets_as_well_as_times() -> None:
    fit = pmnf(simulated({"packets": lambda n: 900 * n**2 + 50_000}, noise=0.02), "packets")
    assert fit is not None
    assert any("N^2" in name for name in fit.parameters)
    assert fit.best_size is None


def test_it_prefers_a_constant_for_data_without_a_trend() -> None:
    repeated = [pmnf(simulated({"y": lambda n: 5.0}, seed=s), "y", resamples=2) for s in range(30)]
    single = [pmnf(simulated({"y": lambda n: 5.0}, repetitions=1, seed=s), "y", resamples=2) for s in range(30)]
    assert sum(f is not None and len(f.coefficients) > 1 for f in repeated) <= 2
    assert sum(f is not None and len(f.coefficients) > 1 for f in single) <= 5


def test_its_bands_cover_the_truth_when_the_terms_are_right() -> None:
    covered = 0
    for seed in range(40):
        fit = pmnf(simulated({"y": lambda n: 10 + 4 * np.log2(n)}, noise=0.03, seed=seed), "y", resamples=300)
        assert fit is not None
        (prediction,) = fit.predict([7.0])
        assert prediction.interval is not None
        covered += holds(prediction.interval, 10 + 4 * np.log2(7))
    assert covered >= 33


def test_it_searches_small_fractions_only_and_no_logarithm_of_a_falling_power() -> None:
    assert len(terms()) == len(set(terms())) == 64
    assert all(abs(t.power) <= 3 and t.power.denominator <= 5 for t in terms())
    assert not any(t.power < 0 and t.logs for t in terms())
    assert Fraction(-1) in {t.power for t in terms()}


def test_fewer_than_four_sizes_give_no_model() -> None:
    assert pmnf(simulated({"y": lambda n: n}, hosts=(2, 4, 6)), "y") is None


def test_its_band_never_falls_below_zero() -> None:
    study = simulated({"elapsed_s": lambda n: 14.0 - n}, noise=0.15, repetitions=3)
    fit = pmnf(study, "elapsed_s")
    assert fit is not None
    assert fit.drawn([14.2]).min() < 0, "the line of some draws crosses zero"
    (beyond,) = fit.predict([14.2])
    assert beyond.interval is not None
    assert beyond.interval.low is not None
    assert beyond.interval.low > 0
