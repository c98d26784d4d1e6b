"""Inter-arrival times of one scope."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from analysis.kernels import gaps as kernel
from analysis.traffic import fits

Gaps = npt.NDArray[np.int64]

QUANTILES: Final[dict[str, float]] = {
    "interarrival_median_s": 0.5,
    "interarrival_p95_s": 0.95,
    "interarrival_p99_s": 0.99,
}
MOST_GAPS: Final = 1 << 20
"""Gaps stored individually; longer captures group them by 0.1 %, and ``exact`` is False."""
_CURVE_POINTS: Final = 200


class GapStore:
    """All gaps d_i of a scope: grouped, and individually up to ``most_gaps``."""

    def __init__(self, most_gaps: int = MOST_GAPS) -> None:
        self._most = most_gaps
        self._kept: list[Gaps] = []
        self._histogram = np.zeros(kernel.BINS, np.int64)
        self._signs = np.zeros(3, np.int64)
        self._square_sum = np.zeros(1)
        self.count = 0

    def add(self, gaps: Gaps) -> None:
        """Add gaps in ns, in file order."""
        self.count += len(gaps)
        kernel.add_gaps(gaps, self._histogram, self._signs, self._square_sum)
        if not self.exact:
            self._kept.clear()
        elif len(gaps):
            self._kept.append(gaps.copy())  # a view would keep the array of both scopes

    @property
    def exact(self) -> bool:
        """True if quantiles come from individual gaps, not from groups."""
        return self.count <= self._most

    @property
    def zero_share(self) -> float:
        return int(self._signs[kernel.ZERO]) / self.count

    @property
    def mean_square(self) -> float:
        return float(self._square_sum[0]) / self.count

    def in_order(self) -> Gaps:
        """Return all gaps, ascending; requires ``exact``."""
        gaps = np.concatenate(self._kept)
        gaps.sort()
        return gaps

    def grouped(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """Return mean in ns and count of each group of positive gaps, ascending."""
        bins = np.flatnonzero(self._histogram != 0)
        low = np.ceil(kernel.bin_edges(bins))
        return (low + np.ceil(kernel.bin_edges(bins + 1)) - 1) / 2, self._histogram[bins]

    def below_positive(self) -> int:
        """Return the number of zero and negative gaps."""
        return int(self._signs[kernel.ZERO] + self._signs[kernel.NEGATIVE])


def sorted_quantile(values: npt.NDArray[Any], share: float) -> float:
    """Return a quantile of ascending values (Hyndman-Fan type 7)."""
    position = (len(values) - 1) * share
    low = math.floor(position)
    below = float(values[low])
    return below if position == low else below + (position - low) * (float(values[low + 1]) - below)


def absent(reason: str) -> dict[str, str]:
    """Return all metrics of inter-arrival times as absent for ``reason``."""
    ids = ("interarrival_mean_s", *QUANTILES, "interarrival_cv", "iteration_period_s", "hurst")
    return dict.fromkeys(ids, reason)


class Interarrival:
    """Quantiles, distribution and fits of one scope's gaps; ``duration_ns`` is T > 0."""

    def __init__(self, gaps: GapStore, duration_ns: int, bootstrap: int = 0) -> None:
        """Compute ``metrics``, ``not_available`` and ``details``."""
        self._gaps = gaps
        self._order = gaps.in_order() if gaps.exact else None
        self._grouped = gaps.grouped()
        mean_ns = duration_ns / gaps.count
        variance = max(gaps.mean_square - mean_ns**2, 0.0)
        self.metrics: dict[str, float] = {
            "interarrival_mean_s": mean_ns / 1e9,
            **{identifier: self._quantile(share) / 1e9 for identifier, share in QUANTILES.items()},
            "interarrival_cv": math.sqrt(variance) / mean_ns,
        }
        self.not_available: dict[str, str] = {}
        self.details: dict[str, Any] = {"exact": gaps.exact, "zero_share": gaps.zero_share, "ccdf": self._ccdf()}
        self.details["fits"] = self._fits(bootstrap)

    def _quantile(self, share: float) -> float:
        if self._order is not None:
            return sorted_quantile(self._order, share)
        values, counts = self._grouped
        position = (self._gaps.count - 1) * share - self._gaps.below_positive()
        if position < 0:
            return 0.0
        return float(values[np.searchsorted(np.cumsum(counts), math.floor(position), side="right")])

    def _ccdf(self) -> dict[str, list[float]]:
        """Return P(D > x) at up to 200 groups, evenly spaced."""
        values, counts = self._grouped
        if not len(values):
            return {"gap_s": [], "share_longer": []}
        longer = 1 - (np.cumsum(counts) + self._gaps.below_positive()) / self._gaps.count
        chosen = np.linspace(0, len(values) - 1, min(_CURVE_POINTS, len(values))).round().astype(np.int64)
        return {"gap_s": (values[chosen] / 1e9).tolist(), "share_longer": np.maximum(longer[chosen], 0).tolist()}

    def _fits(self, bootstrap: int) -> list[dict[str, Any]]:
        """Fit the positive gaps; others are below the resolution or clock steps."""
        values, counts = self._grouped
        try:
            sample = fits.Sample.of(values / 1e9, counts.astype(np.float64))
        except ValueError as error:
            self.not_available["interarrival_fit"] = str(error)
            return []
        rows = fits.fit_all(sample)
        if bootstrap and self._order is not None:
            p_values = fits.bootstrap_p_values(self._order[self._gaps.below_positive() :] / 1e9, bootstrap)
            for row in rows:
                row["p_value"] = p_values[row["distribution"]]
        return rows
