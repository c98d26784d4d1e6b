"""Hosts that are rented for a trial."""

from __future__ import annotations

from pydantic import Field

from experiments.cluster_kinds.base import ClusterKind, StoredCluster
from experiments.cluster_kinds.settings import Name, Settings


class CloudSettings(Settings):
    region: Name
    quota: int = Field(4, ge=1)


class Cloud(ClusterKind):
    name = "cloud"
    title = "Rented hosts"
    noun = "the cloud"
    settings_type = CloudSettings
    emulates = frozenset({"delay"})

    def most_hosts(self, cluster: StoredCluster) -> int | None:
        return None

    def hosts_to_suggest(self, cluster: StoredCluster) -> int | None:
        return int(cluster.settings.get("quota", 4))

    def hosts_in_words(self, cluster: StoredCluster) -> str:
        return f"up to {self.hosts_to_suggest(cluster)}"
