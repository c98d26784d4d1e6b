"""Where the records of a capture file begin: pcap records and pcapng blocks to offsets, lengths and time stamps.

Sources: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from analysis.kernels import jit
from analysis.kernels.raw import signed, u32, u32_file
from analysis.packets import NO_TIME

MORE = 0
"""The next record is not complete in the buffer."""
FULL = 1
"""The output arrays are full."""
CONTROL = 2
"""pcapng: a block that the caller must read (section, interface, statistics)."""
DAMAGED = 3
"""The next record's header contradicts itself; nothing behind it can be believed."""
PASS_OVER = 4
"""pcapng: a block of a kind that is not looked into, longer than the buffer; the caller passes over its bytes."""

SECTION_HEADER, INTERFACE, PACKET, SIMPLE_PACKET, STATISTICS, ENHANCED_PACKET = 0x0A0D0D0A, 1, 2, 3, 5, 6

TICKS_TIMES, TICKS_DIVIDED, TICKS_BINARY = 0, 1, 2
NO_LINK = -1

DROP_COUNT = 4
"""Option of an enhanced packet block: packets lost between it and the one before on the same interface."""
NOT_COUNTED = 0xFFFF
MOST_DROPPED = 1 << 60
"""No capture loses more; sums of what a file claims stay in their range."""

TIME_LIMIT = 2**62 // 10**9 * 10**9
"""Stamps are held inside +-2^62 ns (146 years), so that differences of two never overflow; a whole number of every clock's units."""

MOST_FRACTION_NS = 2_000_000_000
"""Some writers add up two fractions and do not carry, which is still less than this; more than a second besides is damage."""

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
    """Records in bytes ``start`` to ``end`` behind the address ``data`` into the arrays.

    Returns (records, position behind the last one, status, how many of them have a stamp that cannot be).
    """
    n = odd = 0
    at = start
    limit = data + end
    while n < len(offset):
        if end - at < 16:
            return n, at, MORE, odd
        captured = u32_file(data + at + 8, limit, big_endian)
        original = u32_file(data + at + 12, limit, big_endian)
        if captured > longest:
            return n, at, DAMAGED, odd
        if end - at - 16 < captured:
            return n, at, MORE, odd
        seconds = u32_file(data + at, limit, big_endian)
        fraction = u32_file(data + at + 4, limit, big_endian) * ns_per_fraction
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
    """A 64-bit count of ticks as nanoseconds, exactly (rounded towards the past), held inside +-TIME_LIMIT.

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
def dropped_before(at: int, end: int, big_endian: bool) -> int:
    """What the options of an enhanced packet block from ``at`` to ``end`` say was dropped since the packet before; 0 without a word."""
    while at + 4 <= end:
        both = u32(at, end)
        code, length = both >> 16, both & 0xFFFF
        if not big_endian:
            code, length = (code & 0xFF) << 8 | code >> 8, (length & 0xFF) << 8 | length >> 8
        if code == 0:
            break
        if code == DROP_COUNT and length == 8 and at + 12 <= end:
            first, second = u32_file(at + 4, end, big_endian), u32_file(at + 8, end, big_endian)
            high, low = (first, second) if big_endian else (second, first)
            return high << 32 | low if high < MOST_DROPPED >> 32 else MOST_DROPPED
        at += 4 + (length + 3) // 4 * 4
    return 0


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
    """Packet blocks in bytes ``start`` to ``end`` behind the address ``data`` into the arrays.

    Returns (records, position behind the last one, status, how many of them have a stamp that cannot be).
    ``interfaces`` has shape (I, 6): link type, snap length, tick rule, tick value, time offset in ns, and what packets say was dropped
    before them, which is added up here.
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
        claimed = u32_file(data + at + 4, limit, big_endian)
        block = (claimed + 3) // 4 * 4  # some writers leave out what fills up the last four bytes
        if block < 12:
            return n, at, DAMAGED, odd
        if block > longest + 64:
            status = DAMAGED if kind in (ENHANCED_PACKET, PACKET, SIMPLE_PACKET) else PASS_OVER
            return n, at, status, odd
        if end - at < block:
            return n, at, MORE, odd
        if u32_file(data + at + block - 4, limit, big_endian) != claimed:
            return n, at, DAMAGED, odd
        if kind in (ENHANCED_PACKET, PACKET):
            if block < 32:
                return n, at, DAMAGED, odd
            number = u32_file(data + at + 8, limit, big_endian)
            dropped = 0
            if kind == PACKET:  # obsolete form: 16 bits of interface, 16 bits of drop count
                both = u32(data + at + 8, limit)
                number = both >> 16 if big_endian else ((both >> 16) & 0xFF) << 8 | both >> 24
                dropped = both & 0xFFFF if big_endian else (both & 0xFF) << 8 | (both >> 8) & 0xFF
                dropped = 0 if dropped == NOT_COUNTED else dropped
            captured = u32_file(data + at + 20, limit, big_endian)
            if captured > block - 32:
                return n, at, DAMAGED, odd
            options = 28 + (captured + 3) // 4 * 4
            if kind == ENHANCED_PACKET and options + 4 < block:
                dropped = dropped_before(data + at + options, data + at + block - 4, big_endian)
            orig_len[n] = u32_file(data + at + 24, limit, big_endian)
            offset[n] = at + 28
            if number < len(interfaces):
                link_type[n] = interfaces[number, 0]
                if dropped > 0:
                    interfaces[number, 5] = min(interfaces[number, 5] + dropped, MOST_DROPPED)
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
