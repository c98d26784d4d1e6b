"""Why the ranks of one traced trial waited: its calls beside its packets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from analysis.capture.tables import tables_of
from analysis.mpi import wait_tables
from analysis.mpi.calls import Calls
from analysis.mpi.streams import StreamAccumulator, Wire
from analysis.mpi.waits import explained

NO_TRACE: Final = "the experiment keeps no calls (profile: trace)"
NO_CALLS: Final = "the ranks left no calls"
OTHER_CLOCKS: Final = "calls and packets have one clock only where all hosts are this machine's"

Explained = tuple[dict[str, float], dict[str, str], dict[str, Any] | None]
"""Metrics, why others are absent, and the table; None where there is none."""


def absent(reason: str) -> Explained:
    """Return that no wait is explained."""
    return {}, dict.fromkeys(wait_tables.METRICS, reason), None


def explain_waits(
    calls: Calls,
    capture: Path,
    *,
    windows_s: Mapping[int, float],
    hosts: Mapping[int, str],
    link_rate_bps: float | None,
) -> Explained:
    """Explain the waits of a trial. ``windows_s``, ``hosts``: of each rank. Raises analysis.CaptureError."""
    waits = explained(calls, wire_of(capture), link_rate_bps, hosts=hosts)
    return *wait_tables.metrics(waits, windows_s), wait_tables.table(waits)


def wire_of(capture: Path) -> Wire:
    """Return what the ranks sent each other. Raises analysis.CaptureError."""
    packets = StreamAccumulator()
    for table in tables_of(capture):
        packets.update(table)
    return packets.result()
