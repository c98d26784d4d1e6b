"""Differences between a capture and the wire: duplicates, too long segments."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from analysis.kernels import jit
from analysis.kernels.raw import signed
from analysis.packets import CUT, FRAGMENT, IPV6, NO_FLOW, NO_TIME, REVERSE, TCP

WITHIN_NS = 1_000_000
"""Two equal TCP frames more than 1 ms apart are a retransmission, not a duplicate."""

MOST_LOOKED_AT = 64
"""Frames of one hash bucket that are compared; only crafted frames fill a bucket further."""

Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]
UInt64 = npt.NDArray[np.uint64]
UInt32 = npt.NDArray[np.uint32]
UInt16 = npt.NDArray[np.uint16]
UInt8 = npt.NDArray[np.uint8]

_32 = np.uint64(32)

# Slots of the coalesced segment counters
SUPER, JUDGED, UNJUDGED, SPLIT, CUT_HEADERS, FRAGMENTS = range(6)
COUNTERS = 6
_ETHERNET, _IPV4, _IPV6, _TCP = 14, 20, 40, 20
_MOST_OPTIONS = 40
_LEAST = 88
"""Bytes: Linux sends no smaller full segments (TCP_MIN_SND_MSS less options); a forged MSS would create thousands of rows."""


@jit
def duplicates(
    time_ns: Int64,
    kind: UInt8,
    flow: UInt32,
    payload: UInt32,
    seq: UInt32,
    ack: UInt32,
    fingerprint: UInt32,
    heads: Int64,
    links: Int64,
    times: Int64,
    words: UInt64,
    pushed: int,
    duplicate: npt.NDArray[np.bool_],
) -> tuple[int, int]:
    """Mark TCP frames that equal one of the last ``len(links)`` within 1 ms.

    Returns their number, and the frames entered so far.

    ``heads`` and ``links`` chain entries of one hash bucket from the newest back, as entry number + 1.
    """
    ring = len(links) - 1
    buckets = len(heads) - 1
    count = 0
    for i in range(len(time_ns)):
        duplicate[i] = False
        if kind[i] & TCP == 0 or time_ns[i] == NO_TIME:
            continue
        one = (np.uint64(fingerprint[i]) << _32) | np.uint64(flow[i])
        two = (np.uint64(seq[i]) << _32) | np.uint64(ack[i])
        three = np.uint64(payload[i])
        bucket = signed(fingerprint[i]) & buckets
        entry = heads[bucket] - 1
        steps = 0
        while entry >= 0 and abs(time_ns[i] - times[entry & ring]) <= WITHIN_NS:  # nearly always false
            if pushed - entry > ring or steps == MOST_LOOKED_AT:
                break
            steps += 1
            index = entry & ring
            if words[index, 0] == one and words[index, 1] == two and words[index, 2] == three:
                duplicate[i] = True
                count += 1
                break
            entry = links[index] - 1
        if not duplicate[i]:
            index = pushed & ring
            links[index] = heads[bucket]
            heads[bucket] = pushed + 1
            times[index] = time_ns[i]
            words[index, 0] = one
            words[index, 1] = two
            words[index, 2] = three
            pushed += 1
    return count, pushed


@jit
def super_segments(
    kind: UInt8,
    flow: UInt32,
    orig_len: UInt32,
    payload: UInt32,
    mss: UInt16,
    longest_frame: int,
    usual_mss: int,
    announced: UInt16,
    counters: Int64,
    piece: UInt32,
) -> None:
    """Count segments above the peer's MSS, and frames above the MTU.

    ``announced`` has shape (F, 2): the MSS that endpoint A and B of the flow announced, 0 while unknown. ``piece`` becomes the payload
    of the segments on the wire, 0 for frames that were not joined or cannot be split. Truncated headers and later fragments are
    counted too.
    """
    judged = cut = fragments = 0
    for i in range(len(kind)):
        piece[i] = 0
        cut += kind[i] & (CUT | TCP) == CUT
        fragments += kind[i] & FRAGMENT != 0
        too_long = longest_frame > 0 and orig_len[i] > longest_frame
        if kind[i] & TCP and flow[i] != NO_FLOW:
            side = 1 if kind[i] & REVERSE else 0
            if mss[i] > 0:
                announced[flow[i], side] = mss[i]
            limit = signed(announced[flow[i], 1 - side])
            if limit == 0:
                limit = usual_mss
            if limit > 0:
                judged += 1
                if payload[i] > limit:
                    too_long = True
                    size = limit - _options(signed(orig_len[i]) - signed(payload[i]), kind[i])
                    if size >= _LEAST:
                        piece[i] = size
                        counters[SPLIT] += 1
            elif payload[i] > 0:
                counters[UNJUDGED] += 1
        counters[SUPER] += too_long
    counters[JUDGED] += judged
    counters[CUT_HEADERS] += cut
    counters[FRAGMENTS] += fragments


@jit
def _options(headers: int, kind: int) -> int:
    """Return the bytes of TCP options, which the MSS includes (RFC 6691)."""
    network = _IPV6 if kind & IPV6 else _IPV4
    options = (headers - _ETHERNET - network - _TCP) // 4 * 4
    return options if 0 <= options <= _MOST_OPTIONS else 0
