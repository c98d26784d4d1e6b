"""Nodes that Slurm allots and keeps for a trial."""

from __future__ import annotations

from experiments.cluster_kinds.scheduler import SchedulerKind, SchedulerSettings
from experiments.cluster_kinds.settings import Name, Settings, Word, stated


class _Asked(Settings):
    """What is asked of Slurm."""

    partition: Name | None = stated(None, "Partition", "Empty: Slurm's default.", "Queue")
    account: Name | None = stated(None, "Account", "As of sbatch.", "Queue")
    qos: Name | None = stated(None, "Quality of service", "As of sbatch.", "Queue")
    constraint: Word | None = stated(None, "Constraint", "Features that nodes must have, as of sbatch.", "Queue")
    reservation: Name | None = stated(None, "Reservation", "As of sbatch.", "Queue")
    time_limit: Word | None = stated(None, "Time limit", "Of one job, which runs many trials: 1-00:00:00.", "Queue")
    options: tuple[Word, ...] = stated((), "Further options", "More words for sbatch.", "Queue")


class SlurmSettings(SchedulerSettings, _Asked):
    """Nodes that Slurm allots."""


class Slurm(SchedulerKind):
    """Steps of the job reach its nodes."""

    name = "slurm"
    title = "Slurm"
    summary = "Jobs through a login node"
    noun = "Slurm"
    settings_type = SlurmSettings
