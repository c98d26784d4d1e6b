"""What an experiment shows, as plain data for its page: report, speed-up, models with their curves, observer effect, next points.

Models and bootstrap intervals take up to seconds, pages must not: the answer is kept, and stands until another configuration
completes.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, Final

import numpy as np
import structlog
from django.core.cache import cache
from redis.exceptions import RedisError

from analysis.findings import find
from analysis.scaling import (
    Fit,
    ModelChoice,
    Study,
    fit_models,
    scaling_table,
    suggest_points,
    time_breakdown,
    wire_part,
)
from analysis.statistics import ratio_interval
from experiments.models import UNFINISHED, Experiment, Kind, Measurement, State, Trial
from experiments.revision import plan_points
from experiments.selectors.study import study_of
from experiments.spec.parameters import MAX_HOSTS, MAX_RANKS

MODELLED: Final = ("packets", "throughput_Bps", "interarrival_mean_s", "retransmitted_segments", "rtt_median_s")
"""Metrics of the wire whose growth with the hosts is modelled, where they were measured."""
CPU: Final = "cpu_mean_rank_s"
BUDGET_TRIALS: Final = 25
"""What the suggested next points may cost."""
_MOST_SLICES: Final = 6
_CURVE_POINTS: Final = 61
_BEYOND: Final = 1.5
"""Curves are drawn no farther than this beyond the largest measured size."""
_FORM: Final = 3
"""Counts changes of what is kept: an answer in an older form is none."""
_KEPT_S: Final = 30 * 24 * 3600
log = structlog.get_logger()


def kept_diagnosis(experiment: Experiment) -> tuple[dict[str, Any] | None, bool]:
    """Return the latest diagnosis (None: there is none yet), and whether it is that of the results as they are."""
    try:
        found: dict[str, Any] | None = cache.get(_key(experiment))
    except RedisError as error:  # the page stands without what it remembers
        log.warning("diagnosis_not_read", experiment=experiment.pk, reason=str(error))
        return None, False
    return found, found is not None and found["stamp"] == _stamp(experiment)


def diagnosis_of(experiment: Experiment) -> dict[str, Any]:
    """Return the diagnosis of the results as they are, made now where it is not kept."""
    kept, fresh = kept_diagnosis(experiment)
    if kept is not None and fresh:
        return kept
    made = {"stamp": _stamp(experiment), **_diagnose(experiment)}
    try:
        cache.set(_key(experiment), made, _KEPT_S)
    except RedisError as error:
        log.warning("diagnosis_not_kept", experiment=experiment.pk, reason=str(error))
    return made


def forget_diagnosis(experiment: Experiment) -> None:
    """Drop what is kept: the values of trials that had ended have changed."""
    cache.delete(_key(experiment))


def _key(experiment: Experiment) -> str:
    return f"diagnosis:{_FORM}:{experiment.pk}"


def _stamp(experiment: Experiment) -> str:
    """Return a hash of the trials of all complete configurations and of the hosts that the cluster has for more.

    While a configuration is being measured, the last word stands.
    """
    rows = Trial.objects.current().filter(experiment=experiment).order_by("pk")
    trials = list(rows.values_list("configuration_id", "pk", "state"))
    open_ones = {configuration for configuration, _, state in trials if state in UNFINISHED}
    ended = [row for row in trials if row[0] not in open_ones]
    has = experiment.cluster.hosts_to_suggest if experiment.cluster is not None else None
    return hashlib.sha256(repr((experiment.version, has, ended)).encode()).hexdigest()


def _diagnose(experiment: Experiment) -> dict[str, Any]:
    study = study_of(experiment)
    slices = study.slices()
    budget = BUDGET_TRIALS // min(len(slices), _MOST_SLICES)
    curves = [_slice(s, budget) for s in slices[:_MOST_SLICES]]
    wanted = [(point["parameters"], point["repetitions"]) for curve in curves for point in curve["next"]]
    more = plan_points(experiment, wanted) if wanted else None
    return {
        "report": find(study).to_dict(),
        "trials": sum(len(p.array(study.time_metric)) for p in study.points),
        "kind": study.kind,
        "axis": study.axis,
        "slices": curves,
        "next_queued": more.queued if more is not None else 0,
        "slices_left_out": max(0, len(slices) - _MOST_SLICES),
        "observer": observer_effect(experiment, study),
    }


def _slice(study: Study, budget: int) -> dict[str, Any]:
    """One curve of the study: its sizes, the models of every metric that was measured, and what to measure next."""
    rows = scaling_table(study)
    models = {}
    if len({row.size for row in rows}) > 1:
        names = (study.time_metric, CPU, *MODELLED)
        choices = {name: fit_models(study, name) for name in names if len(study.sized(name)) > 2}
        models = {name: model(choice) for name, choice in choices.items() if choice is not None}
    sizes = _runnable(study)
    suggestions = [] if study.published else suggest_points(study, budget_trials=budget, sizes=sizes)
    return {
        "where": dict(study.where),
        "rows": [row.to_dict() for row in rows],
        "time": [row.to_dict() for row in time_breakdown(study)],
        "wire": [row.to_dict() for row in wire_part(study)],
        "models": models,
        "next": [s.to_dict() for s in suggestions],
    }


def _runnable(study: Study) -> list[float]:
    """The numbers of hosts worth suggesting that the cluster has and a specification may ask for; none where it lost its hosts."""
    measured = [size for size, _ in study.sized(study.time_metric)]
    if not measured:
        return []
    ranks_per_host = max(int(point.parameters.get("ranks_per_host", 1)) for point in study.points)
    limits = [MAX_HOSTS, MAX_RANKS // ranks_per_host, *([] if study.most_hosts is None else [study.most_hosts])]
    return [float(size) for size in range(int(min(measured)), min(int(_BEYOND * max(measured)), *limits) + 1)]


def model(choice: ModelChoice) -> dict[str, Any]:
    """Return a choice of models as plain data with the curves to draw: value and 95 % band over the sizes."""
    fits = [fit for fit in choice.fits if fit.model != "constant" or fit is choice.chosen]
    last = choice.chosen.measured[1]
    # Only a time has a best size to look for, and only beyond the measured range does a curve have to leave it.
    best = choice.best_size if choice.metric == "elapsed_s" and choice.best_size is not None else last
    end = min(1.1 * best, _BEYOND * last) if last < best < np.inf else last
    return {**choice.to_dict(), "curves": [_curve(fit, end) for fit in fits]}


def _curve(fit: Fit, end: float) -> dict[str, Any]:
    first, last = fit.measured
    predictions = fit.predict(np.unique([*np.linspace(first, end, _CURVE_POINTS), last]).tolist())
    return {
        "model": fit.model,
        "title": fit.title,
        "x": [p.size for p in predictions],
        "y": [p.value for p in predictions],
        "low": [p.interval.low if p.interval else None for p in predictions],
        "high": [p.interval.high if p.interval else None for p in predictions],
        "measured": [first, last],
    }


def observer_effect(experiment: Experiment, study: Study) -> list[dict[str, Any]]:
    """Return, per configuration with a control, elapsed time with capture against without: ratio - 1, and its interval."""
    without = _control_times(experiment)
    rows = []
    for configuration in experiment.configurations.filter(in_design=True, pk__in=list(without)):
        point = next((p for p in study.points if p.parameters == configuration.parameters), None)
        captured: Sequence[float] = [] if point is None else point.array("elapsed_s").tolist()
        if captured:
            rows.append({"parameters": configuration.parameters, **effect(captured, without[configuration.pk])})
    return rows


def effect(captured: Sequence[float], control: Sequence[float]) -> dict[str, Any]:
    """Return the medians with and without capture, their relative difference, and its interval where trials were repeated."""
    interval = ratio_interval(captured, control) if min(len(captured), len(control)) > 1 else None
    return {
        "with_s": median(captured),
        "without_s": median(control),
        "controls": len(control),
        "relative": median(captured) / median(control) - 1,
        "low": None if interval is None or interval.low is None else interval.low - 1,
        "high": None if interval is None or interval.high is None else interval.high - 1,
        "within_scatter": min(captured) <= median(control) <= max(captured),
    }


def _control_times(experiment: Experiment) -> Mapping[int, list[float]]:
    """Return elapsed times of the finished trials without capture, by configuration."""
    rows = Measurement.objects.filter(
        trial__in=Trial.objects.current().filter(experiment=experiment, state=State.FINISHED, kind=Kind.CONTROL),
        metric="elapsed_s",
        scope="all",
    )
    found: dict[int, list[float]] = defaultdict(list)
    for configuration, value in rows.values_list("trial__configuration_id", "value"):
        found[configuration].append(value)
    return found
