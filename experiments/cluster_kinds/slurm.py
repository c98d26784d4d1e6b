"""Nodes that Slurm allots and keeps for a trial."""

from __future__ import annotations

from pydantic import Field

from experiments.cluster_kinds.base import ClusterKind, StoredCluster
from experiments.cluster_kinds.settings import HostSettings, Login, Name, Word


class SlurmLogin(Login):
    """Where Slurm's commands are run."""

    host: Name


class SlurmSettings(HostSettings):
    """Nodes that Slurm allots. Without `login` its commands run on the worker's machine."""

    partition: Name | None = None
    account: Name | None = None
    qos: Name | None = None
    constraint: Word | None = None
    reservation: Name | None = None
    time_limit: Word | None = None
    options: tuple[Word, ...] = ()
    pending_limit_s: float = Field(86400.0, gt=0)
    login: SlurmLogin | None = None


class Slurm(ClusterKind):
    """As many nodes as Slurm gives; a trial leases the cluster only, since Slurm lets nobody else use its nodes meanwhile."""

    name = "slurm"
    title = "Slurm"
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
