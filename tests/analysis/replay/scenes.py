"""Calls of ranks whose replay is known exactly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from analysis.mpi.calls import CALL, Calls
from tests.analysis.mpi.pages import PLACES

Event = tuple[int, str, int, int, int, int]
"""(rank, function, peer, bytes, began, ended), in nanoseconds."""


def calls_of(events: Iterable[Event], left_out: Mapping[int, int] | None = None) -> Calls:
    ordered = sorted(events, key=lambda event: (event[0], event[4]))
    unset = [-1] * (len(CALL.names) - 6)
    rows = np.array([(r, PLACES[name], *rest, *unset) for r, name, *rest in ordered], CALL)
    return Calls(rows, left_out or dict.fromkeys({event[0] for event in ordered}, 0))


def one_after_another(rank: int, *called: tuple[str, int, int]) -> list[Event]:
    """Calls of 1 ms with 1 ms of computing before each: (function, peer, bytes)."""
    return [(rank, *call, 2_000_000 * n + 1_000_000, 2_000_000 * n + 2_000_000) for n, call in enumerate(called)]


def ping_pong(messages: int, size: int) -> Calls:
    """Messages back and forth between two ranks; each call takes 1 ms."""
    events: list[Event] = []
    for n in range(messages):
        began, source = 1_000_000 * n, n % 2
        events.append((source, "Send", 1 - source, size, began, began + 1_000_000))
        events.append((1 - source, "Recv", source, 0, began, began + 1_000_000))
    return calls_of(events)
