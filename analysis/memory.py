"""Memory for tables of a fixed capacity."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import numpy.typing as npt


def reserved(shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return zeros whose pages take memory only if they are used.

    ``np.zeros`` fills recycled memory, which takes longer than the analysis if tables stay nearly empty.
    """
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.ndarray(shape, dtype, mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
