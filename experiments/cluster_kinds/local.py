"""This machine as a cluster of one host."""

from __future__ import annotations

from experiments.cluster_kinds.base import MachineKind, StoredCluster
from experiments.cluster_kinds.settings import NoSettings, stated


class LocalSettings(NoSettings):
    """Settings of this machine.

    With `confined` False, programs of trials run as the worker and see what it sees: for machines without namespaces.
    """

    confined: bool = stated(True, "Confine programs", "Trials")
    """Programs of trials see neither this installation nor other trials. Switch it off only if the machine allows no namespaces."""


class Local(MachineKind):
    """One host: the machine of the worker."""

    name = "local"
    title = "This machine"
    summary = "One host, no link"
    noun = "this machine"
    settings_type = LocalSettings
    exists_everywhere = True

    def most_hosts(self, cluster: StoredCluster) -> int | None:
        return 1
