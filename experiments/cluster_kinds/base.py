"""Kinds of cluster: settings, limits, facts, shared resources and networks."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal, Protocol

from pydantic import ValidationError

from experiments.cluster_kinds import machines
from experiments.cluster_kinds.settings import Settings, why_no_command
from experiments.common.processors import usable_cores
from experiments.errors import FieldError, InvalidSettings, alternatives
from experiments.specification.parameters import Link, sentence

RANKS_PER_CORE: Final = 4
LEAST_RANKS: Final = 64
UNKNOWN_CORES: Final = 64
"""Cores of a host if they are neither stated nor recorded by a trial."""


class StoredCluster(Protocol):
    """The part of `experiments.models.Cluster` that a kind reads."""

    @property
    def slug(self) -> str: ...
    @property
    def settings(self) -> Mapping[str, Any]: ...
    @property
    def facts(self) -> Mapping[str, Any]: ...
    def recorded_condition(self, condition: str, default: Any = None) -> Any:
        """Return the condition as the latest trial recorded it; a query."""


class ClusterKind(ABC):
    """Properties of all clusters of one kind. It has no state of a single cluster."""

    name: ClassVar[str]
    """Stored name of at most 10 characters; the module of its launcher has it too."""
    title: ClassVar[str]
    summary: ClassVar[str] = ""
    """A few words below the title."""
    noun: ClassVar[str]
    """Name in the middle of a sentence."""
    settings_type: ClassVar[type[Settings]]
    exists_everywhere: ClassVar[bool] = False
    """Every machine has a cluster of this kind, without settings and under the name of the kind."""
    on_this_machine: ClassVar[bool] = False
    """The hosts are on the machine of the worker."""
    hosts_share_cores: ClassVar[bool] = False
    """The hosts share the processors of one machine, so that elapsed times show contention for them."""
    hosts_are_virtual: ClassVar[bool] = False
    """The hosts are made for each trial: reports show how many of them shared the cores."""
    allots: ClassVar[bool] = False
    """A scheduler lets trials wait for their hosts and allots them in jobs."""
    capture_at: ClassVar[Literal["bridge", "host"]] = "host"
    """Packets are recorded between all hosts, or on one of them."""
    emulates: ClassVar[frozenset[str]] = frozenset()
    """Parts of a link that it can set (experiments.cluster_kinds.links)."""

    most_certified_bps: ClassVar[float | None] = None
    """The fastest link that its certificates can distinguish from a slower one; None if not known."""

    def read_settings(self, settings: Mapping[str, Any]) -> Settings:
        """Return the settings of a cluster. Raise InvalidSettings that names the fields."""
        if errors := self.errors_in(settings):
            problems = "; ".join(f"{error.path or 'settings'}: {error.message}" for error in errors)
            raise InvalidSettings(f"The settings of this {self.name} cluster are wrong: {problems}.")
        return self.settings_type.model_validate(dict(settings))

    def errors_in(self, settings: Mapping[str, Any]) -> list[FieldError]:
        """Return the errors in the settings of a cluster, each at its field."""
        try:
            self.settings_type.model_validate(dict(settings))
        except ValidationError as error:
            return [self._at_its_field(entry) for entry in error.errors()]
        return []

    @property
    def examples(self) -> Mapping[str, str]:
        """Return values of settings whose notation differs between kinds, for their help."""
        return {}

    def refusals(self, settings: Mapping[str, Any]) -> list[FieldError]:
        """Return settings that cannot work, which a form refuses; stored ones stay valid."""
        login, errors = settings.get("login") or {}, []
        for name, example in (("key", "id_ed25519"), ("config", "config")):
            why = f"must be a full path, such as ~/.ssh/{example}: the worker runs in a directory of its own"
            for path, text in ((name, settings.get(name)), (f"login.{name}", login.get(name))):
                if text and re.match(r"(?!.*-----BEGIN)[^/~%$]", text):
                    errors.append(FieldError(path, why))
        if re.match(r"[^/]+/", settings.get("mpirun") or ""):
            errors.append(
                FieldError("mpirun", "must be a name in PATH or a full path, such as /opt/openmpi/bin/mpirun")
            )
        commands = {path: settings.get(path) or () for path in ("python", "capture_command", "offload_command")}
        return errors + [FieldError(path, why) for path, words in commands.items() if (why := why_no_command(words))]

    def _at_its_field(self, error: Any) -> FieldError:
        """Report an error of a list entry at the list: a form shows no entry numbers."""
        path = ".".join(str(part) for part in error["loc"] if not isinstance(part, int))
        if error["type"] == "too_short":
            return FieldError(path, "needs at least one")
        if error["type"] == "string_pattern_mismatch":
            return FieldError(path, f"must be a full path without spaces, quotes and $, not {error['input']!r}")
        if error["type"] == "extra_forbidden":
            return FieldError(path, "is not a known field" + alternatives(path, self.settings_type.model_fields))
        return FieldError(path, sentence(error))

    def link_in_words(self, link: Link, *, brief: bool = False) -> str:
        """Return a description of the network between the hosts of a trial."""
        return link.describe(brief=brief) if self.emulates else "the network as it is"

    @abstractmethod
    def most_hosts(self, cluster: StoredCluster) -> int | None:
        """Return the most hosts of a trial; None if only the scheduler knows."""

    def hosts_to_suggest(self, cluster: StoredCluster) -> int | None:
        """Return the most hosts of a suggestion; None if that is not known."""
        return self.most_hosts(cluster)

    def cores_to_suggest(self, cluster: StoredCluster) -> int | None:
        """Return the most ranks per host of a suggestion: its cores; None if not known."""
        cores = cluster.recorded_condition("cores", cluster.facts.get("cores_per_host"))
        return cores if isinstance(cores, int) else None

    def most_ranks(self, cluster: StoredCluster, hosts: int) -> int:
        """Return a limit of ranks on so many hosts: more than any use needs. May query."""
        return hosts * max(LEAST_RANKS, RANKS_PER_CORE * (self.cores_to_suggest(cluster) or UNKNOWN_CORES))

    def hosts_in_words(self, cluster: StoredCluster) -> str:
        """Return the number of hosts as the list of clusters shows it."""
        return str(self.most_hosts(cluster))

    def resources(self, cluster: StoredCluster) -> frozenset[str]:
        """Return the exclusive resources of a trial: the cluster, or its known hosts."""
        return frozenset({f"cluster:{cluster.slug}"})


class MachineKind(ClusterKind):
    """Hosts on the machine of the worker: every host uses all of its processors."""

    on_this_machine = True
    hosts_share_cores = True

    def cores_to_suggest(self, cluster: StoredCluster) -> int | None:
        return usable_cores()

    def most_ranks(self, cluster: StoredCluster, hosts: int) -> int:
        return max(256, 16 * len(os.sched_getaffinity(0)))

    def resources(self, cluster: StoredCluster) -> frozenset[str]:
        return machines.this_machine()
