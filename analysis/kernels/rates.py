"""Sums, sizes, time bins, sliding windows and gaps of a stream of packets.

Every array has one row per class of traffic: OTHER, MPI. All traffic is the sum of both rows, except gaps, clocks and windows,
which have rows for the scopes ALL and MPI.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from analysis.kernels import inlined, jit
from analysis.kernels.raw import signed
from analysis.packets import ACK, FIN, NO_FLOW, NO_TIME, RST, SYN, TCP

ALL = OTHER = 0
MPI = 1

# Slots of the tally
PACKETS, WIRE, PAYLOAD, LINE, SMALL, TCP_PACKETS, PURE_ACKS, MANAGEMENT, WINDOW_SUM = range(9)
TALLY_SIZE = 9

# Slots of the clock: first and last stamp, packets with one, steps back in time and the longest of them (ns, positive)
FIRST, LAST, TIMED, REVERSALS, LONGEST_REVERSAL = range(5)
CLOCK_SIZE = 5

SMALL_BELOW = 100
"""Bytes; the limit of small_packet_share."""
SHORTEST_FRAME, FRAME_OVERHEAD = 60, 24
"""IEEE 802.3: 60 bytes before the FCS; FCS 4, preamble and delimiter 8, inter-frame gap 12."""

_STRIDE = 16
"""Step for skipping entries that leave a window together."""

Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]
UInt32 = npt.NDArray[np.uint32]
UInt16 = npt.NDArray[np.uint16]
UInt8 = npt.NDArray[np.uint8]
Bool = npt.NDArray[np.bool_]


@jit
def classify(flow: UInt32, member: Bool, time_ns: Int64, traffic: UInt8) -> tuple[int, int]:
    """Classify packets by flow; return the first and the latest stamp or NO_TIME."""
    for i in range(len(flow)):
        traffic[i] = MPI if flow[i] != NO_FLOW and member[flow[i]] else OTHER
    latest = signed(NO_TIME)
    for i in range(len(time_ns)):
        latest = max(latest, time_ns[i])
    for i in range(len(time_ns)):
        if time_ns[i] != NO_TIME:
            return time_ns[i], latest
    return signed(NO_TIME), latest


@jit
def tally(
    traffic: UInt8,
    kind: UInt8,
    orig_len: UInt32,
    payload: UInt32,
    window: UInt16,
    tcp_flags: UInt8,
    sums: Int64,
    sizes: Int64,
) -> None:
    """Add packets to ``sums`` and ``sizes`` (last column: and longer).

    The second loop has no branch, so that the processor adds several packets at a time, which halves its time.
    """
    longest = sizes.shape[1] - 1
    for i in range(len(kind)):
        sizes[signed(traffic[i]), min(signed(orig_len[i]), longest)] += 1
    all_of_mpi = wire = wire_mpi = content = content_mpi = line = line_mpi = small = small_mpi = 0
    tcp = tcp_mpi = pure = pure_mpi = managing = managing_mpi = windows = windows_mpi = 0
    for i in range(len(kind)):
        of_mpi, length, bytes_inside = signed(traffic[i]), signed(orig_len[i]), signed(payload[i])
        on_line, is_small = max(length, SHORTEST_FRAME) + FRAME_OVERHEAD, signed(length < SMALL_BELOW)
        is_tcp, flags = signed(kind[i] & TCP != 0), signed(tcp_flags[i])
        manages = is_tcp & signed(flags & (SYN | FIN | RST) != 0)
        is_pure = is_tcp & signed(bytes_inside == 0) & signed(flags & (SYN | FIN | RST | ACK) == ACK)
        advertised = is_tcp * signed(window[i])
        all_of_mpi += of_mpi
        wire += length
        wire_mpi += of_mpi * length
        content += bytes_inside
        content_mpi += of_mpi * bytes_inside
        line += on_line
        line_mpi += of_mpi * on_line
        small += is_small
        small_mpi += of_mpi * is_small
        tcp += is_tcp
        tcp_mpi += of_mpi * is_tcp
        pure += is_pure
        pure_mpi += of_mpi * is_pure
        managing += manages
        managing_mpi += of_mpi * manages
        windows += advertised
        windows_mpi += of_mpi * advertised
    _add_sums(sums, PACKETS, len(kind), all_of_mpi)
    _add_sums(sums, WIRE, wire, wire_mpi)
    _add_sums(sums, PAYLOAD, content, content_mpi)
    _add_sums(sums, LINE, line, line_mpi)
    _add_sums(sums, SMALL, small, small_mpi)
    _add_sums(sums, TCP_PACKETS, tcp, tcp_mpi)
    _add_sums(sums, PURE_ACKS, pure, pure_mpi)
    _add_sums(sums, MANAGEMENT, managing, managing_mpi)
    _add_sums(sums, WINDOW_SUM, windows, windows_mpi)


@jit
def _add_sums(sums: Int64, slot: int, whole: int, of_mpi: int) -> None:
    sums[OTHER, slot] += whole - of_mpi
    sums[MPI, slot] += of_mpi


@inlined
def _quotient(number: int, divisor: int, reciprocal: float) -> int:
    """Divide without a division or branch, for 0 to 2**52 times ``divisor``."""
    quotient = int(number * reciprocal)
    rest = number - quotient * divisor
    return quotient + signed(rest >= divisor) - signed(rest < 0)


@jit
def timeline(
    traffic: UInt8,
    time_ns: Int64,
    orig_len: UInt32,
    payload: UInt32,
    origin: int,
    clock: Int64,
    gaps: Int64,
    bin_ns: int,
    counts: Int32,
    series_ns: int,
    series: Int64,
) -> tuple[int, int]:
    """Add gaps, packets per ``bin_ns``, and the series per ``series_ns``.

    Returns the numbers of gaps for ALL and MPI. Packets stamped before the origin count in bin 0.
    """
    written, written_mpi = 0, 0
    last, last_mpi = clock[ALL, LAST], clock[MPI, LAST]
    timed, timed_mpi = clock[ALL, TIMED], clock[MPI, TIMED]
    bins_per_ns, points_per_ns = 1 / bin_ns, 1 / series_ns
    for i in range(len(time_ns)):
        now = time_ns[i]
        if now == NO_TIME:
            continue
        if timed > 0:
            gap = now - last
            gaps[ALL, written] = gap
            written += 1
            if gap < 0:
                clock[ALL, REVERSALS] += 1
                clock[ALL, LONGEST_REVERSAL] = max(clock[ALL, LONGEST_REVERSAL], -gap)
        else:
            clock[ALL, FIRST] = now
        last = now
        timed += 1
        of = signed(traffic[i])
        if of == MPI:
            if timed_mpi > 0:
                gaps[MPI, written_mpi] = now - last_mpi
                written_mpi += 1
            else:
                clock[MPI, FIRST] = now
            last_mpi = now
            timed_mpi += 1
        since = max(now - origin, 0)
        bin_number = _quotient(since, bin_ns, bins_per_ns)
        point = _quotient(since, series_ns, points_per_ns)
        counts[of, bin_number] += 1
        series[of, 0, point] += 1
        series[of, 1, point] += orig_len[i]
        series[of, 2, point] += payload[i]
    clock[ALL, LAST], clock[MPI, LAST] = last, last_mpi
    clock[ALL, TIMED], clock[MPI, TIMED] = timed, timed_mpi
    return written, written_mpi


@jit
def join_bins(counts: Int32, by: int) -> int:
    """Sum every ``by`` bins of ``counts`` (2, bins); return the new number."""
    bins = len(counts[0])
    joined = -(-bins // by)
    for of in range(2):
        for k in range(joined):
            total = 0
            for part in range(k * by, min((k + 1) * by, bins)):
                total += counts[of, part]
            counts[of, k] = total
        counts[of, joined:] = 0
    return joined


@jit
def _still_held(times: Int64, oldest: int, behind: int, ordered: int, now: int, width: int) -> int:
    """Return the first entry from ``oldest`` in a window up to ``now``."""
    mask = len(times) - 1
    if oldest >= ordered:
        while oldest + _STRIDE < behind and now - times[(oldest + _STRIDE) & mask] >= width:
            oldest += _STRIDE + 1
    while oldest < behind and abs(now - times[oldest & mask]) >= width:
        oldest += 1
    return oldest


@jit
def sliding_windows(
    traffic: UInt8,
    time_ns: Int64,
    orig_len: UInt32,
    start: int,
    pushed: int,
    latest: int,
    ordered: int,
    ring_time: Int64,
    ring_bytes: Int64,
    ring_mpi: Int64,
    width_ns: Int64,
    tail: Int64,
    departed: Int64,
    peak: Int64,
) -> tuple[int, int, int, int]:
    """Find the largest sum of bytes in any window (t - width, t], for ALL and MPI.

    Returns (the row at which the ring was full, entries so far, the last stamp, the entry ``ordered`` from which stamps only grow).
    Packets of one stamp share an entry, which bounds memory for equal stamps. ``ring_bytes`` and ``ring_mpi`` are cumulative bytes up
    to an entry, ``departed`` those that have left each window. Packets leave a window only if its sum would be a new peak, which avoids
    most branch mispredictions. A clock set back restarts. The ring's length is a power of two.
    """
    mask = len(ring_time) - 1
    first_held = 0
    total = ring_bytes[(pushed - 1) & mask] if pushed > 0 else 0
    total_mpi = ring_mpi[(pushed - 1) & mask] if pushed > 0 else 0
    limit = limit_mpi = -1  # above these cumulative bytes some window may exceed its peak
    for i in range(start, len(time_ns)):
        now = time_ns[i]
        if now == NO_TIME:
            continue
        back = now < latest
        joins = pushed > 0 and now == latest
        if back or (not joins and pushed - first_held > mask):
            first_held = pushed
            for w in range(len(width_ns)):
                oldest = _still_held(ring_time, tail[w], pushed, ordered, latest, width_ns[w])
                if oldest > tail[w]:
                    departed[ALL, w], departed[MPI, w] = ring_bytes[(oldest - 1) & mask], ring_mpi[(oldest - 1) & mask]
                    tail[w] = oldest
                first_held = min(first_held, oldest)
            if pushed - first_held > mask:
                return i, pushed, latest, ordered
            limit = limit_mpi = -1
            ordered = pushed if back else ordered
        latest = now
        length = signed(orig_len[i])
        total += length
        total_mpi += length if traffic[i] == MPI else 0
        if not joins:
            ring_time[pushed & mask] = now
            pushed += 1
        ring_bytes[(pushed - 1) & mask] = total
        ring_mpi[(pushed - 1) & mask] = total_mpi
        if total > limit or total_mpi > limit_mpi or back:
            for w in range(len(width_ns)):
                if total - departed[ALL, w] > peak[ALL, w] or total_mpi - departed[MPI, w] > peak[MPI, w] or back:
                    oldest = _still_held(ring_time, tail[w], pushed, ordered, now, width_ns[w])
                    if oldest > tail[w]:
                        departed[ALL, w], departed[MPI, w] = (
                            ring_bytes[(oldest - 1) & mask],
                            ring_mpi[(oldest - 1) & mask],
                        )
                        tail[w] = oldest
                    peak[ALL, w] = max(peak[ALL, w], total - departed[ALL, w])
                    peak[MPI, w] = max(peak[MPI, w], total_mpi - departed[MPI, w])
            limit, limit_mpi = departed[ALL, 0] + peak[ALL, 0], departed[MPI, 0] + peak[MPI, 0]
            for w in range(1, len(width_ns)):
                limit = min(limit, departed[ALL, w] + peak[ALL, w])
                limit_mpi = min(limit_mpi, departed[MPI, w] + peak[MPI, w])
    return len(time_ns), pushed, latest, ordered
