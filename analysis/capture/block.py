"""The columns of one table while they are filled, from several buffers of the file if need be."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

_DTYPES: Final[dict[str, type]] = {
    "time_ns": np.int64,
    "orig_len": np.uint32,
    "cap_len": np.uint32,
    "kind": np.uint8,
    "src": np.uint32,
    "dst": np.uint32,
    "sport": np.uint16,
    "dport": np.uint16,
    "flow": np.uint32,
    "payload": np.uint32,
    "seq": np.uint32,
    "ack": np.uint32,
    "window": np.uint16,
    "tcp_flags": np.uint8,
    "wscale": np.uint8,
    "mss": np.uint16,
    "fingerprint": np.uint32,
}
_DECODED: Final = tuple(name for name in _DTYPES if name not in ("time_ns", "orig_len", "cap_len"))


class Block:
    """Room for ``capacity`` packets. Framing fills lengths and stamps, decoding the rest; unused room costs no memory."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._columns: dict[str, npt.NDArray[Any]] = {name: np.empty(capacity, d) for name, d in _DTYPES.items()}
        self._offset, self._link = np.empty(capacity, np.int64), np.empty(capacity, np.int64)

    def framing_columns(self, first: int) -> tuple[npt.NDArray[Any], ...]:
        """What a framing kernel writes, from row ``first`` on."""
        named = (self._columns[name][first:] for name in ("time_ns", "orig_len", "cap_len"))
        return (*named, self._offset[first:], self._link[first:])

    def decoding_columns(self, first: int, last: int) -> tuple[npt.NDArray[Any], ...]:
        """What the decoding kernel reads and writes of rows ``first`` to ``last``, in its order."""
        names = ("cap_len", "orig_len", *_DECODED)
        rows = slice(first, last)
        return (self._offset[rows], self._link[rows], *(self._columns[name][rows] for name in names))

    def reading_columns(self, first: int) -> tuple[Any, ...]:
        """What the kernel that does both takes, from row ``first`` on: the times, ``first``, and ``decoding_columns``."""
        return (self._columns["time_ns"][first:], first, *self.decoding_columns(first, self.capacity))

    def links(self, first: int, last: int) -> npt.NDArray[np.int64]:
        """Link types of rows ``first`` to ``last``."""
        return self._link[first:last]

    def columns(self, rows: int) -> dict[str, Any]:
        """The finished columns of the first ``rows`` packets."""
        return {name: column[:rows] for name, column in self._columns.items()}
