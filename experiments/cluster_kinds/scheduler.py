"""What kinds of cluster whose hosts a batch system allots have in common: where its commands run, and what a job may take."""

from __future__ import annotations

from typing import Literal

from experiments.cluster_kinds.base import ClusterKind, StoredCluster
from experiments.cluster_kinds.settings import HostSettings, Login, Name, Settings, Word, stated


class _Host(Settings):
    """Which of the hosts is logged in to."""

    host: Name = stated(
        ...,
        "Login host",
        "Where the scheduler's commands run. Empty: on the worker's machine, which then needs no login.",
        "Login",
    )


class SchedulerLogin(Login, _Host):
    """Where the scheduler's commands are run."""


class _Asked(Settings):
    """What is asked of every scheduler."""

    time_limit: Word | None = stated(None, "Time limit", "Of one job, as the scheduler writes it.", "Queue")
    options: tuple[Word, ...] = stated((), "Further options", "More words for the command that submits.", "Queue")
    pending_limit_s: float = stated(
        86400.0, "Longest wait for nodes", "In seconds; a trial fails after it.", "Queue", gt=0, allow_inf_nan=False
    )
    allocation: Literal["per size", "per experiment"] = stated(
        "per size",
        "Allocation",
        "What one job holds its nodes for: trials of the same number of hosts that follow each other, or all trials of an experiment "
        "on the nodes of its largest, so that a long queue is paid once.",
        "Queue",
    )


class SchedulerSettings(HostSettings, _Asked):
    """Nodes that a scheduler allots. Without `login` its commands run on the worker's machine."""

    login: SchedulerLogin | None = None


class LoginSettings(SchedulerSettings):
    """Of schedulers whose jobs nobody joins from outside: their nodes are reached with ssh, as long as the job holds them."""

    slots_per_host: int = stated(
        1,
        "Slots of a host",
        "How many of the scheduler's slots are one whole host: its cores, as a rule.",
        "Queue",
        ge=1,
        le=100_000,
    )
    agent: tuple[Word, ...] | None = stated(
        None,
        "Between hosts",
        "Command by which the login host and the nodes reach a node. Empty: ssh, which asks for nothing.",
        "Login",
        min_length=1,
    )

    @property
    def between_hosts(self) -> tuple[str, ...]:
        """How a node is reached from the login host and from other nodes."""
        return self.agent or ("ssh", "-x", "-o", "BatchMode=yes")


class SchedulerKind(ClusterKind):
    """As many nodes as the scheduler gives; a trial leases the cluster only: nobody else is let on its nodes meanwhile."""

    allots = True

    def most_hosts(self, cluster: StoredCluster) -> int | None:
        """A person may ask for more than is known, since partitions grow."""
        return None

    def hosts_to_suggest(self, cluster: StoredCluster) -> int | None:
        """What is stated and what the scheduler last told a trial here of the same queue, whichever is less."""
        queue = cluster.told("partition", {})
        asked = cluster.settings.get("partition", cluster.settings.get("queue"))
        same = asked in (None, queue.get("name"))
        known = [cluster.facts.get("hosts"), queue.get("hosts") if same else None]
        return min((count for count in known if isinstance(count, int)), default=None)

    def hosts_in_words(self, cluster: StoredCluster) -> str:
        return str(cluster.facts.get("hosts", "as allocated"))
