"""What an experiment would do, without doing it: the exact commands and a time estimate. Reads past trials, writes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import median

from experiments import design, workloads
from experiments.design import Design
from experiments.models import Cluster, Measurement
from experiments.spec import ExperimentSpec
from workers import launchers
from workers.launchers import Job
from workers.run import BTL_PORTS

OVERHEAD_S = 2.0
"""Preparing, capturing and analysing one trial, roughly."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Expected elapsed time of one trial of a configuration, and what it rests on."""

    elapsed_s: float
    past_trials: int

    @property
    def basis(self) -> str:
        return (
            f"{self.past_trials} past trial{'s'[: self.past_trials != 1]}"
            if self.past_trials
            else "rough guess, no past trial"
        )


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
    """Return the expected elapsed time per configuration: the median of its past trials on the same cluster, if any."""
    past: dict[str, list[float]] = {}
    rows = Measurement.objects.filter(
        metric="elapsed_s",
        scope="all",
        trial__cluster__slug=spec.cluster,
        trial__configuration__hash__in=[c.hash for c in plan.configurations],
    ).values_list("trial__configuration__hash", "value")
    for digest, value in rows:
        past.setdefault(digest, []).append(value)
    workload = workloads.get(spec.workload, spec.parameters)
    return [
        Estimate(median(past[point.hash]), len(past[point.hash]))
        if point.hash in past
        else Estimate(
            workload.estimate_s(design.workload_parameters(spec.workload, point.parameters), ranks=point.ranks), 0
        )
        for point in plan.configurations
    ]


def total_s(plan: Design, expected: list[Estimate]) -> float:
    """Return the expected time of the whole experiment in seconds: trials run one after another."""
    return sum(expected[trial.configuration].elapsed_s + OVERHEAD_S for trial in plan.trials)
