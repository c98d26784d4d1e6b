"""The link's certificate as the trial page shows it: asked against achieved per direction, and the round trips."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analysis import numbers
from experiments.models import Trial

_STATES = {True: ("kept", "ok"), False: ("outside", "warn"), None: ("", "")}


def link_panel(trial: Trial) -> dict[str, Any] | None:
    """What the panel shows; None for a trial without a certificate."""
    certificate = trial.certificate
    if not certificate:
        return None
    return {
        "kept": bool(certificate.get("kept")),
        "reasons": certificate.get("reasons", []),
        "earlier": certificate.get("earlier", []),
        "attempts": certificate.get("attempts", 1),
        "duration": numbers.duration(certificate.get("duration_s")),
        "rows": [_row(row) for row in certificate.get("rows", ())],
        "round_trips": [_round_trips(trip) for trip in certificate.get("round_trips", ())],
        "back_end": trial.conditions.get("back_end", ""),
        "asked": trial.conditions.get("link_asked", ""),
    }


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    words, tone = _STATES[row.get("kept")]
    interval = row.get("interval")
    return {
        "way": f"{row['source']} → {row['target']}",
        "quantity": str(row["quantity"]).replace("rate of a short burst", "Rate of a short burst"),
        "asked": _amount(row.get("asked"), row["unit"]),
        "achieved": _amount(row.get("achieved"), row["unit"]),
        "interval": f"{_amount(interval[0], row['unit'])} to {_amount(interval[1], row['unit'])}" if interval else "",
        "tolerance": row.get("tolerance", ""),
        "state": words,
        "tone": tone,
    }


def _amount(value: float | None, unit: str) -> str:
    if value is None:
        return numbers.NOTHING
    if unit == "":
        return f"{numbers.significant(100 * value, 3)}{numbers.NARROW}%"
    if unit == "packets":
        return f"{numbers.significant(value, 3)}{numbers.NARROW}packets"
    if unit == "B":
        return f"{numbers.grouped(value)}{numbers.NARROW}B"
    number, prefixed = numbers.quantity(value, unit)
    return f"{number}{numbers.NARROW}{prefixed}"


def _round_trips(trip: Mapping[str, Any]) -> dict[str, Any]:
    shown = ("min_s", "p05_s", "median_s", "p95_s", "max_s")
    return {
        "between": f"{trip['source']} and {trip['target']}",
        "probes": trip.get("probes", 0),
        "values": [_amount(trip.get(name), "s") for name in shown],
    }
