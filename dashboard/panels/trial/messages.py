"""What the ranks of a trial asked MPI to send each other, beside what the wire carried between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from analysis import numbers
from dashboard.charts.ranks_asked import asked_matrix

_MOST_PAIRS: Final = 12
_ONE_HOST: Final = "one host"
_NOT_TOLD: Final = "–"


def messages_by_pair(kept: Mapping[str, Any], analysis: Mapping[str, Any] | None, *, leads: str = "") -> dict[str, Any]:
    """Return the matrix of a profile's messages and its largest pairs, with the bytes on the wire where its ranks are known.

    ``leads``: where the packets from rank to rank are, for the cells of the matrix then.
    """
    hosts = {row["rank"]: row["host"] for row in kept["ranks"]}
    told = ((analysis or {}).get("matrices") or {}).get("ranks") or {}
    wire = _wire_bytes(told)
    pairs = kept["pairs"]
    return {
        "figure": asked_matrix(pairs, leads=leads if wire else ""),
        "rows": [_row(pair, hosts, wire) for pair in pairs[:_MOST_PAIRS]],
        "others": max(0, len(pairs) - _MOST_PAIRS) + kept["pairs_left_out"],
        "has_wire": bool(wire),
        "by_host_alone": told.get("by_host_alone") or "",
    }


def _wire_bytes(matrix: Mapping[str, Any]) -> dict[tuple[str, str], float]:
    labels = [str(label) for label in matrix.get("labels") or []]
    return {
        (source, target): value
        for source, row in zip(labels, matrix.get("wire_bytes") or [], strict=False)
        for target, value in zip(labels, row, strict=False)
    }


def _row(pair: Sequence[int], hosts: Mapping[int, str], wire: Mapping[tuple[str, str], float]) -> dict[str, Any]:
    source, target, messages, size = pair
    carried = wire.get((str(source), str(target)))
    together = hosts.get(source) == hosts.get(target)
    return {
        "name": f"{numbers.grouped(source)} → {numbers.grouped(target)}",
        "hosts": " → ".join(dict.fromkeys(filter(None, (hosts.get(source, ""), hosts.get(target, ""))))),
        "messages": numbers.grouped(messages),
        "bytes": numbers.amount(size, "B") if size else numbers.NOTHING,
        "wire": _ONE_HOST if together else numbers.amount(carried, "B") if carried else _NOT_TOLD,
    }
