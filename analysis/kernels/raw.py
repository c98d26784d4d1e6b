"""Reading numbers from bytes. Offsets are checked by the caller; unsigned indices spare the test for negative ones."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from analysis.kernels import jit

Buffer = npt.NDArray[np.uint8]

_1, _2, _3, _4 = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)


@jit
def u8(data: Buffer, offset: int) -> int:
    return np.int64(data[np.uint64(offset)])


@jit
def u16(data: Buffer, offset: int) -> int:
    """Network byte order."""
    i = np.uint64(offset)
    return (np.int64(data[i]) << 8) | np.int64(data[i + _1])


@jit
def u32(data: Buffer, offset: int) -> int:
    """Network byte order."""
    i = np.uint64(offset)
    return (
        (np.int64(data[i]) << 24)
        | (np.int64(data[i + _1]) << 16)
        | (np.int64(data[i + _2]) << 8)
        | np.int64(data[i + _3])
    )


@jit
def u64(data: Buffer, offset: int) -> np.uint64:
    """Network byte order."""
    return (np.uint64(u32(data, offset)) << np.uint64(32)) | np.uint64(u32(data, offset + 4))


@jit
def u32_little(data: Buffer, offset: int) -> int:
    i = np.uint64(offset)
    return (
        np.int64(data[i])
        | (np.int64(data[i + _1]) << 8)
        | (np.int64(data[i + _2]) << 16)
        | (np.int64(data[i + _3]) << 24)
    )


@jit
def u32_file(data: Buffer, offset: int, big_endian: bool) -> int:
    """In the byte order of the machine that wrote the file."""
    return u32(data, offset) if big_endian else u32_little(data, offset)
