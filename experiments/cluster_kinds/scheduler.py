"""Kinds of cluster whose hosts a batch system allots."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal

from pydantic import field_validator

from experiments.cluster_kinds.base import ClusterKind, StoredCluster
from experiments.cluster_kinds.hosts import HostAlias
from experiments.cluster_kinds.settings import MPIRUN, HostSettings, Launcher, Login, Name, Names, Word, stated
from experiments.errors import FieldError

_CLOCK: Final = r"(\d+:){0,2}\d+"


class SchedulerLogin(Login):
    """Login to the host on which the scheduler's commands run."""

    host: HostAlias = stated(..., "Login host", "Login")
    """Host of the scheduler's commands. Empty: the worker's machine, which then needs no login."""


class SchedulerSettings(HostSettings):
    """Settings of allotted nodes; without `login` the worker's machine submits."""

    time_limit: Word | None = stated(None, "Time limit", "Queue", usual="of the queue")
    """Limit of one job."""
    options: tuple[Word, ...] = stated((), "Further options", "Queue")
    """More words for the command that submits."""
    pending_limit_s: float = stated(86400.0, "Longest wait for nodes, s", "Queue", gt=0, allow_inf_nan=False)
    """A trial fails after it."""
    allocation: Literal["per size", "per experiment"] = stated("per size", "Allocation", "Queue")
    """One job holds its nodes for successive trials of equal size, or for a whole experiment, which waits in the queue once."""
    login: SchedulerLogin | None = None


class LoginSettings(SchedulerSettings):
    """Settings of schedulers whose nodes are reached with ssh."""

    slots_per_host: int = stated(1, "Slots of a host", "Queue", ge=1, le=100_000)
    """Number of the scheduler's slots that are one whole host, usually its cores."""
    agent: tuple[Word, ...] | None = stated(None, "Between hosts", "Login", usual="ssh", min_length=1)
    """Command by which the login host and the nodes reach a node; it asks for nothing."""

    @property
    def between_hosts(self) -> tuple[str, ...]:
        """Return the command that reaches a node from the login host and other nodes."""
        return self.agent or ("ssh", "-x", "-o", "BatchMode=yes")


class SchedulerKind(ClusterKind):
    """As many nodes as the scheduler gives; it lets no other job on them."""

    allots = True
    time_limit_pattern: ClassVar[str]
    """Spelling of a time limit, as a regular expression."""
    time_limit_example: ClassVar[str]
    options_of_rankwire: ClassVar[frozenset[str]]
    """Options of the submit command that a further one would contradict."""

    @property
    def examples(self) -> Mapping[str, str]:
        return {"time_limit": self.time_limit_example}

    def refusals(self, settings: Mapping[str, Any]) -> list[FieldError]:
        """Return an unreadable time limit, and options that Rankwire sets itself."""
        errors, limit = super().refusals(settings), settings.get("time_limit")
        if isinstance(limit, str) and not re.fullmatch(self.time_limit_pattern, limit.strip(), re.IGNORECASE):
            errors.append(
                FieldError("time_limit", f"is not a time limit of {self.title}, such as {self.time_limit_example}")
            )
        for word in settings.get("options", ()):
            if (option := self._set_by_rankwire(word)) is not None:
                errors.append(FieldError("options", f"{option} is set by Rankwire for each trial: remove it"))
        return errors

    def _set_by_rankwire(self, word: str) -> str | None:
        """Return the option of a word, `--nodes=3` or `-N3`, if Rankwire sets it."""
        options = (name for name in self.options_of_rankwire if re.fullmatch(rf"{name}(=.*|\d.*)?", word))
        return next(options, None)

    def most_hosts(self, cluster: StoredCluster) -> int | None:
        """Return None: partitions grow, so users may ask for more than is known."""
        return None

    def hosts_to_suggest(self, cluster: StoredCluster) -> int | None:
        """Return the stated hosts or those that the scheduler last reported, the fewer."""
        queue = cluster.recorded_condition("partition", {})
        requested = cluster.settings.get("partition", cluster.settings.get("queue"))
        same = requested in (None, queue.get("name"))
        counts = [cluster.facts.get("hosts"), queue.get("hosts") if same else None]
        return min((count for count in counts if isinstance(count, int)), default=None)

    def hosts_in_words(self, cluster: StoredCluster) -> str:
        return str(cluster.facts.get("hosts", "as allocated"))


class SlurmSettings(SchedulerSettings):
    """Nodes that Slurm allots."""

    launcher_choices: ClassVar[tuple[Launcher, ...]] = (MPIRUN, "srun-pmix", "srun-pmi2")
    partition: Names | None = stated(None, "Partition", "Queue", first=True, usual="Slurm's default")
    """Partition of the jobs (sbatch --partition), such as compute, or a list: compute,long."""
    account: Name | None = stated(None, "Account", "Queue", first=True)
    """Account that is charged (sbatch --account), such as physics."""
    qos: Name | None = stated(None, "Quality of service", "Queue")
    """Name of a QOS (sbatch --qos)."""
    constraint: Word | None = stated(None, "Constraint", "Queue")
    """Features that nodes must have (sbatch --constraint), such as icelake&ib."""
    reservation: Name | None = stated(None, "Reservation", "Queue")
    """Reservation whose nodes are used (sbatch --reservation)."""

    @field_validator("options")
    @classmethod
    def _are_of_one_job(cls, options: tuple[Word, ...]) -> tuple[Word, ...]:
        if ":" in options:
            raise ValueError(
                "has a “:”, which begins another part of a heterogeneous job: all hosts of a trial are equal"
            )
        return options


class Slurm(SchedulerKind):
    """Nodes that steps of the job reach."""

    name = "slurm"
    title = "Slurm"
    summary = "Jobs through a login node"
    noun = "Slurm"
    time_limit_pattern = rf"(\d+-\d+(:\d+){{0,2}}|{_CLOCK}|unlimited|infinite)"
    time_limit_example = "1-00:00:00"
    options_of_rankwire = frozenset({"--nodes", "-N", "--job-name", "-J"})
    settings_type = SlurmSettings

    def refusals(self, settings: Mapping[str, Any]) -> list[FieldError]:
        errors = super().refusals(settings)
        if re.search(r"\s", str(settings.get("constraint", "")).strip()):
            errors.append(FieldError("constraint", "has a space: join features with “&” or “|”"))
        return errors


class PbsSettings(LoginSettings):
    """Nodes that PBS allots."""

    launcher_choices: ClassVar[tuple[Launcher, ...]] = (MPIRUN, "pals")
    queue: Name | None = stated(None, "Queue", "Queue", first=True, usual="PBS' default")
    """Queue of the jobs (qsub -q)."""
    account: Name | None = stated(None, "Account", "Queue", first=True)
    """Account that is charged (qsub -A)."""
    attach: Word = stated("/opt/pbs/bin/pbs_attach", "Attach", "Queue")
    """The nodes' command that takes a login into the job."""
    select: Word | None = stated(None, "Of every node", "Queue")
    """Further resources of each node (qsub -l select): mem=64gb:mpiprocs=32."""

    @field_validator("select")
    @classmethod
    def _is_one_chunk(cls, select: str | None) -> str | None:
        if select and "+" in select:
            raise ValueError("has a “+”, which begins a chunk of other hosts: all hosts of a trial are equal")
        return select


class Pbs(SchedulerKind):
    """Nodes that logins reach."""

    name = "pbs"
    title = "PBS"
    summary = "OpenPBS and PBS Professional"
    noun = "PBS"
    time_limit_pattern = _CLOCK
    time_limit_example = "24:00:00"
    options_of_rankwire = frozenset({"-N", "select", "-lselect"})
    settings_type = PbsSettings


class LsfSettings(LoginSettings):
    """Nodes that LSF allots."""

    queue: Name | None = stated(None, "Queue", "Queue", first=True, usual="LSF's default")
    """Queue of the jobs (bsub -q)."""
    project: Name | None = stated(None, "Project", "Queue")
    """Project that is charged (bsub -P)."""
    resources: Word | None = stated(None, "Resources", "Queue")
    """Requirements of nodes (bsub -R): select[mem>64000]."""


class Lsf(SchedulerKind):
    """Nodes that logins reach."""

    name = "lsf"
    title = "LSF"
    summary = "IBM Spectrum LSF"
    noun = "LSF"
    time_limit_pattern = r"(\d+:)?\d+(/\S+)?"
    time_limit_example = "24:00"
    options_of_rankwire = frozenset({"-n", "-J"})
    settings_type = LsfSettings


class FluxSettings(SchedulerSettings):
    """Nodes that Flux allots."""

    launcher_choices: ClassVar[tuple[Launcher, ...]] = (MPIRUN, "flux-run")
    queue: Name | None = stated(None, "Queue", "Queue", first=True, usual="Flux' default")
    """Queue of the jobs (flux batch -q)."""
    bank: Name | None = stated(None, "Bank", "Queue")
    """Bank, Flux' account for charges (flux batch --bank)."""
    requires: Word | None = stated(None, "Requires", "Queue")
    """Properties that nodes must have (flux batch --requires)."""


class Flux(SchedulerKind):
    """Nodes that commands of Flux reach."""

    name = "flux"
    title = "Flux"
    summary = "Flux Framework"
    noun = "Flux"
    time_limit_pattern = r"\d+(\.\d+)?(ms|[smhd])?|inf(inity)?"
    time_limit_example = "24h"
    options_of_rankwire = frozenset({"--nodes", "-N", "--nslots", "-n", "--job-name"})
    settings_type = FluxSettings


class GridengineSettings(LoginSettings):
    """Nodes that Grid Engine allots."""

    parallel_environment: Name = stated(..., "Parallel environment", "Queue")
    """One whose allocation rule is the number of slots of a host, so that hosts are taken whole; qconf -spl lists them."""
    queue: Name | None = stated(None, "Queue", "Queue", first=True, usual="any")
    """Queue of the jobs (qsub -q)."""
    project: Name | None = stated(None, "Project", "Queue")
    """Project that is charged (qsub -P)."""


class Gridengine(SchedulerKind):
    """Nodes that logins reach: Sun's, Univa's, Altair's, Son of and Open Grid Engine."""

    name = "gridengine"
    title = "Grid Engine"
    summary = "Sun's and its successors"
    noun = "Grid Engine"
    time_limit_pattern = rf"{_CLOCK}|infinity"
    time_limit_example = "24:00:00"
    options_of_rankwire = frozenset({"-pe", "-N"})
    settings_type = GridengineSettings
