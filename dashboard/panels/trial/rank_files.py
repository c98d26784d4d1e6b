"""Bytes and waiting time in files of each rank, as a table of the trial's page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from analysis import numbers
from dashboard.panels.trial.placement import MOST_ROWS

_BYTES: Final = ("rchar", "wchar", "read_bytes", "write_bytes")


def rank_files(ranks: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return the ranks that read or wrote most; None if their files are not known."""
    rows = [rank for rank in ranks if rank.get("io")]
    if not rows:
        return None
    rows.sort(key=lambda rank: -sum(rank["io"].get(name, 0) for name in _BYTES))
    return {"rows": [_row(rank) for rank in rows[:MOST_ROWS]], "rows_left_out": max(0, len(rows) - MOST_ROWS)}


def _row(rank: Mapping[str, Any]) -> dict[str, Any]:
    io, waited_ms = rank["io"], rank["io"].get("wait_ms")
    values = [numbers.Amount.of(io.get(name), "B") for name in _BYTES]
    waited = numbers.NOTHING if waited_ms is None else numbers.Amount.of(waited_ms / 1e3, "s")
    return {"rank": numbers.grouped(rank["rank"]), "host": rank["host"], "values": [*values, waited]}
