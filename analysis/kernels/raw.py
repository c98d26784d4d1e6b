"""Reading numbers from bytes. Offsets are checked by the caller; unsigned indices spare the test for negative ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.kernels import jit

Buffer = npt.NDArray[np.uint8]

_1, _2, _3, _4 = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)


@jit
def signed(value: Any) -> int:
    """Any number as a 64-bit signed integer: numba makes a float of signed and unsigned 64-bit operands together."""
    return np.int64(value)  # type: ignore[return-value]


@jit
def u8(data: Buffer, offset: int) -> int:
    return signed(data[np.uint64(offset)])


@jit
def u16(data: Buffer, offset: int) -> int:
    """Network byte order."""
    i = np.uint64(offset)
    return (signed(data[i]) << 8) | signed(data[i + _1])


@jit
def u32(data: Buffer, offset: int) -> int:
    """Network byte order."""
    i = np.uint64(offset)
    return (signed(data[i]) << 24) | (signed(data[i + _1]) << 16) | (signed(data[i + _2]) << 8) | signed(data[i + _3])


@jit
def u64(data: Buffer, offset: int) -> np.uint64:
    """Network byte order."""
    return (np.uint64(u32(data, offset)) << np.uint64(32)) | np.uint64(u32(data, offset + 4))


@jit
def u32_little(data: Buffer, offset: int) -> int:
    i = np.uint64(offset)
    return signed(data[i]) | (signed(data[i + _1]) << 8) | (signed(data[i + _2]) << 16) | (signed(data[i + _3]) << 24)


@jit
def u32_file(data: Buffer, offset: int, big_endian: bool) -> int:
    """In the byte order of the machine that wrote the file."""
    return u32(data, offset) if big_endian else u32_little(data, offset)
