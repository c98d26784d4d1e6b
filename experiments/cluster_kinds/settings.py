"""Common settings of clusters; docs/reference/cluster-settings.md explains them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator

from experiments.cluster_kinds.capture_filters import why_not_compiled
from experiments.specification.placement import Bind, Distribution
from experiments.specification.transport import NATIVE, TransportText

_NAME: Final = re.compile(r"[A-Za-z0-9_:][A-Za-z0-9_.:-]*")


def _as_name(text: str) -> str:
    if _NAME.fullmatch(text) is None:
        raise ValueError(
            f"{text[:80]!r} is not a name: use letters, digits, “_”, “:”, “.” and “-”; “.” and “-” do not begin it"
        )
    return text


Name = Annotated[str, AfterValidator(_as_name)]
"""A host, user or partition: nothing that ssh or Slurm could take for an option."""
Names = Annotated[str, AfterValidator(lambda text: ",".join(map(_as_name, text.split(","))))]
"""Names in a list with commas, of which the scheduler takes one."""
Word = Annotated[str, Field(min_length=1)]


def _as_path(text: str) -> str:
    if "-----BEGIN" in text:
        raise ValueError("is the key itself: give the path of its file on the worker's machine")
    return text


def _as_program(text: str) -> str:
    if re.fullmatch(r"[0-9.]+", text):
        raise ValueError(f"{text} is a version: give the name or path of the program, such as python{text}")
    return text


def _as_launch_command(text: str) -> str:
    if odd := re.search(r"[;&|<>$`'\"\\(){}*?\n]|\s", text if "/" not in text else text.replace(" ", "")):
        sign = odd[0] if odd[0].strip() else "a space"
        raise ValueError(f"{text[:80]!r} has {sign}: no shell runs it. Give the name or path of one program")
    return text


def why_no_command(words: str | Sequence[str]) -> str:
    """Return why a program, or a command that ends in one, cannot run; '' if it can."""
    if isinstance(words, str):
        words = [words]
    elif odd := next((word for word in words if re.search(r"^[^\s]*[;&|<>`][^\s]*$", word)), None):
        return f"{odd[:80]!r} is for a shell: no shell runs it. Write one command"
    elif words and not re.fullmatch(r"(.*/)?[\w.+][\w.+-]*", words[-1]):
        return f"{words[-1][:80]!r}, the last word, is not the name or path of a program"
    try:
        for word in (*words[:1], *words[1:][-1:]):
            _as_launch_command(word)
    except ValueError as error:
        return str(error)
    return ""


def _as_filter(text: str) -> str:
    if why := why_not_compiled(text):
        raise ValueError(f"{text[:80]!r} is not a capture filter: {why}")
    return text


LaunchCommand = Annotated[Word, AfterValidator(_as_launch_command)]
CaptureFilter = Annotated[str, AfterValidator(_as_filter)]
Program = Annotated[Word, AfterValidator(_as_program)]
KeyFile = Annotated[Word, AfterValidator(_as_path)]
MPIRUN: Final = "mpirun"
Launcher = Literal["mpirun", "srun-pmix", "srun-pmi2", "flux-run", "pals"]


def stated(default: Any, title: str, group: str, *, first: bool = False, usual: str = "", **more: Any) -> Any:
    """Return a setting with its label and heading; its docstring is its help text.

    ``first`` shows it beside the required ones, above all others. ``usual`` describes a default of None.
    """
    return Field(default, title=title, json_schema_extra={"group": group, "first": first, "usual": usual}, **more)


class Settings(BaseModel):
    """Base of all settings: unknown fields are errors, values are final."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class NoSettings(Settings):
    """Settings of kinds that need none: stored ones are ignored."""

    model_config = ConfigDict(extra="ignore")


class Login(Settings):
    """Login to a host with ssh."""

    user: Name | None = stated(None, "User", "Login", first=True, usual="the worker's user")
    """An ordinary account; it needs no password and no root rights."""
    port: int | None = stated(None, "Port", "Login", usual="22", ge=1, le=65535)
    """Port of the ssh server to which the worker logs in."""
    key: KeyFile | None = stated(None, "Private key", "Login", first=True, usual="ssh's own choice")
    """Path of the file on the worker's machine. The key itself is not stored; it must work without a password, or be in an ssh agent."""
    config: Word | None = stated(None, "ssh configuration", "Login", usual="~/.ssh/config")
    """Path of a file for ssh -F on the worker's machine: hosts to go through, short names."""
    forward_agent: bool = stated(False, "Forward the ssh agent", "Login")
    """Lets the host to which the worker logs in use the worker's agent, to reach other hosts."""

    def ssh(self, host: str) -> list[str]:
        """Return the words in front of a command on the host; ssh never asks."""
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
    """Settings of all clusters of real hosts."""

    launcher_choices: ClassVar[tuple[Launcher, ...]] = (MPIRUN,)
    """Launchers of this kind of cluster."""
    mpi: Literal["auto", "openmpi", "mpich", "intelmpi", "mvapich2"] = stated("auto", "MPI library", "MPI")
    """Library of the launch command. If chosen here, it holds for all programs, which must be built for it."""
    launcher: Launcher = stated(MPIRUN, "Launcher", "MPI")
    """Starts the ranks: mpirun, or a command of the batch system."""
    mpirun: LaunchCommand | None = stated(None, "Launch command", "MPI", usual="of the program's library")
    """Its name in PATH or its full path, the same on every host."""
    transport: TransportText = stated(NATIVE, "Transport", "MPI")
    """native: the MPI library chooses. tcp: all messages are recorded packets. Or one of your own, NAME: VARIABLE=value --option."""
    bind: Bind = stated("default", "Bind ranks to", "MPI")
    """Cores between which the system may move a rank; default: as the MPI library does."""
    distribution: Distribution = stated("block", "Distribution", "MPI")
    """Order in which hosts get ranks."""
    python: Program = stated("python3", "Python", "MPI")
    """Interpreter on the hosts, 3.9 or newer."""
    scratch: str = stated("/tmp", "Scratch directory", "MPI", pattern=r"^/[^\s'\"$`\\]*$")  # noqa: S108 - mkdtemp in it
    """Exists on every host and can be written; Rankwire removes only what it put there."""
    environment: dict[str, str] = stated({}, "Environment", "MPI")
    """Variables of every rank, one NAME=value a line: PATH, LD_LIBRARY_PATH."""
    shared_cores: bool = stated(False, "Hosts share processors", "MPI")
    """Ranks are not bound to cores then, and yield while they wait."""
    interface: Name | None = stated(None, "Interface", "Network", usual="detected")
    """Packets are recorded on it. The transport tcp sends all messages over it; with native, MPI may use another one."""
    capture: Literal["first", "every"] = stated("every", "Record packets on", "Network")
    """Recordings of all hosts are joined, each frame counted once. The first host alone misses traffic between the others."""
    capture_command: tuple[Word, ...] = stated(("dumpcap",), "Capture command", "Network", min_length=1)
    """Program that records packets; for example: sudo -n dumpcap"""
    capture_filter: CaptureFilter | None = stated(
        None, "Capture filter", "Network", usual="ports of MPI if known, else all but ssh"
    )
    """Packets to record, in the language of tcpdump; "" records everything."""
    offloads: Literal["keep", "off"] = stated("keep", "Offloads", "Network")
    """Network cards that join packets make their number an estimate. Off changes the card for all users while trials run."""
    offload_command: tuple[Word, ...] = stated(("ethtool",), "Offload command", "Network", min_length=1)
    """Program that switches offloads; for example: sudo -n ethtool"""

    @field_validator("launcher")
    @classmethod
    def _starts_ranks_here(cls, launcher: Launcher) -> Launcher:
        if launcher not in cls.launcher_choices:
            raise ValueError(
                f"{launcher} starts no ranks on this kind of cluster; choose {' or '.join(cls.launcher_choices)}"
            )
        return launcher
