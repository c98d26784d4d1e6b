"""How packets per bin correlate with those of later bins, for all lags at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import fft

Counts = npt.NDArray[np.int64] | npt.NDArray[np.int32]
Values = npt.NDArray[np.float64]


def autocorrelation(counts: Counts) -> Values:
    """Return r(k) of packets per bin for k = 0 ... n/4 (biased estimator), by the Wiener-Khinchin theorem."""
    lags = len(counts) // 4 + 1
    size = fft.next_fast_len(len(counts) + lags, real=True)  # zeros behind the data keep the lags from wrapping around
    spectrum = fft.rfft(counts - counts.mean(), size)
    r: Values = fft.irfft(spectrum.real**2 + spectrum.imag**2, size)[:lags]
    return r / r[0] if r[0] > 0 else np.zeros(lags)
