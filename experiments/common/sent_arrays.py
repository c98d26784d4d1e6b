"""Arrays of numbers in PostgreSQL's binary and text formats. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt

_HEAD_BYTES: Final = 20
_ELEMENT_BYTES: Final = 12
_LENGTH_BYTES: Final = 4
"""Of ``array_send`` of float8: header, one element, and the element's length field."""


def numbers_of(sent: bytes, count: int) -> npt.NDArray[np.float64]:
    """Return the elements of ``count`` equally long float8 arrays, one per row."""
    elements = np.frombuffer(sent, np.uint8).reshape(count, -1)[:, _HEAD_BYTES:].reshape(count, -1, _ELEMENT_BYTES)
    return np.ascontiguousarray(elements[:, :, _LENGTH_BYTES:]).view(">f8")[:, :, 0].astype(np.float64)


def keys_text(keys: Iterable[int]) -> str:
    """Return keys as a bigint array in text: psycopg quotes each item of a list."""
    return f"{{{','.join(map(str, keys))}}}"
