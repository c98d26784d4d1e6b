"""Effects of single parameters, and of pairs compared with their product."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analysis import numbers
from analysis.conclusions.observations.ladder import Trialled, effects, joint_effects
from dashboard.labels import parameter_label, value_words
from dashboard.panels.parts.measured import Measured
from experiments.metrics import find
from experiments.selectors import swept_parameters
from experiments.selectors.designs import is_ladder

MOST_LEVELS = 2
"""Most values of a parameter; more make a sweep, except for ladder steps."""
MOST_CONFIGURATIONS = 128


def effects_part(measured: Measured, targets: Mapping[str, str]) -> dict[str, Any] | None:
    """Return effects; None unless two parameters vary in a design of few levels."""
    metric = measured.deciding
    rows = [] if metric is None else measured.main.with_metric(metric)
    names = swept_parameters(rows)
    levels = [len({repr(row.parameters.get(name)) for row in rows}) for name in names]
    few = len(names) > 1 and len(rows) <= MOST_CONFIGURATIONS and (max(levels) <= MOST_LEVELS or is_ladder(rows))
    if metric is None or not few or any(min(row.values[metric]) <= 0 for row in rows):
        return None
    points = [Trialled(row.parameters, row.values[metric]) for row in rows]
    higher = measured.higher_is_better(metric)
    alone = effects(points, higher_is_better=higher)
    if not alone:
        return None
    return {
        "metric": find(metric, measured.main.experiment.specification).label,
        "alone": [
            {
                "change": _change(e.parameter, e.before, e.after),
                "gain": numbers.significant(e.gain, 3),
                "range": _range(e.smallest, e.largest, e.pairs),
                "pairs": e.pairs,
                "depends": e.depends,
            }
            for e in alone
        ],
        "together": [
            {
                "change": " and ".join(_change(*step) for step in zip(j.parameters, j.before, j.after, strict=True)),
                "together": numbers.significant(j.together, 3),
                "product": numbers.significant(j.product, 3),
                "interaction": numbers.significant(j.interaction, 3),
                "dependent": j.dependent,
            }
            for j in joint_effects(points, higher_is_better=higher)
        ],
    }


def _change(name: str, before: Any, after: Any) -> str:
    return f"{parameter_label(name)} {value_words(name, before)} → {value_words(name, after)}"


def _range(smallest: float, largest: float, pairs: int) -> str:
    if pairs < 2:
        return numbers.NOTHING
    return numbers.between(smallest, largest)
