"""Lists of byte ranges per direction: bytes seen, and bytes waiting for an ACK.

The first are for retransmissions, the second for the RTT. All lists share one array of nodes; a released node is reused
first, so that few occupy the cache. A list at its limit drops its oldest entry and counts that.
"""

from __future__ import annotations

from typing import Any

from analysis.kernels import inlined, jit
from analysis.kernels.raw import record_at, signed
from analysis.kernels.tcp_state import NO_NODE, NODE
from analysis.packets import NO_TIME

node_at = record_at(NODE)


@inlined
def take_node(store: Any) -> int:
    """Return the index of a free node, or NO_NODE."""
    index = store.free_node
    if index != NO_NODE:
        store.free_node = node_at(store.nodes, store.node_room, index).next
        return signed(index)
    index = store.nodes_used
    if index == store.node_room:
        return NO_NODE
    store.nodes_used = index + 1
    return signed(index)


@inlined
def give_node(store: Any, index: int) -> None:
    node_at(store.nodes, store.node_room, index).next = store.free_node
    store.free_node = index


@jit
def _push_run_below(side: Any, store: Any) -> None:
    """Push the topmost run to the list."""
    index = take_node(store)
    if index == NO_NODE:
        side.gaps_forgotten += 1
        return
    node = node_at(store.nodes, store.node_room, index)
    node.start = side.run_start
    node.end = side.run_end
    node.time_ns = side.run_opened_ns
    node.next = side.runs_below
    side.runs_below = index
    side.runs += 1


@jit
def forget_lowest_gap(side: Any, store: Any) -> None:
    """Merge the two lowest runs."""
    above = side.runs_below
    if node_at(store.nodes, store.node_room, above).next == NO_NODE:
        side.run_start = node_at(store.nodes, store.node_room, above).start
        side.run_opened_ns = node_at(store.nodes, store.node_room, above).time_ns
        side.runs_below = NO_NODE
        give_node(store, above)
    else:
        below = node_at(store.nodes, store.node_room, above).next
        while node_at(store.nodes, store.node_room, below).next != NO_NODE:
            above = below
            below = node_at(store.nodes, store.node_room, below).next
        node_at(store.nodes, store.node_room, above).start = node_at(store.nodes, store.node_room, below).start
        node_at(store.nodes, store.node_room, above).time_ns = node_at(store.nodes, store.node_room, below).time_ns
        node_at(store.nodes, store.node_room, above).next = NO_NODE
        give_node(store, below)
    side.runs -= 1
    side.gaps_forgotten += 1


@inlined
def see_bytes(side: Any, store: Any, start: int, end: int, time_ns: int) -> int:
    """Add [start, end) to the bytes seen; return the bytes seen before.

    Sets ``gap_opened_ns`` to the time at which the gap around ``start`` was first visible, NO_TIME outside gaps.
    """
    side.gap_opened_ns = NO_TIME
    if side.runs == 0:
        side.runs = 1
        side.run_start = start
        side.run_end = end
        side.run_opened_ns = time_ns
        return 0
    if start > side.run_end:
        _push_run_below(side, store)
        side.run_start = start
        side.run_end = end
        side.run_opened_ns = time_ns
        while side.runs > store.max_gaps and side.runs_below != NO_NODE:
            forget_lowest_gap(side, store)
        return 0
    if start >= side.run_start:
        overlap = min(end, side.run_end) - start
        side.run_end = max(end, side.run_end)
        return signed(overlap)
    side.gap_opened_ns = side.run_opened_ns
    if end >= side.run_start:
        return _widen_top_run(side, store, start, end)
    overlap = _see_below(side, store, start, end)
    while side.runs > store.max_gaps and side.runs_below != NO_NODE:
        forget_lowest_gap(side, store)
    return overlap


@jit
def _widen_top_run(side: Any, store: Any, start: int, end: int) -> int:
    """Add a range that starts below the topmost run and reaches it."""
    overlap = min(end, side.run_end) - side.run_start
    side.run_start = start
    side.run_end = max(end, side.run_end)
    index = side.runs_below
    while index != NO_NODE and node_at(store.nodes, store.node_room, index).end >= start:
        node = node_at(store.nodes, store.node_room, index)
        overlap += node.end - max(start, node.start)
        side.run_start = min(side.run_start, node.start)
        if start < node.start:
            side.gap_opened_ns = node.time_ns
        side.run_opened_ns = node.time_ns
        side.runs_below = node.next
        side.runs -= 1
        give_node(store, index)
        index = side.runs_below
    return signed(overlap)


@jit
def _see_below(side: Any, store: Any, start: int, end: int) -> int:
    """Add a range that ends below the topmost run."""
    above = NO_NODE
    index = side.runs_below
    opened_ns = side.run_opened_ns
    while index != NO_NODE and node_at(store.nodes, store.node_room, index).start > end:
        opened_ns = node_at(store.nodes, store.node_room, index).time_ns
        above = index
        index = node_at(store.nodes, store.node_room, index).next
    overlap = 0
    low, high = start, end
    side.gap_opened_ns = opened_ns
    while index != NO_NODE and node_at(store.nodes, store.node_room, index).end >= start:
        node = node_at(store.nodes, store.node_room, index)
        overlap += max(0, min(end, node.end) - max(start, node.start))
        if start < node.start:
            side.gap_opened_ns = node.time_ns
        low = min(low, node.start)
        high = max(high, node.end)
        opened_ns = node.time_ns
        following = node.next
        give_node(store, index)
        side.runs -= 1
        index = following
    merged = take_node(store)
    if merged == NO_NODE:  # only if no run was merged: the range is dropped, and counted
        side.gaps_forgotten += 1
        merged = index
    else:
        node = node_at(store.nodes, store.node_room, merged)
        node.start = low
        node.end = high
        node.time_ns = opened_ns
        node.next = index
        side.runs += 1
    if above == NO_NODE:
        side.runs_below = merged
    else:
        node_at(store.nodes, store.node_room, above).next = merged
    return overlap


@jit
def gap_below(side: Any, store: Any, low: int, high: int) -> bool:
    """Return True if some byte of [low, high) is in a gap between runs."""
    upper = side.run_start
    index = side.runs_below
    while index != NO_NODE:
        if max(low, node_at(store.nodes, store.node_room, index).end) < min(high, upper):
            return True
        upper = node_at(store.nodes, store.node_room, index).start
        index = node_at(store.nodes, store.node_room, index).next
    return False


@inlined
def _insert(side: Any, store: Any, before: int, start: int, end: int, time_ns: int, repeated: int) -> int:
    """Insert a range after node ``before`` (NO_NODE: first); return its index."""
    index = take_node(store)
    if index == NO_NODE:
        side.segments_forgotten += 1
        return NO_NODE
    node = node_at(store.nodes, store.node_room, index)
    node.start = start
    node.end = end
    node.time_ns = time_ns
    node.repeated = repeated
    if before == NO_NODE:
        node.next = side.oldest
        side.oldest = index
    else:
        node.next = node_at(store.nodes, store.node_room, before).next
        node_at(store.nodes, store.node_room, before).next = index
    if node.next == NO_NODE:
        side.newest = index
    side.outstanding += 1
    return index


@inlined
def drop_oldest(side: Any, store: Any) -> None:
    index = side.oldest
    side.oldest = node_at(store.nodes, store.node_room, index).next
    if side.oldest == NO_NODE:
        side.newest = NO_NODE
    side.outstanding -= 1
    give_node(store, index)


@inlined
def send_bytes(side: Any, store: Any, start: int, end: int, fresh: int, time_ns: int) -> None:
    """Record when [start, end) was sent; bytes below ``fresh`` may be repeated."""
    if side.acked_known:
        start = max(start, side.acked)
    if start < fresh:
        _resend(side, store, start, min(end, fresh), time_ns)
        start = fresh
    if start < end:
        _insert(side, store, side.newest, start, end, time_ns, 0)
    while side.outstanding > store.max_outstanding:
        drop_oldest(side, store)
        side.segments_forgotten += 1


@jit
def _resend(side: Any, store: Any, start: int, end: int, time_ns: int) -> None:
    """Mark [start, end) as repeated: split nodes at its ends, fill uncovered parts."""
    before = NO_NODE
    index = side.oldest
    while index != NO_NODE and node_at(store.nodes, store.node_room, index).end <= start:
        before = index
        index = node_at(store.nodes, store.node_room, index).next
    while start < end:
        if index == NO_NODE or node_at(store.nodes, store.node_room, index).start >= end:
            _insert(side, store, before, start, end, time_ns, 1)
            return
        node = node_at(store.nodes, store.node_room, index)
        if start < node.start:
            before = _insert(side, store, before, start, node.start, time_ns, 1)
            if before == NO_NODE:
                return
            start = node.start
        if node.start < start:
            old_start = node.start
            node.start = start
            before = _insert(side, store, before, old_start, start, node.time_ns, node.repeated)
            if before == NO_NODE:
                return
        if node.end > end:
            old_end = node.end
            node.end = end
            _insert(side, store, index, end, old_end, node.time_ns, node.repeated)
        node.time_ns = time_ns
        node.repeated = 1
        start = node.end
        before = index
        index = node.next


@inlined
def acknowledge_bytes(side: Any, store: Any, upto: int) -> int:
    """Remove bytes below ``upto``; return when the newest unrepeated one was sent.

    NO_TIME also if a byte below ``upto`` was repeated after that: the ACK may have waited for it (Karn's rule).
    """
    sent_ns = signed(NO_TIME)
    repeated_ns = signed(NO_TIME)
    while side.oldest != NO_NODE:
        node = node_at(store.nodes, store.node_room, side.oldest)
        if node.start >= upto:
            break
        if node.repeated:
            repeated_ns = max(repeated_ns, node.time_ns)
        else:
            sent_ns = node.time_ns
        if node.end > upto:
            node.start = upto
            break
        drop_oldest(side, store)
    if repeated_ns > sent_ns:
        sent_ns = signed(NO_TIME)
    return sent_ns


@jit
def release(side: Any, store: Any) -> None:
    """Release all nodes of a finished direction."""
    while side.oldest != NO_NODE:
        drop_oldest(side, store)
    index = side.runs_below
    while index != NO_NODE:
        following = node_at(store.nodes, store.node_room, index).next
        give_node(store, index)
        index = following
    side.runs_below = NO_NODE
    side.runs = min(side.runs, 1)
