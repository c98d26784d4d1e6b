"""Comparison of a trial with others of its configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analysis.scaling import observer_effect
from dashboard.labels import fact_rows, trial_role
from dashboard.panels.experiment.diagnosis import observer_words
from dashboard.states import chip_of
from experiments.models import METRIC_SOURCES, Kind, Measurement, State, Trial

# Facts that differ in every trial.
_ALWAYS_DIFFERENT = ("command", "ports")
_NO_FACTS = (METRIC_SOURCES,)


def environment_comparison(trial: Trial, against: str = "") -> dict[str, Any]:
    """Siblings, and the facts that differ from the chosen or first different one."""
    siblings = list(
        Trial.objects.current()
        .filter(configuration=trial.configuration_id, state=State.FINISHED, environment__isnull=False)
        .exclude(pk=trial.pk)
        .select_related("environment")
        .order_by("pk")
    )
    if trial.environment is None or not siblings:
        return {"siblings": []}
    chosen = next((t for t in siblings if str(t.pk) == against), None)
    chosen = chosen or next((t for t in siblings if t.environment_id != trial.environment_id), siblings[0])
    return {
        "siblings": [(t.pk, _option(t), t.pk == chosen.pk) for t in siblings],
        "same_everywhere": all(t.environment_id == trial.environment_id for t in siblings),
        "differing": differing(around(trial), around(chosen)),
        "chosen": chosen.pk,
    }


def _option(trial: Trial) -> str:
    """Return a trial in words: 'trial 61: repetition 2, attempt 2, degraded'."""
    trust = f", {chip_of(trial.trust).word.lower()}" if trial.trust not in ("", "good") else ""
    return f"trial {trial.pk}: {trial_role(trial.kind, trial.repetition, trial.attempt)}{trust}"


def around(trial: Trial) -> dict[str, Any]:
    """Return the facts of a trial's environment and its conditions."""
    facts = trial.environment.facts if trial.environment else {}
    return {name: value for name, value in {**facts, **trial.conditions}.items() if name not in _NO_FACTS}


def differing(here: Mapping[str, Any], there: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return (fact, here, there) of facts that differ; '' if one side has none."""
    a, b = dict(fact_rows(here)), dict(fact_rows(there))
    names = [name for name in dict.fromkeys([*a, *b]) if name not in _ALWAYS_DIFFERENT]
    return [(name, a.get(name, ""), b.get(name, "")) for name in names if a.get(name) != b.get(name)]


def observer_of(trial: Trial) -> dict[str, str] | None:
    """Return the observer effect in words; None without a finished control run."""
    times: dict[str, list[float]] = {Kind.MEASURED: [], Kind.CONTROL: []}
    rows = Measurement.objects.counted(Kind.MEASURED, Kind.CONTROL).filter(
        trial__configuration=trial.configuration_id, metric="elapsed_s", scope="all"
    )
    for kind, value in rows.values_list("trial__kind", "value"):
        times[kind].append(value)
    captured, control = times[Kind.MEASURED], times[Kind.CONTROL]
    return observer_words(observer_effect(captured, control)) if captured and control else None
