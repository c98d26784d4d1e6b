"""What a running trial shows of its traffic: the growing capture read as it comes, or the interfaces' own counters."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import structlog

from analysis.capture.follow import Follower, follow
from analysis.errors import CaptureError

log = structlog.get_logger()
Tally = Callable[[], tuple[int, int]]
"""Packets so far and their bytes on the wire."""


class LiveTraffic:
    """Totals and rates of the last second. A context manager.

    A recorder that can ``tally`` is asked for its totals. The file of another one is decoded as it grows: 2 ms per 30 000
    packets, measured on 2 cores; loading the decoder costs 0.3 s once per worker, so the first look is taken here, before
    the program is launched. A capture that cannot be followed shows the counters instead.
    """

    def __init__(self, capture_file: Path | None = None, *, tally: Tally | None = None) -> None:
        self._stack = ExitStack()
        self._tally = tally
        self._before = (time.monotonic(), 0, 0)
        self._follower: Follower | None = None
        if capture_file is not None:
            self._follower = self._stack.enter_context(follow(capture_file))
            self._look()

    def __enter__(self) -> LiveTraffic:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def progress(self, hosts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """``packets`` so far (None: nothing is recorded), ``pps`` and ``Bps`` of the last second, and where they are from.

        ``hosts`` are the rows of workers.hosts.sampling.shares.
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
