"""This machine alone."""

from __future__ import annotations

from experiments.cluster_kinds.base import MachineKind, StoredCluster
from experiments.cluster_kinds.settings import NoSettings


class Local(MachineKind):
    """One host: the machine of the worker."""

    name = "local"
    title = "This machine"
    summary = "One host, no link"
    noun = "this machine"
    settings_type = NoSettings
    exists_everywhere = True

    def most_hosts(self, cluster: StoredCluster) -> int | None:
        return 1
