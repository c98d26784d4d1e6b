"""Profiles of ranks as bytes, made by the layout alone."""

import numpy as np

from analysis.mpi import layout
from analysis.mpi.functions import FUNCTIONS

PLACES = {function.name: index for index, function in enumerate(FUNCTIONS)}
PAGE_BYTES, SLOT_BYTES = layout.PAGE_TYPE.itemsize, layout.SLOT_TYPE.itemsize
NS = 1_000_000_000


def page_of(
    rank, size, *, window_s, calls=(), messages=(), off=(0.0, 0.0), delay=None, trace=(), counters=None, **words
):
    """Return the page of a rank that counts in nanoseconds.

    ``calls``: (function, calls, seconds, bytes); ``messages``: (to, messages, bytes); ``off``: share of the useful time
    and of the time inside MPI that was on no processor; ``delay``: seconds of run delay in long pieces outside and
    inside MPI and in short pieces, None for a kernel that does not count it; ``counters``: words of the counters,
    None for a file of an older version; ``words``: others of the page.
    """
    page = np.zeros(1, layout.PAGE_TYPE)
    slots = np.zeros(2, layout.SLOT_TYPE)
    peers = np.zeros(2 * size, layout.record(layout.PEER))
    began = 5 * NS
    for name, count, seconds, carried in calls:
        slots[0]["rows"][PLACES[name]] = (count, int(seconds * NS), carried, int(seconds * NS) // count)
    for to, count, carried in messages:
        peers[to] = (count, carried)
        slots[0]["sizes"][0][(carried // count).bit_length()] += count
    inside = sum(int(seconds * NS) for _, _, seconds, _ in calls)
    ring_at = PAGE_BYTES + 2 * SLOT_BYTES + peers.nbytes
    fields = {
        "magic": layout.MAGIC, "table": layout.table_number(), "functions": len(FUNCTIONS), "bin_count": layout.BINS,
        "peers": size, "peers_at": PAGE_BYTES + 2 * SLOT_BYTES, "ring_at": ring_at, "ring": layout.RING if trace else 0,
        "rank": rank, "size": size, "called": began - NS, "began": began, "ended": began + int(window_s * NS), "how": 1,
        "mpi": inside, "call_cost": 50 * layout.CALIBRATED, "bins_shown": layout.FIRST_SHIFT << 1, "events": len(trace),
        "last": began + int(window_s * NS) - 1000,
    }  # fmt: skip
    for name, value in {**fields, **words}.items():
        page[0][name] = value
    page[0]["clock"] = [NS, NS, began, began]
    page[0]["read_ns"] = [NS, NS]
    page[0]["off_ns"] = [int(share * NS) for share in off]
    page[0]["delay_ns"] = [0, 0, layout.NOT_KNOWN] if delay is None else [int(seconds * NS) for seconds in delay]
    ring = np.zeros(layout.RING if trace else 0, layout.record(layout.EVENT))
    not_told = (0,) * len(layout.EVENT)
    for index, event in enumerate(trace):
        ring[index % layout.RING] = (*event, *not_told[len(event) :])
    data = page.tobytes() + slots.tobytes() + peers.tobytes() + ring.tobytes()
    if counters is None:
        return data
    block = np.zeros(1, layout.COUNTERS_TYPE)
    for name, value in ({"version": layout.counters_version()} | counters).items():
        block[0][name] = value
    return data + block.tobytes()
