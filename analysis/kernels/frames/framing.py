"""Framing of capture files: records and blocks to offsets, lengths and times.

Sources: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from analysis.kernels import jit
from analysis.kernels.raw import signed, u32_file
from analysis.packets import NO_TIME

MORE = 0
"""The next record is not complete in the buffer."""
FULL = 1
"""The output arrays are full."""
CONTROL = 2
"""pcapng: the caller must read this block (section, interface, statistics)."""
DAMAGED = 3
"""The header of the next record is contradictory; the rest of the file is not readable."""

SECTION_HEADER, INTERFACE, PACKET, SIMPLE_PACKET, STATISTICS, ENHANCED_PACKET = 0x0A0D0D0A, 1, 2, 3, 5, 6

TICKS_TIMES, TICKS_DIVIDED, TICKS_BINARY = 0, 1, 2
NO_LINK = -1

TIME_LIMIT = 2**62 // 10**9 * 10**9
"""Stamps are limited to +-2^62 ns (146 years), so that differences never overflow; a multiple of every clock's unit."""

MOST_FRACTION_NS = 2_000_000_000
"""Some writers add two fractions without a carry, which is less than this; larger fractions are damage."""

Int64 = npt.NDArray[np.int64]
UInt32 = npt.NDArray[np.uint32]


@jit
def frame_pcap(
    data: int,
    start: int,
    end: int,
    big_endian: bool,
    ns_per_fraction: int,
    longest: int,
    link: int,
    time_ns: Int64,
    orig_len: UInt32,
    cap_len: UInt32,
    offset: Int64,
    link_type: Int64,
) -> tuple[int, int, int, int]:
    """Frame the records in bytes ``start`` to ``end`` after ``data``.

    Returns (records, end of the last one, status, number of impossible stamps).
    """
    n = odd = 0
    at = start
    limit = data + end
    while n < len(offset):
        if end - at < 16:
            return n, at, MORE, odd
        captured = u32_file(data + at + 8, limit, big_endian)
        original = u32_file(data + at + 12, limit, big_endian)
        seconds = u32_file(data + at, limit, big_endian)
        fraction = u32_file(data + at + 4, limit, big_endian) * ns_per_fraction
        if captured > longest or not (captured or original or seconds or fraction):  # room that nothing was written to
            return n, at, DAMAGED, odd
        if end - at - 16 < captured:
            return n, at, MORE, odd
        time_ns[n] = seconds * 1_000_000_000 + fraction
        odd += fraction >= MOST_FRACTION_NS
        cap_len[n] = captured
        orig_len[n] = original
        offset[n] = at + 16
        link_type[n] = link
        at += 16 + captured
        n += 1
    return n, at, FULL, odd


@jit
def ticks_to_ns(high: int, low: int, rule: int, value: int, shift_ns: int) -> int:
    """Convert a 64-bit count of ticks to ns, rounded down, limited to +-TIME_LIMIT.

    ``rule`` and ``value``: ns = ticks * value, ticks / value, or ticks * 10^9 / 2^value (if_tsresol); value < 64.
    """
    ticks = (np.uint64(high) << np.uint64(32)) | np.uint64(low)
    limit = np.uint64(TIME_LIMIT)
    if rule == TICKS_TIMES:
        ns = limit if ticks > limit // np.uint64(value) else ticks * np.uint64(value)
    elif rule == TICKS_DIVIDED:
        ns = min(ticks // np.uint64(value), limit)
    else:
        bits = np.uint64(value)
        seconds = ticks >> bits
        part = ticks & ((np.uint64(1) << bits) - np.uint64(1))
        billion = np.uint64(1_000_000_000)
        if value <= 32:
            fraction = (part * billion) >> bits
        else:  # part * 10^9 needs 94 bits: upper and lower half separately
            carry = ((part & np.uint64(0xFFFFFFFF)) * billion) >> np.uint64(32)
            fraction = ((part >> np.uint64(32)) * billion + carry) >> (bits - np.uint64(32))
        ns = limit if seconds > np.uint64(4_000_000_000) else min(seconds * billion + fraction, limit)
    return min(max(signed(ns) + shift_ns, -TIME_LIMIT), TIME_LIMIT)


@jit
def frame_pcapng(
    data: int,
    start: int,
    end: int,
    big_endian: bool,
    longest: int,
    interfaces: Int64,
    time_ns: Int64,
    orig_len: UInt32,
    cap_len: UInt32,
    offset: Int64,
    link_type: Int64,
) -> tuple[int, int, int, int]:
    """Frame the packet blocks in bytes ``start`` to ``end`` after ``data``.

    Returns (records, end of the last one, status, number of impossible stamps).
    ``interfaces`` has shape (I, 5): link type, snap length, tick rule, tick value, time offset in ns.
    """
    n = odd = 0
    at = start
    limit = data + end
    while n < len(offset):
        if end - at < 12:
            return n, at, MORE, odd
        kind = u32_file(data + at, limit, big_endian)
        if kind in (SECTION_HEADER, INTERFACE, STATISTICS):
            return n, at, CONTROL, odd
        block = u32_file(data + at + 4, limit, big_endian)
        if block < 12 or block % 4 or block > longest + 64:
            return n, at, DAMAGED, odd
        if end - at < block:
            return n, at, MORE, odd
        if u32_file(data + at + block - 4, limit, big_endian) != block:
            return n, at, DAMAGED, odd
        if kind in (ENHANCED_PACKET, PACKET):
            if block < 32:
                return n, at, DAMAGED, odd
            number = u32_file(data + at + 8, limit, big_endian)
            if kind == PACKET:  # obsolete form: 16 bits of interface, 16 bits of drop count
                number = number >> 16 if big_endian else number & 0xFFFF
            captured = u32_file(data + at + 20, limit, big_endian)
            if captured > block - 32:
                return n, at, DAMAGED, odd
            orig_len[n] = u32_file(data + at + 24, limit, big_endian)
            offset[n] = at + 28
            if number < len(interfaces):
                link_type[n] = interfaces[number, 0]
                high = u32_file(data + at + 12, limit, big_endian)
                low = u32_file(data + at + 16, limit, big_endian)
                time_ns[n] = ticks_to_ns(
                    high,
                    low,
                    signed(interfaces[number, 2]),
                    signed(interfaces[number, 3]),
                    signed(interfaces[number, 4]),
                )
                odd += abs(time_ns[n]) == TIME_LIMIT
            else:
                link_type[n] = NO_LINK
                time_ns[n] = NO_TIME
            cap_len[n] = captured
            n += 1
        elif kind == SIMPLE_PACKET:
            if block < 16:
                return n, at, DAMAGED, odd
            original = u32_file(data + at + 8, limit, big_endian)
            captured = min(original, block - 16)
            link_type[n] = NO_LINK
            if len(interfaces) > 0:  # simple packet blocks belong to the first interface and obey its snap length
                link_type[n] = interfaces[0, 0]
                if interfaces[0, 1] > 0:
                    captured = min(captured, signed(interfaces[0, 1]))
            if block > 16 + (captured + 3) // 4 * 4:  # such a block has no options: one of its numbers is wrong
                return n, at, DAMAGED, odd
            orig_len[n] = original
            cap_len[n] = captured
            offset[n] = at + 12
            time_ns[n] = NO_TIME
            n += 1
        at += block
    return n, at, FULL, odd
