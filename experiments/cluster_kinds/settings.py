"""What settings of clusters (Cluster.settings) have in common, validated once. docs/administrator.md explains them. Pure."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.:-]*$")]
"""A host, user or partition: nothing that ssh or Slurm could take for an option."""
Word = Annotated[str, Field(min_length=1)]


class Settings(BaseModel):
    """Unknown fields are errors, values are final."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)


class NoSettings(Settings):
    """Of kinds that need none; what stands there is not read."""

    model_config = ConfigDict(extra="ignore")


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
