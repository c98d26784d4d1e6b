"""The relay's functions, with a clock that tests set themselves."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from workers.testbed import relay
from workers.testbed.probe import made_relay


@cache
def library() -> ctypes.CDLL:
    """The library with the types of what only tests call."""
    loaded = relay.load(str(made_relay()))
    way, moment_ns = ctypes.c_void_p, ctypes.c_int64
    loaded.relay_delay_ns.argtypes, loaded.relay_delay_ns.restype = [way], moment_ns
    loaded.relay_loses.argtypes = [way]
    loaded.relay_due_ns.argtypes, loaded.relay_due_ns.restype = [way, moment_ns], moment_ns
    loaded.relay_leaves_ns.argtypes, loaded.relay_leaves_ns.restype = [way, moment_ns], moment_ns
    loaded.relay_went.argtypes = [way, moment_ns, moment_ns, ctypes.c_size_t]
    return loaded


class Way:
    """One direction of a wire."""

    def __init__(self, **asked: Any) -> None:
        self.pointer = relay.way(library(), asked)

    def delays_ns(self, count: int) -> list[int]:
        """The delays of so many frames."""
        return [library().relay_delay_ns(self.pointer) for _ in range(count)]

    def losses(self, count: int) -> list[bool]:
        """Return for each of ``count`` frames if it is lost."""
        return [bool(library().relay_loses(self.pointer)) for _ in range(count)]

    def due_ns(self, read_ns: int) -> int:
        """When a frame that is read at a moment is due."""
        return int(library().relay_due_ns(self.pointer, read_ns))

    def leaves_ns(self, read_ns: list[int], frame_bytes: int, awake_ns: int = 0) -> list[int]:
        """Return when frames leave a relay that has no core before `awake_ns`."""
        remaining = []
        for due_ns in [self.due_ns(moment_ns) for moment_ns in read_ns]:
            awake_ns = max(awake_ns, int(library().relay_leaves_ns(self.pointer, due_ns)))
            library().relay_went(self.pointer, due_ns, awake_ns, frame_bytes)
            remaining.append(awake_ns)
        return remaining
