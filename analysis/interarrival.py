"""Inter-arrival times of one scope (METRICS.md section 4)."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

Gaps = npt.NDArray[np.int64]

QUANTILES: Final[dict[str, float]] = {
    "interarrival_median_s": 0.5,
    "interarrival_p95_s": 0.95,
    "interarrival_p99_s": 0.99,
}


def sorted_quantile(values: Gaps, share: float) -> float:
    """Quantile of ascending ``values``: Hyndman-Fan type 7. Raises IndexError when there are none."""
    place = (len(values) - 1) * share
    low = math.floor(place)
    below = float(values[low])
    return below if place == low else below + (place - low) * (float(values[low + 1]) - below)


def moments(ordered: Gaps, missing_reason: str | None) -> tuple[dict[str, float], dict[str, str]]:
    """(metrics, not_available) from the ascending gaps in ns; ``missing_reason`` says why there are none to speak of."""
    ids = ("interarrival_mean_s", *QUANTILES, "interarrival_cv")
    if missing_reason is not None:
        return {}, dict.fromkeys(ids, missing_reason)
    metrics = {"interarrival_mean_s": int(ordered.sum()) / len(ordered) / 1e9}
    metrics |= {identifier: sorted_quantile(ordered, share) / 1e9 for identifier, share in QUANTILES.items()}
    metrics["interarrival_cv"] = float(ordered.std()) / 1e9 / metrics["interarrival_mean_s"]
    return metrics, {}
