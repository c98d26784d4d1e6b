"""Nodes that Slurm allots and keeps for a trial."""

from __future__ import annotations

from experiments.cluster_kinds.scheduler import SchedulerKind, SchedulerSettings
from experiments.cluster_kinds.settings import Name, Word, stated


class SlurmSettings(SchedulerSettings):
    """Nodes that Slurm allots."""

    partition: Name | None = stated(None, "Partition", "Queue")
    """Empty: Slurm's default."""
    account: Name | None = stated(None, "Account", "Queue")
    """As of sbatch."""
    qos: Name | None = stated(None, "Quality of service", "Queue")
    """As of sbatch."""
    constraint: Word | None = stated(None, "Constraint", "Queue")
    """Features that nodes must have, as of sbatch."""
    reservation: Name | None = stated(None, "Reservation", "Queue")
    """As of sbatch."""


class Slurm(SchedulerKind):
    """Steps of the job reach its nodes."""

    name = "slurm"
    title = "Slurm"
    summary = "Jobs through a login node"
    noun = "Slurm"
    settings_type = SlurmSettings
