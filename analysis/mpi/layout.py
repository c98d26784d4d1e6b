"""Layout of a rank's profile: a C header for the shim, NumPy types for reading."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Final

import numpy as np

from analysis.mpi.functions import FUNCTIONS, Function

MAGIC: Final = 0x3149504D45524957
BINS: Final = 400
SIZES: Final = 66
"""Sizes of messages: 0 empty, k from 2**(k-1) on."""
MOST_PEERS: Final = 4096
RING: Final = 200_000
"""Events of a trace that are kept: the last ones."""
CALIBRATED: Final = 256
"""Calls without content by which the shim measures itself at the start."""
FIRST_SHIFT: Final = 21
"""A bin begins with 2**21 ticks: about a millisecond."""
WIDEST_SHIFT: Final = 60
"""Above, a bin would be longer than all time since the machine started."""
ENDS: Final = {1: "finalize", 2: "abort", 3: "exit"}
WORD: Final = np.dtype("<u8")

PAGE: Final = (
    *("magic", "bytes", "table", "functions", "bin_count", "peers", "peers_at", "ring", "ring_at"),
    *("rank", "size", "process", "called", "began", "ended", "finalized", "how", "real_offset_ns"),
    *("inside", "entered", "last", "mpi", "paused", "paused_since", "events", "call_cost", "reading_ns", "bins_shown"),
)
"""Words of the first page, in order; then come the lists of LISTS."""
TOOL_WORDS: Final = 32
LISTS: Final = (("off_ns", 2), ("read_ns", 2), ("delay_ns", 3), ("clock", 4), ("bins", 2 * BINS), ("tools", TOOL_WORDS))
"""``off_ns``, ``read_ns`` and the first two of ``delay_ns`` (run delay): outside and inside MPI. The third is the
run delay of short pieces of both; NOT_KNOWN if the kernel does not count run delay. ``tools`` is a text: files of other
tools that stand in for MPI functions, with colons between."""
ROW: Final = ("calls", "ticks", "bytes", "longest")
PEER: Final = ("messages", "bytes")
EVENT: Final = ("began", "ended", "function", "peer", "bytes", "comm", "source", "no_core_before", "no_core_within")
"""``source``: whom a receive or an exchange took its message of. The last two: nanoseconds in
which the thread was runnable without a processor, since its call before and within this one."""
COUNTED: Final = {"instructions": (0, 1), "cycles": (0, 0), "cache_misses": (0, 3), "page_faults": (1, 2)}
"""Events of `perf_event_open(2)` that are counted outside MPI: type and config of linux/perf_event.h."""
COUNTERS: Final = ("version", "readings", "skipped", "reading", "counted", "enabled", "running", "level")
"""Words behind the trace; older files end there. ``reading``: ticks of one reading; ``counted``: ticks outside MPI that
readings surround; ``enabled``: ns of them on a CPU, and ``running`` those in which the group had counters; ``level``:
kernel.perf_event_paranoid + 2, 0 if not known."""
COUNTER_LISTS: Final = (("errors", len(COUNTED)), ("values", len(COUNTED)))
"""``errors``: errno of each event that could not be opened or read."""
NOT_KNOWN: Final = 2**64 - 1
"""Run delay if the kernel does not count it, or for threads other than the one that began MPI."""


def record(names: Iterable[str]) -> np.dtype[np.void]:
    """Return words with these names."""
    return np.dtype([(name, WORD) for name in names])


PAGE_TYPE: Final = np.dtype([*((name, WORD) for name in PAGE), *((name, WORD, count) for name, count in LISTS)])
COUNTERS_TYPE: Final = np.dtype(
    [*((name, WORD) for name in COUNTERS), *((name, WORD, count) for name, count in COUNTER_LISTS)]
)
SLOT_TYPE: Final = np.dtype([("rows", record(ROW), len(FUNCTIONS)), ("sizes", WORD, (2, SIZES)), ("unplaced", WORD)])


def table_number() -> int:
    """Return the version number of the file, by its functions and page words."""
    functions = [f"{function.name} {function.kind}" for function in FUNCTIONS]
    return zlib.crc32("\n".join([*functions, *PAGE, *(f"{name} {count}" for name, count in LISTS)]).encode())


def counters_version() -> int:
    """Return the version number of the counters, by their words and events."""
    return zlib.crc32(" ".join([*COUNTERS, *(f"{name} {count}" for name, count in COUNTER_LISTS), *COUNTED]).encode())


def as_c() -> str:
    """Return the same as a header of C."""
    collective = [number for number, function in enumerate(FUNCTIONS) if _is_collective(function)]
    constants = {
        "MAGIC": f"0x{MAGIC:x}ull", "TABLE": f"{table_number()}u", "FUNCTIONS": len(FUNCTIONS), "BINS": BINS, "SIZES": SIZES,
        "MOST_PEERS": MOST_PEERS, "RING": RING, "CALIBRATED": CALIBRATED, "FIRST_SHIFT": f"{FIRST_SHIFT}ull",
        "NOT_KNOWN": f"{NOT_KNOWN}ull", "COUNTED": len(COUNTED), "COUNTERS_VERSION": f"{counters_version()}u",
        "FIRST_COLLECTIVE": collective[0], "AFTER_COLLECTIVE": collective[-1] + 1,
        **{f"BY_{name.upper()}": number for number, name in ENDS.items()},
    }  # fmt: skip
    return "\n".join(
        [
            *(f"#define {name} {value}" for name, value in constants.items()),
            f"struct row {{ u64 {', '.join(ROW)}; }};",
            f"struct peer {{ u64 {', '.join(PEER)}; }};",
            "struct event { u64 began, ended, function; int64_t peer; u64 bytes, comm; int64_t source;",
            "               u64 no_core_before, no_core_within; };",
            "struct slot { struct row rows[FUNCTIONS]; u64 sizes[2][SIZES], unplaced; };",
            f"struct page {{ u64 {', '.join(PAGE)}, off_ns[2], read_ns[2], delay_ns[3];",
            "              struct { u64 tick, ns; } clock[2]; u64 bins[2][BINS];",
            f"              char tools[8 * {TOOL_WORDS}]; }};",
            f"struct counters {{ u64 {', '.join(COUNTERS)}, errors[COUNTED], values[COUNTED]; }};",
            "static const struct { unsigned type, config; } counted_events[COUNTED] = {",
            f"    {', '.join(f'{{{kind}, {config}}}' for kind, config in COUNTED.values())}}};",
            "",
        ]
    )


def _is_collective(function: Function) -> bool:
    return function.kind == "collective"
