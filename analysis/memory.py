"""Room for tables of a fixed capacity."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import numpy.typing as npt


def reserved(shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return zeros whose pages take memory only once they are touched.

    ``np.zeros`` fills memory that was used before, which for tables that stay nearly empty takes longer than the analysis.
    """
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.ndarray(shape, dtype, mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
