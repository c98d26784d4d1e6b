"""Bytes through every host's port in the last milliseconds, and their maximum."""

from __future__ import annotations

from typing import Any, Final

from analysis.kernels import inlined, jit
from analysis.kernels.raw import signed
from analysis.packets import IPV4, IPV6, NO_TIME

STEP_NS: Final = 1_000_000
STEPS: Final = 10
"""A window is this many steps of whole milliseconds."""

_IP = IPV4 | IPV6


@inlined
def _end_window(steps: Any, peak: Any, port: int) -> None:
    held = 0
    for k in range(STEPS):
        held += steps[port, k]
    peak[port] = max(peak[port], held)


@inlined
def _move_on(steps: Any, newest: Any, peak: Any, port: int, step: int) -> None:
    """Move the port's window forward to end with millisecond ``step``."""
    _end_window(steps, peak, port)
    if step - newest[port] >= STEPS:
        for k in range(STEPS):
            steps[port, k] = 0
    else:
        for later in range(newest[port] + 1, step + 1):
            steps[port, later % STEPS] = 0
    newest[port] = step


@jit
def count_ports(
    kind: Any, src: Any, dst: Any, time_ns: Any, orig_len: Any, skip: Any, steps: Any, newest: Any, peak: Any
) -> None:
    """Add packets to ``steps`` (ports, STEPS) and past windows to ``peak`` (ports,).

    Port 2 h is what host h sent, 2 h + 1 what it received; hosts beyond the arrays are excluded. ``newest`` (ports,) is the port's
    latest millisecond. Packets from before the port's window (a clock stepped back) are excluded. The sum of a window only grows, so it
    is read when the window moves; ``end_windows`` reads the last ones.
    """
    ports = len(newest)
    step, step_from, slot = 0, signed(0), 0
    for i in range(len(kind)):
        now = time_ns[i]
        if not kind[i] & _IP or now == NO_TIME or (len(skip) and skip[i]):
            continue
        if now < step_from or now - step_from >= STEP_NS:  # spares most divisions
            step = now // STEP_NS
            step_from = step * STEP_NS
            slot = step % STEPS
        length = signed(orig_len[i])
        for direction in range(2):
            port = 2 * signed(src[i]) if direction == 0 else 2 * signed(dst[i]) + 1
            if port >= ports:
                continue
            if step != newest[port]:
                if step > newest[port]:
                    _move_on(steps, newest, peak, port, step)
                elif step <= newest[port] - STEPS:
                    continue
            steps[port, slot] += length


@jit
def end_windows(steps: Any, peak: Any) -> None:
    """Include the current windows in ``peak``."""
    for port in range(len(peak)):
        _end_window(steps, peak, port)
