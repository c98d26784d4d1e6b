"""Reading numbers from memory by address.

Arrays handed from kernel to kernel cost atomic reference counts; addresses cost nothing, and one load with a byte swap
replaces four loads of bytes. The caller keeps the memory alive and stays below ``end``, the address behind the last byte that
may be read; with NUMBA_BOUNDSCHECK=1 every read is checked against it. Records of an array by address let a kernel hand one address
instead of an array to many small functions: for the lists of the TCP pass reference counts were most of the time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import from_dtype, types
from numba.core import config
from numba.extending import intrinsic

from analysis.kernels import jit


@jit
def signed(value: Any) -> int:
    """Any number as a 64-bit signed integer: numba makes a float of signed and unsigned 64-bit operands together."""
    return np.int64(value)  # type: ignore[return-value]


def _reader(bits: int, swapped: bool) -> Any:
    """A function for kernels: (address, end) -> the unsigned number of ``bits`` there; 64 bits as uint64, else as int64."""
    size = bits // 8

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, end = arguments
        if getattr(config, "BOUNDSCHECK", None):
            behind = builder.add(address, ir.Constant(ir.IntType(64), size))
            with builder.if_then(builder.icmp_unsigned(">", behind, end), likely=False):
                context.call_conv.return_user_exc(builder, IndexError, ("read behind the captured bytes",))
        number = ir.IntType(bits)
        value = builder.load(builder.inttoptr(address, number.as_pointer()), align=1)
        if swapped:
            value = builder.bswap(value)
        return value if bits == 64 else builder.zext(value, ir.IntType(64))

    def typed(typing_context: Any, address: Any, end: Any) -> Any:
        result = types.uint64 if bits == 64 else types.int64
        return result(types.int64, types.int64), generate

    return intrinsic(typed)


u8 = _reader(8, swapped=False)
u16 = _reader(16, swapped=True)
"""Network byte order, as the next two."""
u32 = _reader(32, swapped=True)
u64 = _reader(64, swapped=True)
u32_little = _reader(32, swapped=False)


@jit
def u32_file(address: int, end: int, big_endian: bool) -> int:
    """In the byte order of the machine that wrote the file."""
    if big_endian:
        return u32(address, end)  # type: ignore[no-any-return]
    return u32_little(address, end)  # type: ignore[no-any-return]


def record_at(dtype: Any) -> Any:
    """A function for kernels: ``(address, length, index)`` -> the record of ``dtype`` at that index, writable in place."""
    record = from_dtype(dtype)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, length, index = arguments
        if getattr(config, "BOUNDSCHECK", None):
            with builder.if_then(builder.icmp_unsigned(">=", index, length), likely=False):
                context.call_conv.return_user_exc(builder, IndexError, ("record index out of bounds",))
        offset = builder.mul(index, ir.Constant(ir.IntType(64), dtype.itemsize))
        return builder.inttoptr(builder.add(address, offset), context.get_value_type(record))

    def typed(typing_context: Any, address: Any, length: Any, index: Any) -> Any:
        return record(types.int64, types.int64, types.int64), generate

    return intrinsic(typed)
