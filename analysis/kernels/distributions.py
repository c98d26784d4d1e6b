"""Distribution functions that scipy has, without the third of a second and the 13 MB that importing it takes.

Sources: Abramowitz and Stegun 6.5.29 (series) and 6.5.31 (continued fraction, evaluated by Lentz's method), 26.2.29.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from analysis.kernels import jit

_ROUNDING = 3e-16
_SMALLEST = 1e-300
_MOST_TERMS = 100_000

Values = npt.NDArray[np.float64]


@jit
def gamma_cdf(x: Values, shape: float, scale: float, out: Values) -> None:
    """Regularised lower incomplete gamma function P(shape, x / scale); to 1e-12 for shapes up to 1000."""
    log_gamma = math.lgamma(shape)
    for i in range(len(x)):
        value = x[i] / scale
        if value <= 0:
            out[i] = 0.0
            continue
        factor = math.exp(shape * math.log(value) - value - log_gamma)
        if value < shape + 1:
            out[i] = min(factor * _series(shape, value), 1.0)
        else:
            out[i] = max(1 - factor * _fraction(shape, value), 0.0)


@jit
def _series(shape: float, value: float) -> float:
    term = total = 1 / shape
    for k in range(1, _MOST_TERMS):
        term *= value / (shape + k)
        total += term
        if term < total * _ROUNDING:
            break
    return total


@jit
def _fraction(shape: float, value: float) -> float:
    b = value + 1 - shape
    c = 1 / _SMALLEST
    d = 1 / b
    product = d
    for k in range(1, _MOST_TERMS):
        a = -k * (k - shape)
        b += 2
        d = a * d + b
        d = 1 / (d if abs(d) > _SMALLEST else _SMALLEST)
        c = b + a / c
        c = c if abs(c) > _SMALLEST else _SMALLEST
        change = c * d
        product *= change
        if abs(change - 1) < _ROUNDING:
            break
    return product


@jit
def normal_cdf(x: Values, mean: float, deviation: float, out: Values) -> None:
    for i in range(len(x)):
        out[i] = 0.5 * math.erfc((mean - x[i]) / (deviation * math.sqrt(2.0)))
