"""Failures after which the remaining trials of an experiment are put on hold: they would fail for the same reason."""

from __future__ import annotations

from typing import Any, Final

from experiments import workloads
from experiments.models.states import FAILED, UNFINISHED, State

MOST_IDENTICAL: Final = 3
"""Failures in succession with the same message."""


def runs_new_program(trial: Any) -> bool:
    """Whether a trial runs a program of the user's own of which no trial has finished."""
    workload, parameters = trial.experiment.workload, trial.configuration.parameters
    known = workloads.find(workload, parameters)
    if known is None or not known.brought:
        return False
    same = {f"configuration__parameters__{name}": parameters.get(name) for name in known.brought}
    finished = type(trial).objects.filter(experiment__workload=workload, state=State.FINISHED, **same)
    return not finished.exists()


def fails_repeatedly(trials: Any) -> bool:
    """Whether the last of these trials failed with one message, and not because of their configuration: their program did not start,
    they had several configurations, or none of all trials has finished.
    """
    over = trials.exclude(state__in=(*UNFINISHED, State.CANCELLED)).order_by("-ended_at", "-pk")
    last = list(over.values_list("state", "message", "running_at", "configuration_id")[:MOST_IDENTICAL])
    if len(last) < MOST_IDENTICAL:
        return False
    states, messages, starts, configurations = zip(*last, strict=True)
    if not set(states) <= set(FAILED) or len({message.partition("\n")[0] for message in messages}) > 1:
        return False
    return not any(starts) or len(set(configurations)) > 1 or not trials.filter(state=State.FINISHED).exists()
