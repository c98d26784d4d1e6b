"""Virtual test-bed: hosts and a network made on this machine for each trial."""

from __future__ import annotations

from typing import Final

from experiments.cluster_kinds.base import MachineKind, StoredCluster
from experiments.cluster_kinds.links import EVERYTHING
from experiments.cluster_kinds.settings import NoSettings

MOST_HOSTS: Final = 250
"""The last octet of the virtual hosts' addresses."""


class Testbed(MachineKind):
    """As many virtual hosts as are requested, on one bridge or two."""

    name = "testbed"
    title = "Virtual test-bed"
    summary = "Hosts made on this machine"
    noun = "the test-bed"
    settings_type = NoSettings
    exists_everywhere = True
    hosts_are_virtual = True
    capture_at = "bridge"
    emulates = EVERYTHING
    most_certified_bps = 1e9

    def most_hosts(self, cluster: StoredCluster) -> int | None:
        return MOST_HOSTS

    def hosts_in_words(self, cluster: StoredCluster) -> str:
        return "as requested"
