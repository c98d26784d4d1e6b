"""How packets per bin go together with those of later bins, for all lags at once."""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

from analysis.kernels import transforms

Counts = npt.NDArray[np.int64] | npt.NDArray[np.int32]
Values = npt.NDArray[np.float64]


def autocorrelation(counts: Counts) -> Values:
    """r(k) of packets per bin for k = 0 ... n/4 (biased estimator), by fast Fourier transform (Wiener-Khinchin).

    Single precision: r is good to 1e-5, far below any lag's standard error.
    """
    n = len(counts)
    lags = n // 4 + 1
    half = 1 << max((n + lags - 1).bit_length() - 1, 2)  # zeros behind the data keep the lags from wrapping around
    rows, columns, *angles = _angles(half)
    across, down = (rows, columns), (columns, rows)
    centred = (counts - counts.mean()).astype(np.float32)
    real, imaginary = np.zeros(half, np.float32), np.zeros(half, np.float32)
    real[: -(-n // 2)], imaginary[: n // 2] = centred[::2], centred[1::2]
    out, out_i = np.empty(half, np.float32), np.empty(half, np.float32)
    transforms.transform(
        real.reshape(across), imaginary.reshape(across), out.reshape(down), out_i.reshape(down), *angles[:3]
    )
    transforms.power(out, out_i, *angles[3])
    # back, with real and imaginary parts exchanged before and after
    transforms.transform(
        out_i.reshape(across), out.reshape(across), imaginary.reshape(down), real.reshape(down), *angles[:3]
    )
    r = np.empty(lags)
    r[::2], r[1::2] = real[: -(-lags // 2)], imaginary[: lags // 2]
    return r / r[0] if r[0] > 0 else np.zeros(lags)


@functools.lru_cache(maxsize=2)
def _angles(count: int) -> tuple[int, int, *tuple[npt.NDArray[np.float32], ...]]:
    """(R, C, and what ``transforms.transform`` and ``power`` need of sines) for ``count`` = R C complex numbers."""
    rows = 1 << (count.bit_length() - 1) // 2
    columns = count // rows
    places = np.multiply.outer(np.arange(rows), np.arange(columns))
    fractions = (
        np.arange(rows // 2) / rows,
        np.arange(columns // 2) / columns,
        places / count,
        np.arange(count // 2 + 1) / (2 * count),
    )
    sines = (np.stack([np.cos(2 * np.pi * part), -np.sin(2 * np.pi * part)]).astype(np.float32) for part in fractions)
    return rows, columns, *sines
