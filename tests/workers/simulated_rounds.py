"""Experiments with a goal whose trials end with simulated times."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import numpy as np
from django.db import connection

from experiments.library import load_defaults
from experiments.models import Experiment, Round, State, TrialResult
from experiments.specification import parse
from tests.experiments import factories
from workers import queue, rounds

TIMES_S = {1: 20.0, 2: 11.0, 4: 10.0}
Goal = dict[str, Any]


def submit(goal: Goal, **changes: Any) -> Experiment:
    data = {
        "name": "goal",
        "workload": "water",
        "parameters": {"molecules": 64},
        "sweep": {"hosts": list(TIMES_S)},
        "goal": {"budget": {"trials": 200}, **goal},
        **changes,
    }
    return queue.submit(parse(data), project=load_defaults())


def end_trials(experiment: Experiment, sd: float = 0.02, seed: int = 1) -> int:
    """Finish all queued trials with simulated times; return how many."""
    random, ended = np.random.default_rng([seed, experiment.trials.count()]), 0
    while experiment.trials.filter(state=State.QUEUED).exists():
        trial = factories.analysing()
        seconds = TIMES_S.get(trial.configuration.hosts, 12.0) * float(np.exp(random.normal(0, sd)))
        trial.finish(TrialResult({"all": {"elapsed_s": seconds}}, {}, "good"))
        ended += 1
    return ended


def run_to_end(experiment: Experiment, **noise: Any) -> list[Round]:
    for _ in range(40):
        end_trials(experiment, **noise)
        if not rounds.decide_round(experiment.pk):
            break
    return list(experiment.rounds.all())


def kill_while_it_decides(experiment: Experiment, after_s: float) -> None:
    """Kill a process that decides a round, after so many seconds."""
    connection.close()
    worker = os.fork()
    if not worker:
        try:
            rounds.decide_round(experiment.pk)
        finally:
            os._exit(0)
    threading.Event().wait(after_s)  # any moment of the decision
    os.kill(worker, signal.SIGKILL)
    os.waitpid(worker, 0)
