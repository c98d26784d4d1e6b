"""The columns of one table while they are filled, possibly from several buffers of the file."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from analysis.kernels.decode import Columns
from analysis.packets import COLUMNS

_DTYPES: Final = Columns(offset=np.int64, link=np.int64, **COLUMNS)


class Block:
    """Room for ``capacity`` packets. Framing fills lengths and stamps, decoding the other columns."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._columns = Columns(*(np.empty(capacity, dtype) for dtype in _DTYPES))

    def rows(self, first: int, last: int) -> Columns:
        """Return all columns of rows ``first`` to ``last``."""
        rows = slice(first, last)
        return Columns(*(column[rows] for column in self._columns))

    def framing_columns(self, first: int) -> tuple[npt.NDArray[Any], ...]:
        """Return the columns that a framing kernel writes, from row ``first`` on."""
        columns = self._columns
        written = columns.time_ns, columns.orig_len, columns.cap_len, columns.offset, columns.link
        return tuple(column[first:] for column in written)

    def links(self, first: int, last: int) -> npt.NDArray[np.int64]:
        """Return the link types of rows ``first`` to ``last``."""
        links: npt.NDArray[np.int64] = self._columns.link[first:last]
        return links

    def columns(self, rows: int) -> dict[str, Any]:
        """Return the columns of a PacketTable for the first ``rows`` packets."""
        return dict(zip(Columns._fields[2:], self.rows(0, rows)[2:], strict=True))
