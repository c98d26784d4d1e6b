"""What one class says of a kind of cluster: its settings, limits and facts, what its hosts share, what network it makes. Pure."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Protocol

from pydantic import ValidationError

from experiments.cluster_kinds import machines
from experiments.cluster_kinds.settings import Settings
from experiments.errors import InvalidSettings
from experiments.spec.parameters import Link


class StoredCluster(Protocol):
    """What a kind reads of one cluster (experiments.models.Cluster). Its settings are as somebody wrote them, and may be wrong."""

    @property
    def slug(self) -> str: ...
    @property
    def settings(self) -> Mapping[str, Any]: ...
    @property
    def facts(self) -> Mapping[str, Any]: ...
    def told(self, condition: str, default: Any = None) -> Any:
        """What the latest trial on the cluster that knows this condition was told; a query."""


class ClusterKind(ABC):
    """What holds for all clusters of one kind. Without state: what belongs to a single cluster is handed over."""

    name: ClassVar[str]
    """As it is stored, in at most 10 characters, and as the modules of the kind and of its launcher are called."""
    title: ClassVar[str]
    """For people."""
    noun: ClassVar[str]
    """In the middle of a sentence."""
    settings_type: ClassVar[type[Settings]]
    exists_everywhere: ClassVar[bool] = False
    """Whether every machine has a cluster of this kind, without settings and under the name of the kind."""
    on_this_machine: ClassVar[bool] = False
    """Whether the hosts are on the machine of the worker."""
    hosts_share_cores: ClassVar[bool] = False
    """Whether the hosts have the processors of one machine together, so that elapsed times show contention for them."""
    hosts_are_virtual: ClassVar[bool] = False
    """Whether the hosts are made for each trial: a reader of their elapsed times is told how many shared the cores."""
    capture_at: ClassVar[Literal["bridge", "host"]] = "host"
    """Where packets are recorded: between all hosts, or on one of them."""
    emulates: ClassVar[frozenset[str]] = frozenset()
    """What of a link it can set (experiments.cluster_kinds.links); of all else the network is as it is."""

    def read_settings(self, given: Mapping[str, Any]) -> Settings:
        """Return the settings of a cluster. Raise InvalidSettings with a sentence that names the fields."""
        try:
            return self.settings_type.model_validate(dict(given))
        except ValidationError as error:
            problems = [
                f"{'.'.join(map(str, each['loc'])) or 'settings'}: {each['msg'].removeprefix('Value error, ')}"
                for each in error.errors()
            ]
            raise InvalidSettings(
                f"The settings of this {self.name} cluster are wrong: {'; '.join(problems)}."
            ) from None

    def link_in_words(self, link: Link) -> str:
        """Return what the hosts of a trial are joined by."""
        return link.describe() if self.emulates else "the network as it is"

    @abstractmethod
    def most_hosts(self, cluster: StoredCluster) -> int | None:
        """Return how many hosts a trial can have; None where only the scheduler knows."""

    def hosts_to_suggest(self, cluster: StoredCluster) -> int | None:
        """Return how many hosts a suggestion may ask for; None where nothing is known."""
        return self.most_hosts(cluster)

    def cores_to_suggest(self, cluster: StoredCluster) -> int | None:
        """Return how many ranks of one host a suggestion may ask for: its cores; None where nothing is known."""
        cores = cluster.told("cores", cluster.facts.get("cores_per_host"))
        return cores if isinstance(cores, int) else None

    def hosts_in_words(self, cluster: StoredCluster) -> str:
        """Return what the list of clusters says of the number of hosts."""
        return str(self.most_hosts(cluster))

    def resources(self, cluster: StoredCluster) -> frozenset[str]:
        """Return what a trial must have for itself: the cluster as a whole, unless its hosts are known."""
        return frozenset({f"cluster:{cluster.slug}"})


class MachineKind(ClusterKind):
    """Hosts on the machine of the worker: a trial takes all of it, since its processors serve every host."""

    on_this_machine = True
    hosts_share_cores = True

    def cores_to_suggest(self, cluster: StoredCluster) -> int | None:
        return len(os.sched_getaffinity(0))

    def resources(self, cluster: StoredCluster) -> frozenset[str]:
        return machines.this_machine()
