"""Trust in a trial's capture: the catalogue's trust metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from analysis import numbers
from analysis.catalogue import METRICS
from experiments.models import Trial

OBSERVER = "observer_effect"
_NO_CONTROL = "no control run: choose Control runs without capture in the experiment"
_NOT_COUNTED = "not measured"


@dataclass(frozen=True, slots=True)
class TrustRow:
    """One item: its value as words, or the reason in `missing`."""

    metric: str
    label: str
    value: str = ""
    missing: str = ""


def trust_rows(
    trial: Trial, values: Mapping[str, float], counters: Mapping[str, float], observer: Mapping[str, str] | None
) -> list[TrustRow]:
    """Return all items in the catalogue's order; none without a capture."""
    if not trial.trust:
        return []
    rows = []
    for metric in METRICS.values():
        if metric.section != "trust" or metric.shape != "number":
            continue
        if metric.id == OBSERVER:
            words = (observer["difference"], "") if observer else ("", _NO_CONTROL)
        elif (value := values.get(metric.id, counters.get(metric.id))) is not None:
            words = (numbers.Amount.of(value, metric.unit), "")
        else:
            words = ("", trial.not_available.get(metric.id, _NOT_COUNTED))
        rows.append(TrustRow(metric.id, metric.label, *words))
    return rows
