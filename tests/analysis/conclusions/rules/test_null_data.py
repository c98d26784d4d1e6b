"""Data without any scaling in them give no finding about scaling."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from analysis.conclusions.rules.report import find
from analysis.scaling import Point, Study
from tests.analysis.scaling.studies import HOSTS

_LEVELS = {
    "elapsed_s": 100.0,
    "cpu_mean_rank_s": 60.0,
    "packets": 2e5,
    "retransmitted_segments": 30.0,
    "throughput_Bps": 1e6,
    "packet_intensity_pps": 2e3,
}
Noise = Callable[[np.random.Generator, int], np.ndarray]


def _null(noise: Noise, seed: int, repetitions: int) -> Study:
    rng = np.random.default_rng(seed)
    return Study(
        [
            Point(
                {"hosts": n},
                {metric: (level * noise(rng, repetitions)).tolist() for metric, level in _LEVELS.items()},
                ranks=2 * n,
            )
            for n in HOSTS
        ]
    )


@pytest.mark.parametrize("repetitions", [3, 10])
@pytest.mark.parametrize(
    "noise",
    [
        pytest.param(lambda rng, n: 1 + 0.05 * rng.standard_normal(n), id="normal"),
        pytest.param(lambda rng, n: rng.lognormal(0, 0.3, n), id="skewed"),
        pytest.param(lambda rng, n: 1 + 0.05 * np.abs(rng.standard_t(2, n)), id="heavy tail"),
    ],
)
def test_the_same_distribution_everywhere_gives_no_scaling_finding(noise: Noise, repetitions: int) -> None:
    reports = [find(_null(noise, seed, repetitions)) for seed in range(100)]
    assert sum(any(f.group == "scaling" for f in r.findings) for r in reports) <= 5
    assert sum(r.verdict.verdict == "scales" or r.verdict.best_size not in (None, 2) for r in reports) <= 5


def test_single_own_trials_are_too_few_to_report_whatever_they_show() -> None:
    points = [Point({"hosts": n}, {"elapsed_s": [100.0 / n], "packets": [10.0**n]}) for n in HOSTS]
    report = find(Study(points))
    assert report.findings == ()
