"""Real hosts that are listed by name and reached with ssh."""

from __future__ import annotations

from collections import Counter

from pydantic import field_validator

from experiments.cluster_kinds import machines
from experiments.cluster_kinds.base import ClusterKind, StoredCluster
from experiments.cluster_kinds.hosts import listed, one_spelling, refusals
from experiments.cluster_kinds.settings import HostSettings, Login, Word, stated


class SshSettings(HostSettings, Login):
    """Settings of hosts that are reached with ssh."""

    hosts: tuple[Word, ...] = stated(..., "Hosts", "Hosts", min_length=1)
    """Names or addresses, separated by lines, blanks or commas, or a range such as n[01-04]; taken in this order."""
    agent: tuple[Word, ...] | None = stated(
        None, "Between hosts", "Login", usual="ssh with the same user and port", min_length=1
    )
    """Command by which a host reaches another."""

    @field_validator("hosts")
    @classmethod
    def _are_hosts_once(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        if wrong := refusals(hosts):
            raise ValueError(listed(wrong))
        counts = Counter(map(one_spelling, hosts))
        if twice := [host for host in hosts if counts[one_spelling(host)] > 1]:
            raise ValueError(f"named more than once: {', '.join(dict.fromkeys(twice))}")
        return hosts

    @property
    def between_hosts(self) -> tuple[str, ...]:
        """Return the command by which a host reaches another, with our user and port."""
        if self.agent is not None:
            return self.agent
        port = ("-p", str(self.port)) if self.port is not None else ()
        user = ("-l", self.user) if self.user is not None else ()
        return ("ssh", "-x", "-o", "BatchMode=yes", *port, *user)


class Ssh(ClusterKind):
    """The hosts of a list, in its order."""

    name = "ssh"
    title = "Hosts over ssh"
    summary = "Your machines, one login each"
    noun = "hosts over ssh"
    settings_type = SshSettings

    def most_hosts(self, cluster: StoredCluster) -> int | None:
        return len(cluster.settings.get("hosts", []))

    def resources(self, cluster: StoredCluster) -> frozenset[str]:
        """Return every host of the list; the cluster itself if the list is empty."""
        return machines.hosts(cluster.settings.get("hosts", [])) or super().resources(cluster)
