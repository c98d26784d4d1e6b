"""Blocks of bzip2, which begin at any bit: where they are, and their bits moved to whole bytes."""

from __future__ import annotations

from typing import Any

from analysis.kernels import jit
from analysis.kernels.raw import signed

_MARK_BITS = 48


@jit
def find_marks(data: Any, first: int, end: int, likely: Any, block: int, last: int, places: Any, kinds: Any) -> int:
    """Write the bits at which ``block`` and ``last``, marks of 48 bits, begin to ``places``, and which it is (1: last) to ``kinds``.

    Looked at are marks that end in the bytes ``first`` to ``end`` of ``data``; ``likely`` (65536,) tells of two bytes whether they
    can be the fifth and sixth from behind, at any bit. Returns how many were found.
    """
    found, window = 0, 0
    for i in range(max(first - 6, 0), end):
        window = (window << 8 | signed(data[i])) & 0xFFFFFFFFFFFFFF
        if i < first or i < 5 or not likely[window >> 8 & 0xFFFF]:
            continue
        for shift in range(8):
            mark = window >> shift & 0xFFFFFFFFFFFF
            place = 8 * (i + 1) - shift - _MARK_BITS
            if mark in (block, last) and place >= 0 and found < len(places):
                places[found] = place
                kinds[found] = mark == last
                found += 1
    return found


@jit
def move_bits(data: Any, first: int, out: Any, at: int, count: int) -> None:
    """Copy ``count`` bytes that begin at the bit ``first`` of ``data`` to ``out`` from ``at`` on; behind ``data`` there are zeros."""
    byte, shift = first >> 3, first & 7
    for k in range(count):
        both = signed(data[byte + k]) << 8 if byte + k < len(data) else 0
        both |= signed(data[byte + k + 1]) if byte + k + 1 < len(data) else 0
        out[at + k] = both >> (8 - shift) & 0xFF


@jit
def write_bits(out: Any, first: int, value: int, count: int) -> None:
    """Write the lower ``count`` bits of ``value`` from the bit ``first`` of ``out`` on."""
    for k in range(count):
        place = first + k
        bit = value >> (count - 1 - k) & 1
        out[place >> 3] = signed(out[place >> 3]) & ~(0x80 >> (place & 7)) | (0x80 >> (place & 7)) * bit
