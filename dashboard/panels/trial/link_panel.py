"""The link certificate of a trial: requested and achieved link."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from analysis import numbers
from experiments.models import Trial
from workers.testbed.verdict import unit_of

_STATES = {True: ("kept", "ok"), False: ("outside", "warn"), None: ("", "")}


def link_panel(trial: Trial) -> dict[str, Any] | None:
    """Return the context of the panel; None without a certificate."""
    certificate = trial.certificate
    if not certificate:
        return None
    return {
        "kept": bool(certificate.get("kept")),
        "reasons": certificate.get("reasons", []),
        "earlier": certificate.get("earlier", []),
        "attempts": certificate.get("attempts", 1),
        "age": _age(trial, certificate),
        "duration": numbers.duration(certificate.get("duration_s")),
        "rows": [_row(row) for row in certificate.get("rows", ())],
        "round_trips": [_round_trips(trip) for trip in certificate.get("round_trips", ())],
        "back_end": trial.conditions.get("back_end", ""),
        "asked": trial.conditions.get("link_asked", ""),
    }


def _age(trial: Trial, certificate: Mapping[str, Any]) -> str:
    """Return how long before the trial the link was measured; empty if unknown."""
    if trial.preparing_at is None or not certificate.get("measured_at"):
        return ""
    age_s = (trial.preparing_at - datetime.fromisoformat(certificate["measured_at"])).total_seconds()
    return numbers.duration(age_s) if age_s > 0 else ""


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    words, tone = _STATES[row.get("kept")]
    unit, interval = unit_of(row["unit"]), row.get("interval")
    return {
        "way": f"{row['source']} → {row['target']}",
        "quantity": str(row["quantity"]).replace("rate of a short burst", "Rate of a short burst"),
        "asked": numbers.Amount.of(row.get("asked"), unit),
        "achieved": numbers.Amount.of(row.get("achieved"), unit),
        "interval": numbers.between(interval[0], interval[1], unit) if interval else "",
        "tolerance": row.get("tolerance", ""),
        "state": words,
        "tone": tone,
    }


def _round_trips(trip: Mapping[str, Any]) -> dict[str, Any]:
    names = ("min_s", "p05_s", "median_s", "p95_s", "max_s")
    return {
        "between": f"{trip['source']} and {trip['target']}",
        "probes": trip.get("probes", 0),
        "values": [numbers.amount(trip.get(name), "s") for name in names],
    }
