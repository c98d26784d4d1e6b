"""What every kind of cluster offers: a launcher (pure) opens a session (real), a session runs jobs.

A variant is one class in a module of this package that is called as its kind (`experiments.cluster_kinds`) is.
"""

from __future__ import annotations

import os
import platform
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Protocol, Self

from experiments import cluster_kinds
from experiments.cluster_kinds import AskedLink, ClusterKind, refusals
from experiments.cluster_kinds.settings import Settings
from experiments.errors import InvalidSettings
from workers.agent.sandbox import TEMPORARY
from workers.capture.dumpcap import DEFAULT_SNAP_LENGTH, Capture
from workers.errors import ClusterUnavailable, LaunchFailed, TrialFailed
from workers.hosts.environment import describe
from workers.hosts.processes import LocalAgent, Process
from workers.hosts.programs import search_path
from workers.hosts.remote_agent import RemoteAgent
from workers.hosts.sampling import Sample
from workers.launchers.job import PYTHON, Job, Launch
from workers.launchers.limits import (
    Limits,
    disk_use_bytes,
    open_path,
    outermost,
    read_text,
    refused_container,
)
from workers.testbed.certificate import Certificate
from workers.testbed.plan import Topology

PASSED_ON = ("HOME", "LOGNAME", "USER", "LD_LIBRARY_PATH")


Tell = Callable[[str], None]


def say_nothing(_what: str) -> None:
    """Nobody listens."""


class Link(AskedLink, Protocol):
    """What a launcher needs to know of `experiments.specification.parameters.Link`; None means not limited, not changed."""

    @property
    def bandwidth_bps(self) -> float | None: ...
    @property
    def mtu(self) -> int | None: ...
    @property
    def distribution(self) -> str: ...
    @property
    def loss_burst(self) -> float: ...
    @property
    def topology(self) -> Topology: ...
    @property
    def emulator(self) -> str: ...


class Session(ABC):
    """Hosts that are ready to run jobs. A context manager."""

    is_isolated = False
    """Whether it shares no host with other sessions, so that several are open at once."""

    def __init__(self, launcher: Launcher, hosts: tuple[str, ...], facts: dict[str, Any]) -> None:
        self.launcher = launcher
        self.hosts = hosts
        self.facts = facts
        self.offloads_left: Mapping[str, str] = {}
        """Why offloads that were to be switched off are on, by host."""
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End everything on the hosts and the hosts themselves, where they are ours. Idempotent."""
        self._stack.close()

    def as_lost(self, error: TrialFailed) -> TrialFailed:
        """Why a trial here failed, as HostsLost where its hosts went away under it."""
        return error

    @property
    def usual_launch(self) -> Launch:
        """What launches a program of which nothing is known."""
        return self.launcher.usual_launch

    def prepared(self, job: Job) -> Job:
        """The job with the launch command that its program needs; what is recorded next are its packets."""
        return self.launcher.for_program(job)

    @property
    def knows_ports(self) -> bool:
        """Whether the MPI traffic of the prepared job has ports by which it can be told."""
        return True

    def argv(self, job: Job) -> list[str]:
        """The launch command as it will be run on these hosts."""
        return self.launcher.argv(job)

    def missing(self, program: str, workdir: Path, path: str | None = None) -> str | None:
        """Why a program cannot be run, in a sentence; None when it is there. ``path``: the job's own PATH, where it has one."""
        return None if find(program, workdir, path) else f"The program {program} is not installed on this machine."

    @property
    def remote_agents(self) -> Mapping[str, RemoteAgent]:
        """Who speaks for each host that is a machine of its own; empty where all hosts are on the worker's."""
        return {}

    @property
    def recorded_hosts(self) -> tuple[str | None, ...]:
        """Whose packets can be recorded, the one that the analysis reads first; None is all hosts at once."""
        return (None,)

    @property
    def addresses(self) -> Mapping[str, frozenset[str]]:
        """The IP addresses of each of the `recorded_hosts` whose recordings can be joined; empty where there is nothing to join."""
        return {}

    @property
    def addresses_by_name(self) -> Mapping[str, frozenset[str]]:
        """The IP addresses of every host, by the name that its ranks know it by; a host is left out where they are not known."""
        return {}

    @property
    def blind_spot(self) -> str:
        """Traffic between the hosts that the first of the `recorded_hosts` does not see, as a reason; empty for none."""
        return ""

    def architecture(self) -> str:
        """Of all hosts, as the kernel names it. Raises ProfileUnavailable where they differ."""
        return platform.machine()

    @abstractmethod
    def read_text(self, path: str, limits: Limits) -> str:
        """A file of the first host that programs of trials may read there. Raises LaunchFailed."""

    def certify(self) -> Certificate | None:
        """What the link was measured to be, kept while the hosts are; None where there is nothing to certify."""
        return None

    def network_problems(self, *, thorough: bool = False) -> list[str]:
        """Why the network is not what it was at the start, in sentences. Cheap, unless thorough."""
        return []

    def exceeded(self, job: Job) -> str:
        """Which limit of its limits the job has reached, as a sentence; empty for none, and where the hosts have their own."""
        return ""

    @abstractmethod
    def alive(self) -> bool:
        """Whether it can run another job."""

    @abstractmethod
    def capture(self, host: str | None = None, *, snap_length: int = DEFAULT_SNAP_LENGTH) -> Capture:
        """Start to record the packets of one of the `recorded_hosts`. Raises CaptureUnavailable.

        `snap_length`: bytes that are kept of each packet.
        """

    @abstractmethod
    def launch(self, job: Job, *, stdout: Path, stderr: Path) -> Process:
        """Start the job; its output goes to the two files. Raises LaunchFailed."""

    @abstractmethod
    def sample(self) -> Sample:
        """Counters of the machine and of every host, now."""

    @abstractmethod
    def environment(
        self, program: Path | None = None, arguments: Sequence[str] = (), launch: Launch | None = None
    ) -> dict[str, Any]:
        """What a reader must know to repeat the trial; equal on equal systems, so that it can be hashed."""


class MachineSession(Session):
    """Hosts on the machine of the worker, and the agent that runs programs on them."""

    first_host: str | None = None
    """Where the launch command runs: None is the machine itself."""
    interface = "lo"
    confined = True
    """Whether jobs run in a sandbox: the agent has namespaces of its own."""
    needed: tuple[Path, ...] = ()
    """Files that jobs need although they lie where a sandbox is empty."""

    def __init__(self, launcher: Launcher, agent: LocalAgent, hosts: tuple[str, ...], facts: dict[str, Any]) -> None:
        super().__init__(launcher, hosts, facts)
        self.agent = agent
        self._stack.callback(agent.close)

    def alive(self) -> bool:
        return self.agent.alive()

    def launch(self, job: Job, *, stdout: Path, stderr: Path) -> Process:
        job.report_dir.mkdir(parents=True, exist_ok=True)
        for stale in (*job.report_dir.glob("rank-*.json"), *job.report_dir.glob("rank-*.mpi")):
            stale.unlink()
        contained = refused_container(job.program) if self.confined else None
        reason = contained or self.missing(job.program[0], job.workdir, job.environment.get("PATH"))
        if reason is not None:
            raise LaunchFailed(reason)
        job = job if job.launch else self.prepared(job)
        self._require_launch_command(job)
        with ExitStack() as files:
            streams = [files.enter_context(path.open("wb")).fileno() for path in (stdout, stderr)]
            nothing = files.enter_context(Path(os.devnull).open("rb")).fileno()
            program = self._granted_program(job)
            writable = outermost([job.workdir, job.report_dir]) if self.confined else []
            for path in writable:
                streams.append(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC))
                files.callback(os.close, streams[-1])
            counting = [job.profile.library] if job.profile else []
            granted = (*map(Path, job.wrapper), *counting, *self.needed, *program)
            readable = [path for path in granted if path.is_absolute()]
            return self.agent.spawn(
                self.argv(job),
                environment=self.environment_variables(),
                directory=job.workdir.resolve(),
                descriptors=(nothing, *streams),
                host=self.first_host,
                job=True,
                sandbox=job.limits.plan(readable=readable, writable=writable) if self.confined else None,
            )

    def _require_launch_command(self, job: Job) -> None:
        launch = job.launch or self.usual_launch
        if find(launch.program, job.workdir) is None:
            raise LaunchFailed(f"{launch.refusal} on this machine.")

    def _granted_program(self, job: Job) -> list[Path]:
        """The file of the program, which whoever may name it may run wherever it lies. Raises LaunchFailed."""
        program = Path(job.program[0]).resolve()
        if not self.confined or not Path(job.program[0]).is_absolute() or program.is_relative_to(job.workdir.resolve()):
            return []
        if reason := job.limits.refusal(program):
            raise LaunchFailed(reason)
        return [program]

    def read_text(self, path: str, limits: Limits) -> str:
        try:
            return limits.read_text(path) if self.confined else read_text(path)
        except OSError as error:
            raise LaunchFailed(f"The input file {path} cannot be read on this machine: {error.strerror}.") from None

    def environment_variables(self) -> dict[str, str]:
        """What programs see: the same few variables whoever starts the worker, and nothing of its secrets."""
        variables = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        variables |= {"PATH": open_path(search_path()) if self.confined else search_path(), "LANG": "C.UTF-8"}
        if self.confined:
            variables["TMPDIR"] = str(TEMPORARY)
        return variables

    def sample(self) -> Sample:
        """The worker is an instrument of the trial too, and on the same machine."""
        message = self.agent.ask("sample")[0]
        message["machine"]["cpu_ours_s"] += time.process_time()
        return Sample.from_message(message)

    def exceeded(self, job: Job) -> str:
        if not self.confined:
            return ""
        return job.limits.exceeded(self.agent.ask("use")[0], disk_use_bytes(job.workdir))

    def environment(
        self, program: Path | None = None, arguments: Sequence[str] = (), launch: Launch | None = None
    ) -> dict[str, Any]:
        argv = () if program is None else (str(program), *arguments)
        mpirun = (launch or self.usual_launch).program
        return describe(self.agent, self.first_host, self.interface, argv, mpirun, self.environment_variables())


@dataclass(frozen=True)
class Recording:
    """What a capture would record: the place in words, and the pcap filter (None: every packet there)."""

    place: str
    capture_filter: str | None = None


@dataclass(frozen=True)
class Reached:
    """Whether a host answers. ``python``: the version there, empty where none was found; ``problem``: why not, in a sentence,
    with what to do and the commands for it."""

    host: str
    took_s: float
    python: str = ""
    problem: str = ""
    remedy: str = ""
    commands: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rehearsal:
    """The commands of a job before there are hosts.

    `preparation` are those that get the hosts, `argv` is the launch command, and `notes` say in sentences what its words in
    capitals stand for and what only the hosts can tell.
    """

    argv: list[str]
    preparation: list[list[str]]
    notes: list[str]


class Launcher(ABC):
    """How clusters of one kind run jobs."""

    kind: ClassVar[ClusterKind]
    settings: Settings
    python_is_told: ClassVar[bool] = False
    """Whether `reach` tells the version of Python."""

    def __init__(self, settings: Mapping[str, Any] | None = None) -> None:
        """`settings` are the cluster's own (Cluster.settings). Raises ClusterUnavailable when they make no sense."""
        try:
            self.settings = self.kind.read_settings(settings or {})
        except InvalidSettings as error:
            raise ClusterUnavailable(str(error)) from None

    @property
    def usual_launch(self) -> Launch:
        """What launches a program of which nothing is known."""
        return Launch()

    def for_program(self, job: Job) -> Job:
        """The job with what launches its program, as far as this machine can tell."""
        return job

    @abstractmethod
    def probe(self) -> list[str]:
        """What keeps this kind from working here, in sentences; [] when nothing does."""

    @property
    def python(self) -> str:
        """The interpreter on the hosts."""
        return PYTHON

    def reach(self) -> list[Reached]:
        """Whether what has to be reached before there are hosts answers; [] where nothing has to be."""
        return []

    def for_test(self, reached: Sequence[str]) -> tuple[Launcher, int]:
        """The launcher for a test, which wants few hosts soon, and how many; ``reached`` are those that answered."""
        most = len(self.host_names(2))
        return self, most or 1

    def refusals(self, link: Link) -> list[str]:
        """Why the hosts cannot be joined by this link, in sentences; [] when they can. Pure."""
        return refusals(self.kind, link)

    @abstractmethod
    def host_names(self, host_count: int) -> tuple[str, ...]:
        """The hosts a session of this size has. Pure."""

    @abstractmethod
    def argv(self, job: Job) -> list[str]:
        """The launch command, exactly as it is run. Pure, but for asking once which MPI library this machine has."""

    def rehearse(self, job: Job) -> Rehearsal:
        """The commands of a job in the directory `TRIAL`, by the same code that runs them. Pure as `argv` is."""
        return Rehearsal(self.argv(job), [], ["TRIAL is the trial's own directory."])

    @abstractmethod
    def recording(self) -> Recording:
        """What a capture here records. Pure."""

    @abstractmethod
    def open(self, *, host_count: int, link: Link, tell: Tell = say_nothing) -> Session:
        """Make the hosts ready; `tell` hears what is being waited for, and may raise to end the waiting.

        Raises ClusterUnavailable.
        """


def find(program: str, workdir: Path, path: str | None = None) -> str | None:
    """Where a program lies: in PATH, or relative to the working directory when its name has a slash."""
    return shutil.which(str(workdir / program) if "/" in program else program, path=path or search_path())


def get(kind: str, settings: Mapping[str, Any] | None = None) -> Launcher:
    """The launcher of one kind with the settings of one cluster. Raises ClusterUnavailable."""
    try:
        name = cluster_kinds.get(kind).name
    except KeyError:
        kinds = ", ".join(kind_of_cluster.name for kind_of_cluster in cluster_kinds.registry())
        raise ClusterUnavailable(f"There is no kind of cluster “{kind}”, only {kinds}.") from None
    return _launcher_of(name)(settings)


def _launcher_of(kind: str) -> type[Launcher]:
    module = import_module(f"workers.launchers.{kind}")
    classes = [
        candidate
        for candidate in vars(module).values()
        if isinstance(candidate, type) and issubclass(candidate, Launcher)
    ]
    return next(candidate for candidate in classes if "kind" in vars(candidate) and candidate.kind.name == kind)
