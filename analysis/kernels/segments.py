"""Lists of byte ranges, one set per direction: what was seen (for retransmissions) and what waits for its ACK (for RTT).

All lists share one array of nodes; a node given back is the next one handed out, so few of them stay in the cache.
A list that reaches its limit forgets its oldest entry and counts that; it never grows without bound.
"""

from __future__ import annotations

from typing import Any

from analysis.kernels import jit
from analysis.kernels.tcp_state import FREE_NODE, FREE_NODES, MAX_GAPS, MAX_OUTSTANDING, NO_NODE, NODES_USED
from analysis.packets import NO_TIME


@jit
def take_node(nodes: Any, header: Any) -> int:
    """Index of a node for the caller to fill, or NO_NODE."""
    index = header[FREE_NODE]
    if index != NO_NODE:
        header[FREE_NODE] = nodes[index].next
        header[FREE_NODES] -= 1
        return index
    index = header[NODES_USED]
    if index == len(nodes):
        return NO_NODE
    header[NODES_USED] = index + 1
    return index


@jit
def give_node(nodes: Any, header: Any, index: int) -> None:
    nodes[index].next = header[FREE_NODE]
    header[FREE_NODE] = index
    header[FREE_NODES] += 1


@jit
def _push_run_below(side: Any, nodes: Any, header: Any) -> None:
    """The topmost run goes to the list; at the limit the two lowest runs become one (their gap is forgotten)."""
    index = take_node(nodes, header)
    if index == NO_NODE:
        side.gaps_forgotten += 1
        return
    node = nodes[index]
    node.start = side.run_start
    node.end = side.run_end
    node.time_ns = side.run_opened_ns
    node.next = side.runs_below
    side.runs_below = index
    side.runs += 1


@jit
def forget_lowest_gap(side: Any, nodes: Any, header: Any) -> None:
    """Join the two lowest runs."""
    above = side.runs_below
    if nodes[above].next == NO_NODE:
        side.run_start = nodes[above].start
        side.run_opened_ns = nodes[above].time_ns
        side.runs_below = NO_NODE
        give_node(nodes, header, above)
    else:
        below = nodes[above].next
        while nodes[below].next != NO_NODE:
            above = below
            below = nodes[below].next
        nodes[above].start = nodes[below].start
        nodes[above].time_ns = nodes[below].time_ns
        nodes[above].next = NO_NODE
        give_node(nodes, header, below)
    side.runs -= 1
    side.gaps_forgotten += 1


@jit
def see_bytes(side: Any, nodes: Any, header: Any, start: int, end: int, time_ns: int) -> int:
    """Add [start, end) to the bytes seen of this side; returns how many of them had been seen before.

    Sets ``gap_opened_ns`` to the moment at which the gap that ``start`` falls into was first visible, NO_TIME outside gaps.
    """
    side.gap_opened_ns = NO_TIME
    if side.runs == 0:
        side.runs = 1
        side.run_start = start
        side.run_end = end
        side.run_opened_ns = time_ns
        return 0
    if start > side.run_end:
        _push_run_below(side, nodes, header)
        side.run_start = start
        side.run_end = end
        side.run_opened_ns = time_ns
        if side.runs > header[MAX_GAPS]:
            forget_lowest_gap(side, nodes, header)
        return 0
    if start >= side.run_start:
        overlap = min(end, side.run_end) - start
        side.run_end = max(end, side.run_end)
        return overlap
    side.gap_opened_ns = side.run_opened_ns
    if end >= side.run_start:
        return _widen_top_run(side, nodes, header, start, end)
    overlap = _see_below(side, nodes, header, start, end)
    if side.runs > header[MAX_GAPS]:
        forget_lowest_gap(side, nodes, header)
    return overlap


@jit
def _widen_top_run(side: Any, nodes: Any, header: Any, start: int, end: int) -> int:
    """The new range starts below the topmost run and reaches it: swallow every run it touches."""
    overlap = min(end, side.run_end) - side.run_start
    side.run_start = start
    side.run_end = max(end, side.run_end)
    index = side.runs_below
    while index != NO_NODE and nodes[index].end >= start:
        node = nodes[index]
        overlap += node.end - max(start, node.start)
        side.run_start = min(side.run_start, node.start)
        if start < node.start:
            side.gap_opened_ns = node.time_ns
        side.run_opened_ns = node.time_ns
        side.runs_below = node.next
        side.runs -= 1
        give_node(nodes, header, index)
        index = side.runs_below
    return overlap


@jit
def _see_below(side: Any, nodes: Any, header: Any, start: int, end: int) -> int:
    """The new range ends below the topmost run: find its place in the list, swallow what it touches."""
    above = NO_NODE
    index = side.runs_below
    opened_ns = side.run_opened_ns
    while index != NO_NODE and nodes[index].start > end:
        opened_ns = nodes[index].time_ns
        above = index
        index = nodes[index].next
    overlap = 0
    low = start
    high = end
    side.gap_opened_ns = opened_ns
    while index != NO_NODE and nodes[index].end >= start:
        node = nodes[index]
        overlap += max(0, min(end, node.end) - max(start, node.start))
        if start < node.start:
            side.gap_opened_ns = node.time_ns
        low = min(low, node.start)
        high = max(high, node.end)
        opened_ns = node.time_ns
        following = node.next
        give_node(nodes, header, index)
        side.runs -= 1
        index = following
    kept = take_node(nodes, header)
    if kept == NO_NODE:  # only reachable when nothing was swallowed: the range stays unrecorded, and counted
        side.gaps_forgotten += 1
        kept = index
    else:
        node = nodes[kept]
        node.start = low
        node.end = high
        node.time_ns = opened_ns
        node.next = index
        side.runs += 1
    if above == NO_NODE:
        side.runs_below = kept
    else:
        nodes[above].next = kept
    return overlap


@jit
def gap_below(side: Any, nodes: Any, low: int, high: int) -> bool:
    """Whether some byte of [low, high) lies in a gap between the runs seen."""
    upper = side.run_start
    index = side.runs_below
    while index != NO_NODE:
        if max(low, nodes[index].end) < min(high, upper):
            return True
        upper = nodes[index].start
        index = nodes[index].next
    return False


@jit
def _insert(side: Any, nodes: Any, header: Any, before: int, start: int, end: int, time_ns: int, repeated: int) -> int:
    """New outstanding range after node ``before`` (NO_NODE: in front); returns its index, or NO_NODE without room."""
    index = take_node(nodes, header)
    if index == NO_NODE:
        side.segments_forgotten += 1
        return NO_NODE
    node = nodes[index]
    node.start = start
    node.end = end
    node.time_ns = time_ns
    node.repeated = repeated
    if before == NO_NODE:
        node.next = side.oldest
        side.oldest = index
    else:
        node.next = nodes[before].next
        nodes[before].next = index
    if node.next == NO_NODE:
        side.newest = index
    side.outstanding += 1
    return index


@jit
def drop_oldest(side: Any, nodes: Any, header: Any) -> None:
    index = side.oldest
    side.oldest = nodes[index].next
    if side.oldest == NO_NODE:
        side.newest = NO_NODE
    side.outstanding -= 1
    give_node(nodes, header, index)


@jit
def send_bytes(side: Any, nodes: Any, header: Any, start: int, end: int, fresh: int, time_ns: int) -> None:
    """Remember when [start, end) was sent. Bytes below ``fresh`` were sent before, or fill a gap and may have been."""
    if start < fresh:
        if side.acked_known:
            start = max(start, side.acked)
        _resend(side, nodes, header, start, min(end, fresh), time_ns)
        start = max(start, fresh)
    if start < end:
        _insert(side, nodes, header, side.newest, start, end, time_ns, 0)
    while side.outstanding > header[MAX_OUTSTANDING]:
        drop_oldest(side, nodes, header)
        side.segments_forgotten += 1


@jit
def _resend(side: Any, nodes: Any, header: Any, start: int, end: int, time_ns: int) -> None:
    """Mark [start, end) as repeated at ``time_ns``: cut the nodes at its ends, fill what no node covers."""
    before = NO_NODE
    index = side.oldest
    while index != NO_NODE and nodes[index].end <= start:
        before = index
        index = nodes[index].next
    while start < end:
        if index == NO_NODE or nodes[index].start >= end:
            _insert(side, nodes, header, before, start, end, time_ns, 1)
            return
        node = nodes[index]
        if start < node.start:
            before = _insert(side, nodes, header, before, start, node.start, time_ns, 1)
            if before == NO_NODE:
                return
            start = node.start
        if node.start < start:
            old_start = node.start
            node.start = start
            before = _insert(side, nodes, header, before, old_start, start, node.time_ns, node.repeated)
            if before == NO_NODE:
                return
        if node.end > end:
            old_end = node.end
            node.end = end
            _insert(side, nodes, header, index, end, old_end, node.time_ns, node.repeated)
        node.time_ns = time_ns
        node.repeated = 1
        start = node.end
        before = index
        index = node.next


@jit
def acknowledge_bytes(side: Any, nodes: Any, header: Any, upto: int) -> int:
    """Retire everything below ``upto``; returns when the newest byte of it that was never repeated was sent, or NO_TIME.

    NO_TIME also when a repetition below ``upto`` left after that byte: the ACK may have waited for it (Karn's rule).
    """
    sent_ns = NO_TIME
    repeated_ns = NO_TIME
    while side.oldest != NO_NODE:
        node = nodes[side.oldest]
        if node.start >= upto:
            break
        if node.repeated:
            repeated_ns = max(repeated_ns, node.time_ns)
        else:
            sent_ns = node.time_ns
        if node.end > upto:
            node.start = upto
            break
        drop_oldest(side, nodes, header)
    if repeated_ns > sent_ns:
        return NO_TIME
    return sent_ns


@jit
def release(side: Any, nodes: Any, header: Any) -> None:
    """Give every node of a finished direction back."""
    while side.oldest != NO_NODE:
        drop_oldest(side, nodes, header)
    index = side.runs_below
    while index != NO_NODE:
        following = nodes[index].next
        give_node(nodes, header, index)
        index = following
    side.runs_below = NO_NODE
    side.runs = min(side.runs, 1)
