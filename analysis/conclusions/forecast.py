"""Forecast of an experiment with a goal: its policy on simulated trials. Pure.

The simulated times have the expected medians and the scatter of earlier trials. A few runs give a range, not a promise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp
from typing import Any, Final

import numpy as np

from analysis.conclusions.context import Deciding, ExperimentQuestion, Factor
from analysis.conclusions.goals import decide, share_of
from analysis.scaling import Point

MOST_POINTS: Final = 16
"""Configurations beyond which a forecast would take longer than a page may."""
_RUNS: Final = 3
_MOST_ROUNDS: Final = 12
_TIME: Final = Deciding("elapsed_s", "Elapsed time", "s")


@dataclass(frozen=True, slots=True)
class Forecast:
    """Least and most of the simulated runs; host-seconds and seconds of their trials."""

    rounds: tuple[int, int]
    trials: tuple[int, int]
    seconds: tuple[float, float]
    host_seconds: tuple[float, float]


def forecast(
    points: Sequence[Mapping[str, Any]],
    seconds: Sequence[float],
    scatter: float,
    factors: Sequence[Factor],
    *,
    precision: float | None,
    matters: float,
    at_least: int,
    at_most: int,
    most_trials: int,
    overhead_s: float,
) -> Forecast:
    """Return what the rounds would take.

    Parameters
    ----------
    points, seconds
        Parameters of each configuration, and its expected time, s.
    scatter
        Standard deviation of the logarithm of a time.
    factors
        Parameters that vary.
    most_trials
        The budget: simulated rounds stop at it.
    overhead_s
        Time of a trial beside its program, s.
    """
    runs = []
    for seed in range(_RUNS):
        random = np.random.default_rng(seed)
        values: list[list[float]] = [[] for _ in points]
        more, rounds = dict.fromkeys(range(len(points)), at_least), 0
        while more and rounds < _MOST_ROUNDS and sum(map(len, values)) < most_trials:
            for index, count in more.items():
                values[index] += [seconds[index] * exp(random.normal(0, scatter)) for _ in range(count)]
            rounds += 1
            question = ExperimentQuestion(
                points=[Point(p, {_TIME.metric: v}) for p, v in zip(points, values, strict=True)],
                deciding=_TIME,
                factors=factors,
                share=share_of(rounds),
                equal=1 + matters,
            )
            decision = decide(question, precision=precision, at_most=at_most)
            more = {points.index(parameters): count for parameters, count in decision.more}
        times = [len(v) * (s + overhead_s) for v, s in zip(values, seconds, strict=True)]
        held = sum(t * int(p["hosts"]) for t, p in zip(times, points, strict=True))
        runs.append((rounds, min(sum(map(len, values)), most_trials), sum(times), held))
    ends = [(min(column), max(column)) for column in zip(*runs, strict=True)]
    return Forecast(*ends)
