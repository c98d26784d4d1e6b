"""What an experiment would do, without doing it: the exact commands and a time estimate. Reads past trials, writes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from django.db.models import QuerySet

from experiments import design, workloads
from experiments.design import Design
from experiments.models import Cluster, Measurement
from experiments.spec import ExperimentSpec
from workers import launchers
from workers.launchers import Job
from workers.run import BTL_PORTS

OVERHEAD_S: Final = 2.0
"""Preparing, capturing and analysing one trial, roughly."""

_MOST_PAST: Final = 300
"""Newest trials of other configurations that a guess is scaled by."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Expected elapsed time of one trial of a configuration, and what it rests on.

    ``past_trials`` are of this very configuration, or of others of the same workload when the guess was ``scaled`` by them.
    """

    elapsed_s: float
    past_trials: int
    scaled: bool = False

    @property
    def basis(self) -> str:
        """In words: "rough guess" only where this workload never ran on the cluster."""
        if not self.past_trials:
            return "rough guess, no past trial"
        trials = f"{self.past_trials} past trial{'s'[: self.past_trials != 1]}"
        return f"scaled from {trials} of the workload" if self.scaled else trials


def launch_argv(spec: ExperimentSpec, plan: Design, index: int) -> list[str]:
    """Return the full launch command of one configuration, as the launcher would run it. Raise Cluster.DoesNotExist, ClusterUnavailable."""
    cluster = Cluster.objects.get(slug=spec.cluster)
    launcher = launchers.get(cluster.kind, cluster.settings)
    point = plan.configurations[index]
    return launcher.argv(
        Job(
            program=plan.argv(spec, index),
            ranks=point.ranks,
            ranks_per_host=int(point.parameters["ranks_per_host"]),
            hosts=launcher.host_names(point.hosts),
            workdir=Path("work"),
            report_dir=Path("ranks"),
            environment={"OMP_NUM_THREADS": "1"},
            btl_ports=BTL_PORTS,
        )
    )


def estimates(spec: ExperimentSpec, plan: Design) -> list[Estimate]:
    """Return the expected elapsed time per configuration on the specification's cluster.

    The median of its own past trials where there are any; else the workload's guess, corrected by how far that guess was
    off for its past trials of other configurations, those with as many ranks where there are such.
    """
    here = Measurement.objects.filter(metric="elapsed_s", scope="all", trial__cluster__slug=spec.cluster)
    past: dict[str, list[float]] = {}
    rows = here.filter(trial__configuration__hash__in=[c.hash for c in plan.configurations])
    for digest, value in rows.values_list("trial__configuration__hash", "value"):
        past.setdefault(digest, []).append(value)
    unknown = any(point.hash not in past for point in plan.configurations)
    misses = _misses(spec, here) if unknown else {}
    return [
        Estimate(median(past[point.hash]), len(past[point.hash]))
        if point.hash in past
        else _scaled(_guess_s(spec, point.parameters, point.ranks), misses, point.ranks)
        for point in plan.configurations
    ]


def _guess_s(spec: ExperimentSpec, parameters: Mapping[str, Any], ranks: int) -> tuple[float, float]:
    """Return the workload's guess of what the machine takes, and what its bytes take on the link that is asked for, s."""
    workload = workloads.get(spec.workload, spec.parameters)
    own = design.workload_parameters(spec.workload, parameters)
    bandwidth = parameters.get("link.bandwidth")
    on_link_s = 8 * workload.bottleneck_bytes(own, ranks=ranks) / bandwidth if bandwidth else 0.0
    return workload.estimate_s(own, ranks=ranks), on_link_s


def _misses(spec: ExperimentSpec, here: QuerySet[Measurement]) -> dict[int, list[float]]:
    """Ranks -> measured time / guess of the newest trials of the workload, whatever their configuration; without the link's time."""
    rows = here.filter(trial__experiment__workload=spec.workload).order_by("-trial_id")
    misses: dict[int, list[float]] = {}
    found = rows.values_list("trial__configuration__parameters", "trial__configuration__ranks", "value")[:_MOST_PAST]
    for parameters, ranks, value in found:
        try:
            guess_s, on_link_s = _guess_s(spec, parameters, ranks)
        except ValueError:  # parameters of a time when the workload had others
            continue
        if guess_s > 0 and value > on_link_s:
            misses.setdefault(ranks, []).append((value - on_link_s) / guess_s)
    return misses


def _scaled(guess: tuple[float, float], misses: Mapping[int, list[float]], ranks: int) -> Estimate:
    guess_s, on_link_s = guess
    known = misses.get(ranks) or [miss for each in misses.values() for miss in each]
    if not known:
        return Estimate(guess_s + on_link_s, 0)
    return Estimate(guess_s * median(known) + on_link_s, len(known), scaled=True)


def total_s(plan: Design, expected: list[Estimate]) -> float:
    """Return the expected time of the whole experiment in seconds: trials run one after another."""
    return sum(expected[trial.configuration].elapsed_s + OVERHEAD_S for trial in plan.trials)
