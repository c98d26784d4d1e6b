"""Nodes that Slurm allots and keeps for a trial."""

from __future__ import annotations

from experiments.cluster_kinds.base import ClusterKind, StoredCluster
from experiments.cluster_kinds.settings import HostSettings, Login, Name, Settings, Word, stated


class _Host(Settings):
    """Which of the hosts is logged in to."""

    host: Name = stated(
        ...,
        "Login host",
        "Where Slurm's commands run. Empty: on the worker's machine, which then needs no login.",
        "Login",
    )


class SlurmLogin(Login, _Host):
    """Where Slurm's commands are run."""


class _Asked(Settings):
    """What is asked of Slurm."""

    partition: Name | None = stated(None, "Partition", "Empty: Slurm's default.", "Queue")
    account: Name | None = stated(None, "Account", "As of sbatch.", "Queue")
    qos: Name | None = stated(None, "Quality of service", "As of sbatch.", "Queue")
    constraint: Word | None = stated(None, "Constraint", "Features that nodes must have, as of sbatch.", "Queue")
    reservation: Name | None = stated(None, "Reservation", "As of sbatch.", "Queue")
    time_limit: Word | None = stated(None, "Time limit", "Of one job, which runs many trials: 1-00:00:00.", "Queue")
    options: tuple[Word, ...] = stated((), "Further options", "More words for sbatch.", "Queue")
    pending_limit_s: float = stated(
        86400.0, "Longest wait for nodes", "In seconds; a trial fails after it.", "Queue", gt=0, allow_inf_nan=False
    )


class SlurmSettings(HostSettings, _Asked):
    """Nodes that Slurm allots. Without `login` its commands run on the worker's machine."""

    login: SlurmLogin | None = None


class Slurm(ClusterKind):
    """As many nodes as Slurm gives; a trial leases the cluster only, since Slurm lets nobody else use its nodes meanwhile."""

    name = "slurm"
    title = "Slurm"
    summary = "Jobs through a login node"
    noun = "Slurm"
    settings_type = SlurmSettings

    def most_hosts(self, cluster: StoredCluster) -> int | None:
        """A person may ask for more than is known, since partitions grow."""
        return None

    def hosts_to_suggest(self, cluster: StoredCluster) -> int | None:
        """What is stated and what Slurm last told a trial here of the same partition, whichever is less."""
        partition = cluster.told("partition", {})
        same = cluster.settings.get("partition") in (None, partition.get("name"))
        known = [cluster.facts.get("hosts"), partition.get("hosts") if same else None]
        return min((count for count in known if isinstance(count, int)), default=None)

    def hosts_in_words(self, cluster: StoredCluster) -> str:
        return str(cluster.facts.get("hosts", "as allocated"))
