"""Live view of a running trial: its traffic now, and its rates and ranks so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import structlog

from analysis import numbers
from analysis.errors import CaptureError
from workers.hosts.sampling import HostSample

if TYPE_CHECKING:
    from analysis.capture.follow import Follower

MOST: Final = 120
"""Most points; then pairs are merged, and each further point is the mean of twice as many samples."""
QUANTITIES: Final = ("Bps", "pps")
_DIGITS: Final = 4
log = structlog.get_logger()
Tally = Callable[[], tuple[int, int]]
"""Packets so far and their bytes on the wire."""


class LiveTraffic:
    """Totals and rates of the last second. A context manager.

    A recorder with a ``tally`` reports totals. The file of another one is decoded as it grows: 2 ms per 30 000 packets,
    measured on 2 cores; loading the decoder costs 0.3 s once per worker, so the first look happens before the program is
    launched. If the capture cannot be followed, the interface counters are shown.
    """

    def __init__(self, capture_file: Path | None = None, *, tally: Tally | None = None) -> None:
        self._stack = ExitStack()
        self._tally = tally
        self._before = (time.monotonic(), 0, 0)
        self._follower: Follower | None = None
        if capture_file is not None:
            from analysis.capture.follow import follow

            self._follower = self._stack.enter_context(follow(capture_file))
            self._look()

    def __enter__(self) -> LiveTraffic:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def progress(self, hosts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return ``packets``, ``pps`` and ``Bps`` of the last second, and the source.

        ``packets`` is None if not recorded. ``hosts`` are the rows of workers.hosts.sampling.shares.
        """
        if self._tally is not None:
            return self._tallied(self._tally)
        self._look()
        if self._follower is None:
            sent = {"pps": sum(row["tx_pps"] for row in hosts), "Bps": sum(row["tx_Bps"] for row in hosts)}
            return {"packets": None, **sent, "from": "interfaces"}
        seen = self._follower.latest
        rate = None if seen.bps is None else seen.bps / 8
        return {"packets": seen.packets, "pps": seen.pps, "Bps": rate, "from": "capture"}

    def _tallied(self, tally: Tally) -> dict[str, Any]:
        then, packets_then, bytes_then = self._before
        packets, wire_bytes = tally()
        self._before = (now := time.monotonic(), packets, wire_bytes)
        length_s = max(now - then, 1e-9)
        rates = {"pps": (packets - packets_then) / length_s, "Bps": (wire_bytes - bytes_then) / length_s}
        return {"packets": packets, **rates, "from": "capture"}

    def _look(self) -> None:
        if self._follower is None:
            return
        try:
            self._follower.poll()
        except CaptureError as error:
            log.info("capture_not_followed", reason=str(error))
            self._follower = None


class LiveHistory:
    """Rates over the time of the launch, and the CPU time of every rank."""

    def __init__(self) -> None:
        self._points: list[dict[str, float]] = []
        self._looks: list[dict[str, float]] = []
        self._of_each = 1
        self._ranks: dict[str, tuple[str, float]] = {}

    def add(self, elapsed_s: float, rates: Mapping[str, Any], hosts: Sequence[HostSample]) -> None:
        """Add one look; an unknown rate counts as zero."""
        self._looks.append({"t_s": elapsed_s, **{name: float(rates.get(name) or 0.0) for name in QUANTITIES}})
        if len(self._looks) >= self._of_each:
            self._points.append(_mean(self._looks))
            self._looks = []
        if len(self._points) >= MOST:
            self._points = [_mean(self._points[i : i + 2]) for i in range(0, MOST, 2)]
            self._of_each *= 2
        for host in hosts:
            for rank, cpu_s in host.ranks.items():
                earlier = self._ranks.get(rank, (host.host, 0.0))
                self._ranks[rank] = (host.host, max(cpu_s, earlier[1]))  # the value of an ended rank stays

    def columns(self) -> dict[str, Any]:
        """Return columns of numbers for the page, ranks in their order."""
        ranks = sorted(self._ranks.items(), key=lambda item: int(item[0]))
        return {
            "history": {
                name: [numbers.rounded(point[name], _DIGITS) for point in self._points] for name in ("t_s", *QUANTITIES)
            },
            "ranks": [[int(rank), host, round(cpu_s, 2)] for rank, (host, cpu_s) in ranks],
        }


def _mean(looks: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return mean rates; the time is that of the last look."""
    rates = {name: sum(look[name] for look in looks) / len(looks) for name in QUANTITIES}
    return {"t_s": looks[-1]["t_s"], **rates}
