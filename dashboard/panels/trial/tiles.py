"""Own figures and headline metrics of a trial among its repetitions."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from analysis import numbers
from analysis.catalogue import METRICS
from dashboard.charts.marks import Dots, repetition_dots
from dashboard.panels.experiment.results import OWN_FIGURES, figures_of_merit, published_name
from experiments.metrics import HEADLINE, deciding_metric, find
from experiments.models import Measurement, Trial
from experiments.selectors import related_publications
from experiments.traffic import in_statistics

MOST: Final = 6
"""Tiles of a trial: its program's own figures first."""


@dataclass(frozen=True)
class Tile:
    """One metric of this trial among its repetitions."""

    metric: str
    label: str
    value: float | None
    unit: str
    dots: Dots | None
    words: str
    meaning: str = ""


def metrics_of_tiles(trial: Trial, values: Container[str]) -> list[str]:
    """Return the program's own figures, the deciding one first, and headline metrics."""
    experiment = trial.experiment
    figures = (deciding_metric(experiment.workload, experiment.specification), *figures_of_merit(experiment))
    own_figures = [metric for metric in dict.fromkeys(figures) if metric not in METRICS and metric in values]
    return [*own_figures[:OWN_FIGURES], *HEADLINE][:MOST]


def tile_of(
    trial: Trial,
    metric: str,
    values: Mapping[str, float],
    repetitions: list[tuple[int, float]],
    published: float | None,
) -> Tile:
    description = find(metric, trial.experiment.specification)
    value = values.get(metric)
    if value is None:
        reason = trial.not_available.get(metric, "not measured")
        return Tile(metric, description.label, None, "", None, reason)
    others = [other for pk, other in repetitions if pk != trial.pk]
    # A full-size published value would compress all repetitions into one dot.
    near = published if published is not None and value / 4 < published < value * 4 else None
    words = "the only counted repetition" if repetitions else "no repetition of this point is counted"
    if not (repetitions or in_statistics(trial.trust, metric)):
        is_silent = not value and trial.configuration.hosts == 1
        words = "one host sends no packets" if is_silent else "no median: all repetitions are flagged"
    meaning = ""
    if others:
        middle = median([other for _, other in repetitions])
        words = numbers.percent_apart(value, middle) or "median 0"
        meaning = f"Difference from the median of {len(repetitions)} repetitions"
    dots = repetition_dots(value, others, near)
    return Tile(metric, description.label, value, description.unit, dots, words, meaning)


def published_here(trial: Trial) -> dict[str, Any]:
    """Return published values of the headline metrics at the same number of hosts."""
    study = related_publications(trial.experiment).first()
    if study is None:
        return {}
    rows = Measurement.objects.filter(
        trial__experiment=study, trial__configuration__hosts=trial.configuration.hosts, metric__in=HEADLINE, scope="all"
    )
    return {"name": published_name(study), **dict(rows.values_list("metric", "value"))}
