"""Pods on the machine of the worker."""

from __future__ import annotations

from experiments.cluster_kinds.base import MachineKind, StoredCluster
from experiments.cluster_kinds.settings import NoSettings


class Pods(MachineKind):
    name = "pods"
    title = "Pods"
    noun = "pods"
    settings_type = NoSettings
    exists_everywhere = True
    hosts_are_virtual = True
    capture_at = "bridge"

    def most_hosts(self, cluster: StoredCluster) -> int | None:
        return 3
