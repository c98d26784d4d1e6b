"""Bytes through every host's port and direction in the last milliseconds, and the most there ever were."""

from __future__ import annotations

from typing import Any, Final

from analysis.kernels import jit
from analysis.kernels.raw import signed
from analysis.packets import IPV4, IPV6, NO_TIME

STEP_NS: Final = 1_000_000
STEPS: Final = 10
"""A window is this many steps of whole milliseconds."""

_IP = IPV4 | IPV6


@jit
def count_ports(
    kind: Any, src: Any, dst: Any, time_ns: Any, orig_len: Any, skip: Any, steps: Any, newest: Any, held: Any, peak: Any
) -> None:
    """Add packets to ``steps`` (ports, STEPS), the running sums ``held`` (ports,) and the largest of them, ``peak`` (ports,).

    Port 2 h is what host h sent, 2 h + 1 what it received; hosts beyond the arrays are left out. ``newest`` (ports,) is the
    port's latest millisecond. A packet from before the port's window (a clock stepped back) is left out.
    """
    ports = len(newest)
    step, step_from = 0, signed(0)
    for i in range(len(kind)):
        now = time_ns[i]
        if not kind[i] & _IP or now == NO_TIME or (len(skip) and skip[i]):
            continue
        if now < step_from or now - step_from >= STEP_NS:  # spares most divisions
            step = now // STEP_NS
            step_from = step * STEP_NS
        length = signed(orig_len[i])
        for direction in range(2):
            port = 2 * signed(src[i]) if direction == 0 else 2 * signed(dst[i]) + 1
            if port >= ports:
                continue
            ahead = step - newest[port]
            if ahead >= STEPS:
                for k in range(STEPS):
                    steps[port, k] = 0
                held[port] = 0
                newest[port] = step
            elif ahead > 0:
                for later in range(newest[port] + 1, step + 1):
                    held[port] -= steps[port, later % STEPS]
                    steps[port, later % STEPS] = 0
                newest[port] = step
            elif ahead <= -STEPS:
                continue
            steps[port, step % STEPS] += length
            held[port] += length
            if held[port] > peak[port]:
                peak[port] = held[port]
