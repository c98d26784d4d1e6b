"""Inter-arrival times of processes whose truth is known."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import scipy.stats

import analysis
from analysis.traffic import dispersion, fits
from analysis.traffic.dispersion import autocorrelation
from analysis.traffic.interarrival import GapStore, Interarrival
from tests.analysis import capture_files as files
from tests.analysis.capture_files import Frame
from tests.analysis.frames import ethernet, ipv4, tcp

SECOND = 10**9
DATA = ethernet(ipv4(tcp(payload=b"x" * 100)))


def analysed(tmp_path: Path, times_ns: npt.NDArray[np.int64], *, bootstrap: int = 0) -> analysis.CaptureAnalysis:
    path = tmp_path / "generated.pcap"
    path.write_bytes(files.pcap([Frame.whole(10**15 + int(time), DATA) for time in times_ns]))
    return analysis.analyse(path, bootstrap=bootstrap)


def poisson(rate: float, count: int, seed: int = 3) -> npt.NDArray[np.int64]:
    return np.cumsum(np.random.default_rng(seed).exponential(SECOND / rate, count)).astype(np.int64)


def barriers(period_ns: int, count: int, per_burst: int = 40) -> npt.NDArray[np.int64]:
    """Bulk-synchronous traffic: a burst of packets at every barrier, silence between."""
    within = np.arange(per_burst) * 5_000
    return (np.arange(count)[:, None] * period_ns + within).ravel()


def test_a_poisson_process_has_variation_and_dispersion_one(tmp_path: Path) -> None:
    result = analysed(tmp_path, poisson(5000, 20_000))
    assert result.metrics["interarrival_cv"] == pytest.approx(1, abs=0.03)
    assert result.interarrival["idc"]["idc"] == pytest.approx([1] * 5, abs=0.5)
    assert result.interarrival["idc"]["window_s"] == [0.001, 0.003, 0.01, 0.03, 0.1]
    assert result.interarrival["idc"]["idc"][:3] == pytest.approx([1, 1, 1], abs=0.1)
    assert "iteration_period_s" in result.not_available
    assert result.metrics["hurst"] == pytest.approx(0.5, abs=0.1)


def test_a_barrier_pattern_has_a_period_and_no_hurst_exponent(tmp_path: Path) -> None:
    result = analysed(tmp_path, barriers(7_300_000, 400))
    assert result.metrics["iteration_period_s"] == pytest.approx(0.0073, rel=0.01)
    assert "period" in result.not_available["hurst"]
    assert result.metrics["interarrival_cv"] > 4


def test_a_period_survives_jitter_and_background_traffic(tmp_path: Path) -> None:
    noise = np.random.default_rng(5)
    bursts = barriers(20_000_000, 300) + np.repeat(noise.normal(0, 300_000, 300), 40).astype(np.int64)
    result = analysed(tmp_path, np.sort(np.concatenate([bursts, poisson(300, 1800)])))
    assert result.metrics["iteration_period_s"] == pytest.approx(0.02, rel=0.02)


def test_the_dispersion_over_a_whole_period_vanishes() -> None:
    counts = np.tile([40] + [0] * 9, 600)
    idc = dispersion.index_of_dispersion(counts, 1_000_000)
    at = dict(zip(idc["window_s"], idc["idc"], strict=True))
    assert at[0.01] == 0
    assert at[0.001] > 10


def test_wider_windows_are_made_of_narrower_ones_without_a_change() -> None:
    counts = np.random.default_rng(3).poisson(2, 123_457)
    idc = dispersion.index_of_dispersion(counts, 100_000)
    assert idc["window_s"] == [0.001, 0.003, 0.01, 0.03, 0.1, 0.3]
    for window_s, value in zip(idc["window_s"], idc["idc"], strict=True):
        width = round(window_s / 1e-4)
        numbers = counts[: len(counts) // width * width].reshape(-1, width).sum(axis=1)
        assert value == pytest.approx(float(numbers.var(ddof=1)) / float(numbers.mean()), rel=1e-13)


@pytest.mark.parametrize("bins", [64, 65, 127, 400, 1639])
def test_the_autocorrelation_is_that_of_the_definition(bins: int) -> None:
    counts = np.random.default_rng(2).integers(0, 50, bins)
    centred = counts - counts.mean()
    expected = [float(centred[: bins - k] @ centred[k:] / (centred @ centred)) for k in range(bins // 4 + 1)]
    assert autocorrelation(counts) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("truth", [0.5, 0.7, 0.85])
def test_the_hurst_exponent_of_fractional_gaussian_noise_is_found(truth: float) -> None:
    """Noise of exactly that exponent, by circulant embedding (Davies and Harte 1987)."""
    n, noise = 1 << 15, np.random.default_rng(8)
    lags = np.arange(n + 1)
    covariance = 0.5 * ((lags + 1.0) ** (2 * truth) - 2.0 * lags ** (2 * truth) + abs(lags - 1.0) ** (2 * truth))
    eigenvalues = np.fft.fft(np.concatenate([covariance, covariance[-2:0:-1]])).real
    normal = noise.normal(size=2 * n) + 1j * noise.normal(size=2 * n)
    gaussian = np.fft.fft(normal * np.sqrt(np.maximum(eigenvalues, 0) / (2 * n))).real[:n]
    estimate, _ = dispersion.hurst((1000 + 100 * gaussian).astype(np.int64))
    assert estimate is not None
    assert estimate["estimate"] == pytest.approx(truth, abs=0.08)
    assert estimate["low"] < estimate["estimate"] < estimate["high"]


FAMILIES = {
    "exponential": scipy.stats.expon(scale=2e-4),
    "weibull": scipy.stats.weibull_min(0.6, scale=2e-4),
    "lognormal": scipy.stats.lognorm(1.3, scale=2e-4),
    "gamma": scipy.stats.gamma(0.4, scale=5e-4),
    "pareto": scipy.stats.pareto(1.7, scale=1e-4),
}
SCIPY = {
    "exponential": (scipy.stats.expon, lambda p: {"scale": p["mean_s"]}),
    "weibull": (scipy.stats.weibull_min, lambda p: {"c": p["shape"], "scale": p["scale_s"]}),
    "lognormal": (scipy.stats.lognorm, lambda p: {"s": p["sigma"], "scale": np.exp(p["mu"])}),
    "gamma": (scipy.stats.gamma, lambda p: {"a": p["shape"], "scale": p["scale_s"]}),
    "pareto": (scipy.stats.pareto, lambda p: {"b": p["alpha"], "scale": p["minimum_s"]}),
}


def fitted(values: npt.NDArray[np.float64]) -> dict[str, dict[str, object]]:
    ordered = np.sort(values)
    sample = fits.Sample.of(ordered, np.ones(len(ordered)))
    return {str(row["distribution"]): row for row in fits.fit_all(sample)}


@pytest.mark.parametrize("truth", FAMILIES)
def test_the_family_that_made_the_gaps_fits_best(truth: str) -> None:
    rows = fitted(FAMILIES[truth].rvs(5000, random_state=4))
    best = min(rows.values(), key=lambda row: row["aic"])
    nests_exponential = truth == "exponential" and rows["exponential"]["d_aic"] < 4
    assert best["distribution"] == truth or nests_exponential
    assert rows[truth]["ks_distance"] < 0.03


@pytest.mark.parametrize("family", FAMILIES)
def test_likelihood_and_ks_distance_are_those_of_scipy(family: str) -> None:
    values = FAMILIES["lognormal"].rvs(3000, random_state=6)
    row = fitted(values)[family]
    kind, arguments = SCIPY[family]
    frozen = kind(**arguments(row["parameters"]))
    assert row["log_likelihood"] == pytest.approx(frozen.logpdf(values).sum(), rel=1e-9)
    assert row["ks_distance"] == pytest.approx(scipy.stats.kstest(values, frozen.cdf).statistic, rel=1e-9)


@pytest.mark.parametrize("family", ["weibull", "gamma", "lognormal"])
def test_no_other_parameters_are_likelier(family: str) -> None:
    values = FAMILIES["gamma"].rvs(2000, random_state=7)
    kind, arguments = SCIPY[family]
    row = fitted(values)[family]
    parameters = dict(row["parameters"])
    for name, value in parameters.items():
        for factor in (0.999, 1.001):
            other = kind(**arguments(parameters | {name: value * factor}))
            assert other.logpdf(values).sum() < row["log_likelihood"]


def test_grouped_gaps_fit_like_the_gaps_themselves() -> None:
    gaps = (FAMILIES["weibull"].rvs(20_000, random_state=9) * SECOND).astype(np.int64) + 1
    one, other = (Interarrival(_store(gaps, most), 5 * SECOND) for most in (10**6, 10))
    assert one.details["exact"]
    assert not other.details["exact"]
    for name in ("interarrival_median_s", "interarrival_p95_s", "interarrival_p99_s"):
        assert other.metrics[name] == pytest.approx(one.metrics[name], rel=1e-3)
    for a, b in zip(one.details["fits"], other.details["fits"], strict=True):
        assert a["distribution"] == b["distribution"]
        assert b["ks_distance"] == pytest.approx(a["ks_distance"], abs=2e-3)
        assert list(b["parameters"].values()) == pytest.approx(list(a["parameters"].values()), rel=1e-3)


def _store(gaps: npt.NDArray[np.int64], most_gaps: int) -> GapStore:
    store = GapStore(most_gaps)
    for piece in np.array_split(gaps, 7):
        store.add(piece)
    return store


def test_groups_hold_every_gap_and_their_mean() -> None:
    gaps = np.concatenate([np.arange(-3, 5000), 2 ** np.arange(14, 62)]).astype(np.int64)
    store = _store(gaps, 10)
    values, counts = store.grouped()
    assert counts.sum() == (gaps > 0).sum()
    assert store.below_positive() == 4
    small = values[values < 2048]
    assert small.tolist() == list(range(1, 2048))
    samples = np.repeat(values, counts)
    assert samples == pytest.approx(np.sort(gaps[gaps > 0]), rel=1e-3)


def test_the_ccdf_is_the_share_of_longer_gaps(tmp_path: Path) -> None:
    times = poisson(1000, 3000)
    curve = analysed(tmp_path, times).interarrival["ccdf"]
    gaps = np.diff(times) / 1e9
    assert len(curve["gap_s"]) <= 200
    for gap, share in list(zip(curve["gap_s"], curve["share_longer"], strict=True))[::20]:
        assert share == pytest.approx((gaps > gap).mean(), abs=2e-3)
    assert curve["share_longer"][-1] == 0


def test_p_values_come_from_the_bootstrap_and_only_when_asked_for(tmp_path: Path) -> None:
    times = poisson(1000, 800)
    assert all("p_value" not in fit for fit in analysed(tmp_path, times).interarrival["fits"])
    p_values = {f["distribution"]: f["p_value"] for f in analysed(tmp_path, times, bootstrap=40).interarrival["fits"]}
    assert p_values["exponential"] > 0.05
    assert p_values["pareto"] == pytest.approx(1 / 41)


def test_equal_gaps_fit_no_distribution_and_say_so(tmp_path: Path) -> None:
    result = analysed(tmp_path, np.arange(500) * 1_000_000)
    assert result.interarrival["fits"] == []
    assert "different" in result.not_available["interarrival_fit"]
    assert result.metrics["interarrival_cv"] == 0


def test_ks_distance_of_groups_is_that_of_the_ties() -> None:
    values, weights = np.array([1.0, 2.0, 4.0]), np.array([3.0, 1.0, 2.0])
    sample = fits.Sample.of(values, weights)
    samples = np.repeat(values, weights.astype(int))
    cdf = functools.partial(scipy.stats.expon.cdf, scale=2)
    assert fits.ks_distance(sample, cdf) == pytest.approx(scipy.stats.kstest(samples, cdf).statistic)
