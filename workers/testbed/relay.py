"""Wires between TAP devices: `python3 -I -S relay.py LIBRARY WIRES`.

Runs until killed. WIRES is a JSON list of [LEFT, RIGHT, TO_RIGHT, TO_LEFT]; TO_RIGHT and TO_LEFT are objects with any
of delay_s, jitter_s, distribution, loss, loss_burst, rate_bps. For kernels without netem. LIBRARY is compiled from
relay.c, which does the work. Standard library only, one file: it runs inside the test-bed's namespaces with any Python.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import resource
import sys
from typing import Any

MEMORY_SHARE = 0.25
"""Of the machine's memory, for frames on their way in one process: a program of a trial can send any number of them."""


def load(path: str) -> ctypes.CDLL:
    """Return the library with the types of its functions. Raises OSError."""
    library = ctypes.CDLL(path)
    library.relay_way.argtypes = [*[ctypes.c_double] * 2, ctypes.c_int, *[ctypes.c_double] * 3, ctypes.c_uint64]
    library.relay_way.restype = ctypes.c_void_p
    library.relay_run.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_char_p), ctypes.POINTER(ctypes.c_void_p)]
    return library


def way(library: ctypes.CDLL, requested: dict[str, Any]) -> int:
    """Return a direction of a wire, for the library's functions."""
    pointer = library.relay_way(
        requested.get("delay_s", 0.0),
        requested.get("jitter_s", 0.0),
        requested.get("distribution", "uniform") == "normal",
        requested.get("loss", 0.0),
        requested.get("loss_burst", 1.0),
        requested.get("rate_bps") or 0.0,
        random.getrandbits(64),
    )
    if not pointer:
        raise MemoryError
    return int(pointer)


def main(path: str, text: str) -> None:
    """Attach to all devices and relay; frames beyond the memory are lost."""
    most_bytes = int(MEMORY_SHARE * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    resource.setrlimit(resource.RLIMIT_DATA, (most_bytes, most_bytes))
    library = load(path)
    wires = json.loads(text)
    names = [name.encode() for left, right, _, _ in wires for name in (left, right)]
    ways = [way(library, requested) for _, _, to_right, to_left in wires for requested in (to_right, to_left)]
    problem = library.relay_run(
        len(names), (ctypes.c_char_p * len(names))(*names), (ctypes.c_void_p * len(ways))(*ways)
    )
    raise OSError(problem, os.strerror(problem))


if __name__ == "__main__":
    main(*sys.argv[1:])
