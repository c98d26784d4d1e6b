"""Records of an array by address, so that a kernel can hand many small functions one address instead of an array.

numba counts references of arrays atomically, and cannot drop those counts in functions with several exits; for the lists of the
TCP pass that was most of the time. The caller keeps the array alive. With NUMBA_BOUNDSCHECK=1 every index is checked, as
numba does for arrays.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import from_dtype, types
from numba.core import config
from numba.extending import intrinsic


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
