"""Searches for the best settings whose trials end with values of a known surface."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.library import load_defaults
from experiments.models import Experiment, Round, State, TrialResult
from experiments.specification import parse
from tests.experiments import factories
from workers import queue, rounds

SPEC: dict[str, Any] = {
    "name": "search",
    "workload": "hpl",
    "parameters": {"ns": 1000, "hosts": 1, "ranks_per_host": 4},
    "sweep": {"nb": {"from": 16, "to": 256, "step": 16}, "p": [1, 2, 4]},
    "goal": {"optimise": "hpl.gflops", "budget": {"trials": 90}},
}


def submit(**changes: Any) -> Experiment:
    return queue.submit(parse({**SPEC, **changes}), project=load_defaults())


def gflops(parameters: dict[str, Any], gain: float = 1.0) -> float:
    """Return a known surface, best at NB 192 and P 2; ``gain`` 0 makes it flat."""
    return float(500 * np.exp(gain * (-1e-5 * (parameters["nb"] - 192) ** 2 - 0.1 * (parameters["p"] != 2))))


def end_trials(experiment: Experiment, *, sd: float = 0.02, gain: float = 1.0, seed: int = 1) -> None:
    random = np.random.default_rng([seed, experiment.trials.count()])
    while experiment.trials.filter(state=State.QUEUED).exists():
        trial = factories.analysing()
        value = gflops(trial.configuration.parameters, gain) * float(np.exp(random.normal(0, sd)))
        trial.finish(TrialResult({"all": {"hpl.gflops": value, "elapsed_s": 2.0}}, {}, "good"))


def fail_trials(experiment: Experiment) -> None:
    while experiment.trials.filter(state=State.QUEUED).exists():
        Experiment.objects.update(hold="released")
        factories.running().fail("out of memory")


def run_to_end(experiment: Experiment, **noise: Any) -> list[Round]:
    for _ in range(60):
        end_trials(experiment, **noise)
        if not rounds.decide_round(experiment.pk):
            break
    return list(experiment.rounds.all())
