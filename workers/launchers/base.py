"""What every kind of cluster offers: a launcher (pure) opens a session (real), a session runs jobs.

A variant is one class and one entry in the registry of `workers.launchers`.
"""

from __future__ import annotations

import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Protocol

from workers.capture import DEFAULT_SNAP_LENGTH, Capture
from workers.environment import describe
from workers.errors import LaunchFailed
from workers.processes import Keeper, Process, null_input
from workers.sampling import Sample
from workers.testbed.probe import search_path

WRAPPER = Path(__file__).resolve().parent / "rank.py"
PYTHON = (
    "/usr/bin/python3"  # the system's own: it starts in a third of the time of a managed one, and exists on every node
)
# First port and number of ports of the MPI library's TCP transport: below the range (from 32768 on) from which the
# kernel takes the ports of everybody else's connections, or a capture on loopback would hold those too.
BTL_PORTS = (20000, 1000)
PASSED_ON = ("HOME", "LOGNAME", "USER", "LD_LIBRARY_PATH")


class Link(Protocol):
    """What a launcher needs to know of `experiments.parameters.Link`; None means not limited, not changed."""

    @property
    def bandwidth_bps(self) -> float | None: ...
    @property
    def delay_s(self) -> float: ...
    @property
    def jitter_s(self) -> float: ...
    @property
    def loss(self) -> float: ...
    @property
    def mtu(self) -> int | None: ...


@dataclass(frozen=True)
class Job:
    """One launch: `program` is the workload's argv for each rank; ranks fill the hosts in order."""

    program: tuple[str, ...]
    ranks: int
    ranks_per_host: int
    hosts: tuple[str, ...]
    workdir: Path
    report_dir: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    btl_ports: tuple[int, int] = BTL_PORTS

    def wrapped_program(self) -> list[str]:
        """The argv of one rank with the wrapper that reports what the rank used."""
        return [PYTHON, "-I", "-S", str(WRAPPER), str(self.report_dir), *self.program]


class Session:
    """Hosts that are ready, and a keeper that runs programs on them. A context manager."""

    def __init__(self, launcher: Launcher, keeper: Keeper, hosts: tuple[str, ...], facts: dict[str, Any]) -> None:
        self.launcher = launcher
        self.keeper = keeper
        self.hosts = hosts
        self.facts = facts
        self._stack = ExitStack()
        self._stack.callback(keeper.close)

    first_host: str | None = None
    """Where the launch command runs: None is the machine of the worker itself."""
    capture_interface = "lo"
    interface = "lo"
    capture_filter: str | None = None
    temporary: Path | None = None

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def alive(self) -> bool:
        """Whether it can run another job."""
        return self.keeper.alive()

    def close(self) -> None:
        """End everything on the hosts and the hosts themselves, where they are ours. Idempotent."""
        self._stack.close()

    def capture(
        self,
        *,
        snap_length: int = DEFAULT_SNAP_LENGTH,
        capture_filter: str | None = None,
        max_bytes: int | None = None,
    ) -> Capture:
        """Start to record the packets between the hosts. Raises CaptureUnavailable."""
        return Capture.start(
            self.keeper,
            self.capture_interface,
            snap_length=snap_length,
            capture_filter=capture_filter or self.capture_filter,
            max_bytes=max_bytes,
        )

    def launch(self, job: Job, *, stdout: Path, stderr: Path) -> Process:
        """Start the job; its output goes to the two files. Raises LaunchFailed."""
        job.report_dir.mkdir(parents=True, exist_ok=True)
        for stale in job.report_dir.glob("rank-*.json"):
            stale.unlink()
        if find(job.program[0], job.workdir) is None:
            raise LaunchFailed(f"The program {job.program[0]} is not installed on this machine.")
        with ExitStack() as files:
            streams = [files.enter_context(path.open("wb")) for path in (stdout, stderr)]
            nothing = null_input()
            files.callback(os.close, nothing)
            return self.keeper.spawn(
                self.launcher.argv(job),
                environment=self.environment_variables(),
                directory=job.workdir,
                descriptors=(nothing, *(stream.fileno() for stream in streams)),
                host=self.first_host,
                job=True,
            )

    def environment_variables(self) -> dict[str, str]:
        """What programs see: the same few variables whoever starts the worker, and nothing of its secrets."""
        variables = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        variables |= {"PATH": search_path(), "LANG": "C.UTF-8"}
        if self.temporary is not None:
            variables["TMPDIR"] = str(self.temporary)
        return variables

    def sample(self) -> Sample:
        """Counters of the machine and of every host, now."""
        return Sample.from_message(self.keeper.ask("sample")[0])

    def environment(self, program: Path | None = None) -> dict[str, Any]:
        """What a reader must know to repeat the trial; equal on equal systems, so that it can be hashed."""
        return describe(self.keeper, self.first_host, self.interface, program, self.environment_variables())


class Launcher(ABC):
    """A kind of cluster."""

    kind: ClassVar[str]

    @abstractmethod
    def probe(self) -> list[str]:
        """What keeps this kind from working here, in sentences; [] when nothing does."""

    @abstractmethod
    def host_names(self, host_count: int) -> tuple[str, ...]:
        """The hosts a session of this size has. Pure."""

    @abstractmethod
    def argv(self, job: Job) -> list[str]:
        """The launch command, exactly as it is run. Pure."""

    @abstractmethod
    def open(self, *, host_count: int, link: Link) -> Session:
        """Make the hosts ready. Raises ClusterUnavailable."""


def find(program: str, workdir: Path) -> str | None:
    """Where a program lies: in PATH, or relative to the working directory when its name has a slash."""
    return shutil.which(str(workdir / program) if "/" in program else program, path=search_path())
