"""Data without any scaling in them give no finding about scaling."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from analysis.conclusions import find
from analysis.scaling import Point, Study
from tests.analysis.scaling.studies import HOSTS
from tests.words import plain

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


@pytest.mark.parametrize("repetitions", [3, 5, 10])
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
    assert sum(bool(r.group("scaling")) for r in reports) <= 5
    assert sum(r.verdict.verdict != "unclear" for r in reports) <= 5


def test_single_own_trials_are_too_few_to_tell_whatever_they_show() -> None:
    points = [Point({"hosts": n}, {"elapsed_s": [100.0 / n], "packets": [10.0**n]}) for n in HOSTS]
    report = find(Study(points))
    assert report.group("scaling") == ()
    assert report.verdict.verdict == "unclear"
    assert plain(report.verdict.sentence) == (
        "Too few repetitions to tell where scaling stops: the shortest time so far is 8.333 s at 12 hosts."
    )
    assert "few_repetitions" in {f.rule for f in report.findings}


def test_no_clear_change_comes_with_what_could_have_been_seen() -> None:
    report = find(_null(lambda rng, n: 1 + 0.05 * rng.standard_normal(n), 0, 5))
    assert report.verdict.sentence.startswith(
        "No clear change of elapsed time from 2 to 12 hosts. Differences below about"
    )
