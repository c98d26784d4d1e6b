"""The settings of clusters of real hosts (Cluster.settings), validated once. docs/administrator.md explains them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from workers.errors import ClusterUnavailable

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.:-]*$")]
"""A host, user or partition: nothing that ssh or Slurm could take for an option."""
Word = Annotated[str, Field(min_length=1)]


class Settings(BaseModel):
    """Unknown fields are errors, values are final."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)

    @classmethod
    def of(cls, given: Mapping[str, Any], kind: str) -> Self:
        """From Cluster.settings. Raises ClusterUnavailable with a sentence that names the fields."""
        try:
            return cls.model_validate(dict(given))
        except ValidationError as error:
            problems = [
                f"{'.'.join(map(str, each['loc'])) or 'settings'}: {each['msg'].removeprefix('Value error, ')}"
                for each in error.errors()
            ]
            raise ClusterUnavailable(f"The settings of this {kind} cluster are wrong: {'; '.join(problems)}.") from None


class Login(Settings):
    """How a host is reached with ssh."""

    user: Name | None = None
    port: int | None = Field(None, ge=1, le=65535)
    key: Word | None = None
    config: Word | None = None
    forward_agent: bool = False

    def ssh(self, host: str) -> list[str]:
        """The command in front of what is to be run on the host. Never asks, and notices a dead host in 15 s."""
        options = ["BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=5", "ServerAliveCountMax=3"]
        if self.key is not None:
            options.append("IdentitiesOnly=yes")
        return [
            *("ssh", "-T"),
            *(("-F", self.config) if self.config is not None else ()),
            *(word for option in options for word in ("-o", option)),
            *(("-p", str(self.port)) if self.port is not None else ()),
            *(("-l", self.user) if self.user is not None else ()),
            *(("-i", self.key) if self.key is not None else ()),
            "-A" if self.forward_agent else "-a",
            host,
        ]


class HostSettings(Settings):
    """What clusters of real hosts share."""

    mpi: Literal["openmpi", "mpich", "intelmpi", "mvapich2"] = "openmpi"
    mpirun: Word | None = None
    interface: Name | None = None
    shared_cores: bool = False
    capture: Literal["first", "every"] = "first"
    capture_command: tuple[Word, ...] = Field(("dumpcap",), min_length=1)
    capture_filter: str | None = None
    scratch: str = Field("/tmp", pattern=r"^/[^\s'\"$`\\]*$")  # noqa: S108 - a private directory is made in it
    python: Word = "python3"
    environment: dict[str, str] = Field(default_factory=dict)


class SshSettings(HostSettings, Login):
    """Hosts that are reached with ssh; `agent` is how they reach each other."""

    hosts: tuple[Name, ...] = Field(min_length=1)
    agent: tuple[Word, ...] | None = Field(None, min_length=1)

    @field_validator("hosts")
    @classmethod
    def _are_different(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        if twice := [host for host, count in Counter(hosts).items() if count > 1]:
            raise ValueError(f"named more than once: {', '.join(twice)}")
        return hosts

    @property
    def between_hosts(self) -> tuple[str, ...]:
        """How a host reaches another: as the hosts' own ssh is set up, with our user and port."""
        if self.agent is not None:
            return self.agent
        port = ("-p", str(self.port)) if self.port is not None else ()
        user = ("-l", self.user) if self.user is not None else ()
        return ("ssh", "-x", "-o", "BatchMode=yes", *port, *user)


class SlurmLogin(Login):
    """Where Slurm's commands are run."""

    host: Name


class SlurmSettings(HostSettings):
    """Nodes that Slurm allots. Without `login` its commands run on the worker's machine."""

    partition: Name | None = None
    account: Name | None = None
    qos: Name | None = None
    constraint: Word | None = None
    reservation: Name | None = None
    time_limit: Word | None = None
    options: tuple[Word, ...] = ()
    pending_limit_s: float = Field(86400.0, gt=0)
    login: SlurmLogin | None = None
