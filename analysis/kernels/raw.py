"""Numbers and records in memory, by address.

Arrays passed between kernels cost atomic reference counts, which were most of the time of the TCP pass; addresses cost nothing,
and one load with a byte swap replaces four loads of bytes. The caller owns the memory and stays below ``end``, the address after
the last readable byte; with NUMBA_BOUNDSCHECK=1 every access is checked.
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
    """Convert to int64: numba converts mixed 64-bit operands to float."""
    return np.int64(value)  # type: ignore[return-value]


def _reader(bits: int, swapped: bool) -> Any:
    """Return an intrinsic (address, end) -> unsigned number of ``bits``."""
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
"""Network byte order, like the next two."""
u32 = _reader(32, swapped=True)
u64 = _reader(64, swapped=True)
u32_little = _reader(32, swapped=False)


@jit
def u32_file(address: int, end: int, big_endian: bool) -> int:
    """Read 32 bits in the byte order of the file."""
    if big_endian:
        return u32(address, end)  # type: ignore[no-any-return]
    return u32_little(address, end)  # type: ignore[no-any-return]


def record_at(dtype: Any) -> Any:
    """Return an intrinsic (address, length, index) -> writable record of ``dtype``."""
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
