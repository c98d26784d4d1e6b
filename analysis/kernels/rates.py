"""Sums, size histogram, time bins, sliding windows and inter-arrival gaps of a stream of packets, for one scope."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from analysis.kernels import jit
from analysis.kernels.raw import signed
from analysis.packets import ACK, FIN, NO_FLOW, NO_TIME, RST, SYN, TCP

# Slots of the tally
PACKETS, WIRE, PAYLOAD, LINE, SMALL, TCP_PACKETS, PURE_ACKS, MANAGEMENT, WINDOW_SUM = range(9)
TALLY_SIZE = 9

# Slots of the clock: first and last stamp, packets with one, steps back in time and the longest of them (ns, positive),
# packets pushed into the ring, where bins begin
FIRST, LAST, TIMED, REVERSALS, LONGEST_REVERSAL, PUSHED, ORIGIN = range(7)
CLOCK_SIZE = 7

SMALL_BELOW = 100
"""Bytes; the limit of small_packet_share."""
SHORTEST_FRAME, FRAME_OVERHEAD = 60, 24
"""IEEE 802.3: 60 bytes before the FCS; FCS 4, preamble and delimiter 8, inter-frame gap 12."""

Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]
UInt32 = npt.NDArray[np.uint32]
UInt16 = npt.NDArray[np.uint16]
UInt8 = npt.NDArray[np.uint8]
Bool = npt.NDArray[np.bool_]


@jit
def tally(
    kind: UInt8,
    flow: UInt32,
    orig_len: UInt32,
    payload: UInt32,
    window: UInt16,
    tcp_flags: UInt8,
    everything: bool,
    member: Bool,
    sums: Int64,
    sizes: Int64,
) -> int:
    """Add packets of the scope to ``sums`` and ``sizes``; returns how many were longer than ``sizes`` can count."""
    beyond = 0
    for i in range(len(kind)):
        if not everything and (flow[i] == NO_FLOW or not member[flow[i]]):
            continue
        length = signed(orig_len[i])
        sums[PACKETS] += 1
        sums[WIRE] += length
        sums[PAYLOAD] += payload[i]
        sums[LINE] += max(length, SHORTEST_FRAME) + FRAME_OVERHEAD
        sums[SMALL] += length < SMALL_BELOW
        if length < len(sizes):
            sizes[length] += 1
        else:
            beyond += 1
        if kind[i] & TCP:
            managing = (tcp_flags[i] & (SYN | FIN | RST)) != 0
            sums[TCP_PACKETS] += 1
            sums[WINDOW_SUM] += window[i]
            sums[MANAGEMENT] += managing
            sums[PURE_ACKS] += payload[i] == 0 and not managing and (tcp_flags[i] & ACK) != 0
    return beyond


@jit
def timeline(
    time_ns: Int64,
    flow: UInt32,
    orig_len: UInt32,
    payload: UInt32,
    everything: bool,
    member: Bool,
    clock: Int64,
    gaps: Int64,
    bin_ns: int,
    counts: Int32,
    series_ns: int,
    series: Int64,
) -> int:
    """Gaps between packets, packets per ``bin_ns``, and (packets, bytes, payload) per ``series_ns``.

    Returns the number of gaps written. Packets stamped before the origin count in bin 0.
    """
    n = 0
    for i in range(len(time_ns)):
        if not everything and (flow[i] == NO_FLOW or not member[flow[i]]):
            continue
        now = time_ns[i]
        if now == NO_TIME:
            continue
        if clock[TIMED] == 0:
            clock[FIRST] = now
        else:
            gap = now - clock[LAST]
            if gap < 0:
                clock[REVERSALS] += 1
                clock[LONGEST_REVERSAL] = max(clock[LONGEST_REVERSAL], -gap)
            gaps[n] = gap
            n += 1
        clock[LAST] = now
        clock[TIMED] += 1
        since = max(now - clock[ORIGIN], 0)
        counts[since // bin_ns] += 1
        place = since // series_ns
        series[0, place] += 1
        series[1, place] += orig_len[i]
        series[2, place] += payload[i]
    return n


@jit
def sliding_windows(
    time_ns: Int64,
    flow: UInt32,
    orig_len: UInt32,
    start: int,
    everything: bool,
    member: Bool,
    clock: Int64,
    ring_time: Int64,
    ring_bytes: Int64,
    width_ns: Int64,
    tail: Int64,
    held: Int64,
    peak: Int64,
) -> int:
    """Largest sum of bytes in any window (t - width, t]; returns the row it stopped at because the ring is full.

    The ring holds the packets of the widest window; its length is a power of two.
    """
    mask = len(ring_time) - 1
    for i in range(start, len(time_ns)):
        if not everything and (flow[i] == NO_FLOW or not member[flow[i]]):
            continue
        now = time_ns[i]
        if now == NO_TIME:
            continue
        head = clock[PUSHED]
        oldest = min(tail.min(), head)
        if head - oldest > mask:
            return i
        ring_time[head & mask] = now
        ring_bytes[head & mask] = orig_len[i]
        clock[PUSHED] = head + 1
        for w in range(len(width_ns)):
            held[w] += orig_len[i]
            while abs(now - ring_time[tail[w] & mask]) >= width_ns[w]:  # a clock set back starts anew, too
                held[w] -= ring_bytes[tail[w] & mask]
                tail[w] += 1
            peak[w] = max(peak[w], held[w])
    return len(time_ns)
