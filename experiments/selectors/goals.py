"""Budgets of goals: what trials have used, and further trials that fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from pydantic import ValidationError

from analysis.numbers import duration, grouped, significant
from experiments.models import UNFINISHED, Experiment
from experiments.specification import design
from experiments.specification.goal import Budget, Goal


@dataclass(frozen=True, slots=True)
class Spent:
    """Use of the budget by ended trials."""

    time_s: float
    trials: int
    """Trials that ran, run or wait."""
    host_hours: float
    trial_s: Mapping[str, float]
    """Median time of a trial by configuration hash."""
    queued: int = 0
    """Trials that wait, part of ``trials``."""

    def reached(self, budget: Budget) -> str:
        """Return the limit that is reached in words, or ""."""
        if budget.trials is not None and self.trials >= budget.trials:
            return f"{grouped(self.trials)} of {grouped(budget.trials)} trials"
        if budget.time is not None and self.time_s >= budget.time:
            return f"{duration(self.time_s)} of {duration(budget.time)}"
        if budget.host_hours is not None and self.host_hours >= budget.host_hours:
            return f"{significant(self.host_hours)} of {significant(budget.host_hours)} host hours"
        return ""

    def use_of(self, budget: Budget) -> list[tuple[str, float, float]]:
        """Return (name, used, limit) of each limit."""
        pairs = (
            ("time", self.time_s, budget.time),
            ("trials", self.trials, budget.trials),
            ("host_hours", self.host_hours, budget.host_hours),
        )
        return [(name, float(used), float(most)) for name, used, most in pairs if most is not None]


def goal_of(experiment: Experiment) -> Goal | None:
    """Return the goal of an experiment; None without a readable one."""
    try:
        return Goal.model_validate(experiment.specification.get("goal"))
    except ValidationError:
        return None


def spent_of(experiment: Experiment) -> Spent:
    """Return what the trials used; one query."""
    rows = experiment.trials.values_list(
        "configuration__hash", "configuration__hosts", "state", "preparing_at", "ended_at"
    )
    time_s = host_s = 0.0
    trials, queued, times = 0, 0, dict[str, list[float]]()
    for digest, hosts, state, began, ended in rows:
        trials += began is not None or state in UNFINISHED
        queued += began is None and state in UNFINISHED
        if began is None or ended is None:
            continue
        seconds = max((ended - began).total_seconds(), 0.0)
        time_s, host_s = time_s + seconds, host_s + hosts * seconds
        times.setdefault(digest, []).append(seconds)
    return Spent(time_s, trials, host_s / 3600, {digest: median(values) for digest, values in times.items()}, queued)


def why_no_time(experiment: Experiment, budget: Budget) -> str:
    """Return the limit of time or host hours that is reached in words, or ""."""
    return spent_of(experiment).reached(budget.model_copy(update={"trials": None}))


def affordable(
    workload: str, more: Iterable[tuple[Mapping[str, Any], int]], budget: Budget, spent: Spent
) -> dict[str, int]:
    """Return the repetitions by configuration hash that fit into the budget.

    One repetition of each is taken at a time.
    """
    hosts, requested = dict[str, int](), Counter[str]()
    for parameters, count in more:
        digest = design.configuration_hash(workload, parameters)
        hosts[digest] = int(parameters["hosts"])
        requested[digest] += count
    usual_s = median(spent.trial_s.values()) if spent.trial_s else 0.0
    time_s, trials, host_s = spent.time_s, spent.trials, 3600 * spent.host_hours
    fitting: dict[str, int] = {}
    for number in range(1, max(requested.values(), default=0) + 1):
        for digest in (digest for digest, count in requested.items() if number <= count):
            seconds = spent.trial_s.get(digest, usual_s)
            time_s, trials, host_s = time_s + seconds, trials + 1, host_s + hosts[digest] * seconds
            if (
                (budget.trials is not None and trials > budget.trials)
                or (budget.time is not None and time_s > budget.time)
                or (budget.host_hours is not None and host_s > 3600 * budget.host_hours)
            ):
                return fitting
            fitting[digest] = number
    return fitting
