"""A rank's profile: the shim's bytes as numbers; everything is checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from analysis.mpi import layout
from analysis.mpi.counters import Counters, read_counters
from analysis.mpi.functions import FUNCTIONS

_MOST_RANKS: Final = 1 << 24
_RATES: Final = (1e6, 2e10)
"""Ticks per second of any clock there is."""


class NotAProfile(ValueError):
    """The bytes are not a profile; the message is a part of a sentence."""


@dataclass(frozen=True, slots=True)
class Row:
    """One function: ``seconds`` inside, the ``longest_s`` call, requested ``bytes``."""

    name: str
    calls: int
    seconds: float
    bytes: int
    longest_s: float


@dataclass(frozen=True, slots=True)
class Trace:
    """The last calls: ``rows`` of `layout.EVENT`, ns of the host's CLOCK_MONOTONIC."""

    rows: npt.NDArray[np.void]
    left_out: int


@dataclass(frozen=True, slots=True)
class RankProfile:
    """One rank from the end of MPI_Init to the start of MPI_Finalize.

    Without MPI_Finalize, to its end. Times in seconds. ``useful_s + mpi_s`` is ``window_s``. ``no_core_s`` is the part
    of the useful time, ``blocked_s`` that of the time inside MPI in which the thread was on no processor; ``delay_s``
    is of each of them (outside, inside) the run delay: the thread was runnable. None if the kernel does not count it.
    ``of_others``: calls of threads other than the one that began MPI; their time is not in the split.
    """

    rank: int
    size: int
    began_ns: int
    """CLOCK_MONOTONIC of its host."""
    real_offset_ns: int
    """Difference of CLOCK_REALTIME from it."""
    window_s: float
    mpi_s: float
    no_core_s: float
    blocked_s: float
    delay_s: tuple[float, float] | None
    end: str
    """finalize, abort, exit or killed."""
    inside: str
    """The function in which it was killed, or empty."""
    init_s: float
    call_cost_s: float
    """Cost of counting one call, measured at the start."""
    rows: tuple[Row, ...]
    of_others: tuple[Row, ...]
    peers: npt.NDArray[np.int64]
    """Messages and bytes sent to each world rank, shape (ranks, 2)."""
    sizes: npt.NDArray[np.int64]
    """Messages by size, shape (2, 66): point-to-point, collective; 0 empty, k from 2**(k-1) bytes on."""
    bins: npt.NDArray[np.float64]
    """Seconds inside MPI in each ``bin_s`` of the window."""
    bin_s: float
    trace: Trace | None = field(default=None)
    tools: tuple[str, ...] = ()
    """Files of other tools whose functions replaced those of MPI."""
    counters: Counters = field(default_factory=Counters)

    @property
    def useful_s(self) -> float:
        return self.window_s - self.mpi_s

    @property
    def computing_s(self) -> float:
        return self.useful_s - self.no_core_s

    @property
    def calls(self) -> int:
        return sum(row.calls for row in (*self.rows, *self.of_others))


def read(data: bytes, *, killed_ns: int | None = None, most_calls: int = layout.RING) -> RankProfile:
    """Read a profile; ``killed_ns`` is the end of a killed program.

    ``killed_ns`` is on the clock of the program's host. Of a trace the last ``most_calls`` are kept. Raises NotAProfile.
    """
    page, slots, peers = _parts(data)
    rate = _ticks_per_s(page)
    began = int(page["began"])
    ended, end = _end(page, rate, killed_ns)
    inside = int(page["inside"]) if end == "killed" else 0
    mpi = int(page["mpi"])
    if inside:
        mpi += max(0, ended - int(page["entered"]))
    paused = int(page["paused"]) + (max(0, ended - int(page["paused_since"])) if page["paused_since"] else 0)
    window = max(0, ended - began - paused)
    mpi = min(mpi, window)
    useful_s, mpi_s = (window - mpi) / rate, mpi / rate
    off = [int(o) / int(r) if r else 0.0 for o, r in zip(page["off_ns"], page["read_ns"], strict=True)]
    shift, which = int(page["bins_shown"]) >> 1, int(page["bins_shown"]) & 1
    if shift >= layout.WIDEST_SHIFT:  # a program can write anything there, and 1 << 2**40 would take 128 GiB
        raise NotAProfile("its intervals are too long")
    count = min(layout.BINS, (max(0, ended - began) >> shift) + 1)
    return RankProfile(
        rank=int(page["rank"]),
        size=int(page["size"]),
        began_ns=_to_ns(page, rate, began),
        real_offset_ns=int(page["real_offset_ns"]),
        window_s=window / rate,
        mpi_s=mpi_s,
        no_core_s=min(1.0, off[0]) * useful_s,
        blocked_s=min(1.0, off[1]) * mpi_s,
        delay_s=_run_delay_s(page, min(1.0, off[0]) * useful_s, min(1.0, off[1]) * mpi_s),
        end=end,
        inside=FUNCTIONS[inside - 1].name if 0 < inside <= len(FUNCTIONS) else "",
        init_s=max(0, began - int(page["called"])) / rate,
        call_cost_s=int(page["call_cost"]) / layout.CALIBRATED / rate,
        rows=_rows(slots[0], rate),
        of_others=_rows(slots[1], rate),
        peers=peers,
        sizes=slots["sizes"].sum(axis=0).astype(np.int64),
        bins=page["bins"].reshape(2, layout.BINS)[which, :count] / rate,
        bin_s=(1 << shift) / rate,
        trace=_trace(data, page, rate, most_calls),
        tools=tuple(filter(None, page["tools"].tobytes().split(b"\0")[0].decode(errors="replace").split(":"))),
        counters=read_counters(data, page, useful_ticks=window - mpi, rate=rate),
    )


def _parts(data: bytes) -> tuple[Any, npt.NDArray[np.void], npt.NDArray[np.int64]]:
    """Return the page, the two slots, and messages and bytes per peer."""
    least = layout.PAGE_TYPE.itemsize + 2 * layout.SLOT_TYPE.itemsize
    if len(data) < least:
        raise NotAProfile("the file is too short")
    page = np.frombuffer(data, layout.PAGE_TYPE, count=1)[0]
    if page["magic"] != layout.MAGIC:
        raise NotAProfile("the program ended before MPI_Init had ended")
    if page["table"] != layout.table_number() or page["functions"] != len(FUNCTIONS):
        raise NotAProfile("it was written by another version")
    peer = layout.record(layout.PEER)
    peers, rank, size = int(page["peers"]), int(page["rank"]), int(page["size"])
    fits = peers <= layout.MOST_PEERS and len(data) >= least + 2 * peers * peer.itemsize
    if not fits or not rank < size < _MOST_RANKS or page["peers_at"] != least:
        raise NotAProfile("its sizes do not fit together")
    slots = np.frombuffer(data, layout.SLOT_TYPE, count=2, offset=layout.PAGE_TYPE.itemsize)
    words = np.frombuffer(data, layout.WORD, count=2 * 2 * peers, offset=least)
    return page, slots, words.reshape(2, peers, 2).sum(axis=0).astype(np.int64)


def _ticks_per_s(page: Any) -> float:
    (tick, ns), (later_tick, later_ns) = page["clock"].reshape(2, 2).tolist()
    if later_ns <= ns or later_tick <= tick:
        raise NotAProfile("its clocks do not advance")
    rate = (later_tick - tick) / (later_ns - ns) * 1e9
    if not _RATES[0] <= rate <= _RATES[1] or page["real_offset_ns"] >> 62:
        raise NotAProfile("its clocks do not agree")
    return float(rate)


def _to_ns(page: Any, rate: float, tick: int) -> int:
    _, _, at, ns = page["clock"].tolist()
    return int(ns + (tick - at) / rate * 1e9)


def _end(page: Any, rate: float, killed_ns: int | None) -> tuple[int, str]:
    if page["ended"]:
        return int(page["ended"]), layout.ENDS.get(int(page["how"]), "exit")
    _, _, at, ns = page["clock"].tolist()
    last = max(int(page["last"]), int(page["entered"]) if page["inside"] else 0)
    return (last if killed_ns is None else max(last, at + int((killed_ns - ns) * rate / 1e9))), "killed"


def _run_delay_s(page: Any, no_core_s: float, blocked_s: float) -> tuple[float, float] | None:
    """Return the run delay outside and inside MPI.

    That of short pieces is divided in proportion to the remaining time on no processor.
    """
    *long_ns, short_ns = page["delay_ns"].tolist()
    if short_ns == layout.NOT_KNOWN:
        return None
    off_s = (no_core_s, blocked_s)
    delay_s = [min(ns / 1e9, most) for ns, most in zip(long_ns, off_s, strict=True)]
    left_s = [most - delay for most, delay in zip(off_s, delay_s, strict=True)]
    part = min(1.0, short_ns / 1e9 / sum(left_s)) if sum(left_s) > 0 else 0.0
    outside, inside = (delay + part * remaining for delay, remaining in zip(delay_s, left_s, strict=True))
    return outside, inside


def _rows(slot: Any, rate: float) -> tuple[Row, ...]:
    return tuple(
        Row(function.name, calls, ticks / rate, size, longest / rate)
        for function, (calls, ticks, size, longest) in zip(FUNCTIONS, slot["rows"].tolist(), strict=True)
        if calls
    )


def _trace(data: bytes, page: Any, rate: float, most_calls: int) -> Trace | None:
    capacity, at, written = int(page["ring"]), int(page["ring_at"]), int(page["events"])
    event = layout.record(layout.EVENT)
    if not capacity:
        return None
    if capacity != layout.RING or len(data) < at + capacity * event.itemsize:
        raise NotAProfile("its trace does not fit into the file")
    rows = np.frombuffer(data, event, count=min(written, capacity), offset=at)
    if written > capacity:
        rows = np.roll(rows, -(written % capacity))
    _, _, tick, ns = page["clock"].tolist()
    rows = rows[rows["function"] < len(FUNCTIONS)]
    left_out = max(0, written - capacity) + max(0, len(rows) - most_calls)
    rows = rows[-most_calls:].copy()
    for name in ("began", "ended"):
        rows[name] = ns + (rows[name].astype(np.int64) - tick) / rate * 1e9
    return Trace(rows, left_out)
