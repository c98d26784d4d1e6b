"""Interface of all kinds of cluster: launcher, session, job.

A launcher (pure) opens a session (real), a session runs jobs. A kind's launcher is a class in the module of this
package that has the kind's name (`experiments.cluster_kinds`).
"""

from __future__ import annotations

import os
import platform
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Protocol, Self

from pydantic import ValidationError

from analysis.mpi.placement import Machine
from experiments import cluster_kinds
from experiments.cluster_kinds import AskedLink, ClusterKind, refusals
from experiments.cluster_kinds.settings import MPIRUN, Settings
from experiments.common.counter_reports import checked_reports
from experiments.errors import InvalidSettings
from experiments.specification.placement import DEFAULTS
from experiments.specification.transport import TCP, Transport, transport_of
from workers.agent.sandbox import TEMPORARY
from workers.capture.dumpcap import DEFAULT_SNAP_LENGTH, Capture
from workers.errors import ClusterUnavailable, LaunchFailed, TrialFailed
from workers.hosts.counters.sources import SOURCES
from workers.hosts.environment import answers_to, describe, questions_about
from workers.hosts.processes import Agent, LocalAgent, Process
from workers.hosts.programs import search_path
from workers.hosts.remote_agent import RemoteAgent
from workers.hosts.sampling import Sample
from workers.launchers import direct, mpi
from workers.launchers.job import BTL_PORTS, PYTHON, Job, Launch
from workers.launchers.limits import (
    DiskUse,
    Limits,
    free_space,
    open_path,
    outermost,
    read_text,
    refused_container,
)
from workers.launchers.openmpi import Placement
from workers.testbed.certificate import Certificate
from workers.testbed.kept_certificate import StoredCertificate, nothing_stored
from workers.testbed.plan import Topology

SIDE_BY_SIDE = 16
"""Hosts that are asked at once."""
MOST_CONNECTIONS_LEFT = BTL_PORTS[1] // 2
COUNTERS_LIMIT_S = 3.0
COUNTERS_PAUSE_S = 0.005
PASSED_ON = ("HOME", "LOGNAME", "USER", "LD_LIBRARY_PATH")


Tell = Callable[[str], None]


def ignore_progress(_what: str) -> None:
    """Ignore progress messages."""


class Link(AskedLink, Protocol):
    """Parameters of a link that launchers use; None: unlimited, unchanged."""

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
    """True if it shares no host with other sessions, so that several can be open."""

    def __init__(self, launcher: Launcher, hosts: tuple[str, ...], facts: dict[str, Any]) -> None:
        self.launcher = launcher
        self.hosts = hosts
        self.facts = facts
        self.knows_ports = launcher.usual_transport == TCP
        """True if ports identify the MPI traffic of the prepared job."""
        self.offloads_left: Mapping[str, str] = {}
        """Reasons why offloads could not be switched off, by host."""
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End everything on the hosts, and hosts of our own. Idempotent."""
        self._stack.close()

    def as_lost(self, error: TrialFailed) -> TrialFailed:
        """Return a trial's error, as HostsLost if its hosts were lost."""
        return error

    @property
    def usual_launch(self) -> Launch:
        """The launch of a program whose MPI library is unknown."""
        return self.launcher.usual_launch

    def prepared(self, job: Job) -> Job:
        """Return the job with the launch command for its program; call before `capture`."""
        self.knows_ports = self.launcher.transport(job).name == TCP
        return self.launcher.for_program(job)

    def argv(self, job: Job) -> list[str]:
        """Return the launch command as it runs on these hosts."""
        return self.launcher.argv(job)

    def missing(self, program: str, workdir: Path, path: str | None = None) -> str | None:
        """Return why a program cannot run, as a sentence; None if it exists.

        ``path``: the job's own PATH, if it has one.
        """
        return None if find(program, workdir, path) else f"The program {program} is not installed on this machine."

    @property
    def remote_agents(self) -> Mapping[str, RemoteAgent]:
        """Agents of hosts that are other machines, by host; empty on the worker's machine."""
        return {}

    @property
    def recorded_hosts(self) -> tuple[str | None, ...]:
        """Hosts that can be recorded, the analysed one first; None: all at once."""
        return (None,)

    @property
    def addresses(self) -> Mapping[str, frozenset[str]]:
        """Addresses of each of `recorded_hosts` if recordings are joined; else empty."""
        return {}

    @property
    def addresses_by_name(self) -> Mapping[str, frozenset[str]]:
        """IP addresses of the known hosts by the name that their ranks use."""
        return {}

    @property
    def blind_spot(self) -> str:
        """Reason: traffic that the first of `recorded_hosts` does not see, or empty."""
        return ""

    def machines(self) -> Sequence[Machine]:
        """Return the hosts' processors, and the CPUs that ranks may use there."""
        return ()

    def architecture(self) -> str:
        """Return the kernel's name of all hosts' architecture. Raises ProfileUnavailable."""
        return platform.machine()

    @abstractmethod
    def read_text(self, path: str, limits: Limits) -> str:
        """Return a file of the first host that trials may read. Raises LaunchFailed."""

    def certify(self, stored: StoredCertificate = nothing_stored) -> Certificate | None:
        """Return the measured link, cached while the hosts exist; None if not applicable.

        ``stored`` returns a certificate that was kept for an equal network on this machine.
        """
        return None

    def network_problems(self, *, thorough: bool = False) -> list[str]:
        """Return what changed in the network, in sentences. Cheap, unless thorough."""
        return []

    def exceeded(self, job: Job) -> str:
        """Return the limit that the job has reached, as a sentence; empty for none."""
        return ""

    def fills_disk(self, job: Job) -> bool:
        """Return whether the job may have reached a limit of the disk. Cheap."""
        return False

    def begin_counters(self, trees: str = "") -> None:
        """Begin to read the counters of every host.

        ``trees``: a directory with trees of /sys and /proc by host, instead of the hosts' own.
        """

        def begin(host: str, agent: Agent) -> None:
            names = [host] if self.remote_agents else self.hosts
            roots = {name: str(Path(trees, name)) for name in names if trees and Path(trees, name).is_dir()}
            agent.ask("count", roots=roots or {host: "/"}, networks=bool(roots or self.remote_agents))

        agents = self._counting_agents
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:  # the last host must not wait for all others
            list(pool.map(begin, agents.keys(), agents.values()))

    def end_counters(self) -> dict[str, Any]:
        """Return what every source of every host reported, by host."""
        counted, waiting = dict[str, Any](), dict(self._counting_agents)
        deadline, is_first = time.monotonic() + COUNTERS_LIMIT_S, True
        while waiting:
            is_last = time.monotonic() >= deadline
            for host, agent in list(waiting.items()):
                answer, _ = agent.ask("counted", is_first=is_first, is_last=is_last)
                if answer.get("is_done") or is_last:
                    counted |= _own_reports(answer.get("sources"), [host] if self.remote_agents else self.hosts)
                    del waiting[host]
            is_first = False
            time.sleep(COUNTERS_PAUSE_S if waiting else 0.0)
        return counted

    @property
    def _counting_agents(self) -> Mapping[str, Agent]:
        """Agents that read counters, by the name that their host has in samples.

        None if two hosts have one name: a sum over some of the hosts would look like the sum of all.
        """
        agents = {agent.name: agent for agent in self.remote_agents.values()}
        return agents if len(agents) == len(self.remote_agents) else {}

    @abstractmethod
    def alive(self) -> bool:
        """Return whether the session can run another job."""

    @abstractmethod
    def capture(self, host: str | None = None, *, snap_length: int = DEFAULT_SNAP_LENGTH) -> Capture:
        """Start to record the packets of one of the `recorded_hosts`.

        Raises CaptureUnavailable. `snap_length`: bytes that are stored of each packet.
        """

    @abstractmethod
    def launch(self, job: Job, *, stdout: Path, stderr: Path) -> Process:
        """Start the job; its output goes to the two files. Raises LaunchFailed."""

    @abstractmethod
    def sample(self) -> Sample:
        """Return the present counters of the machine and of every host."""

    @abstractmethod
    def environment(
        self,
        program: Path | None = None,
        arguments: Sequence[str] = (),
        launch: Launch | None = None,
        limits: Limits | None = None,
    ) -> dict[str, Any]:
        """Return the facts for repeating the trial; equal systems give equal hashes.

        ``limits``: on the worker's machine, of the files that are described.
        """


def _own_reports(sources: Any, hosts: Sequence[str]) -> dict[str, Any]:
    """Return an agent's reports of its own hosts; its machine may be hostile."""
    with suppress(ValidationError):
        reports = checked_reports(sources)
        if of_hosts := {host: reports[host] for host in hosts if host in reports}:
            return of_hosts
    reason = {"state": "absent", "reason": "the host gave no valid report"}
    return {hosts[0]: {source.key: {**reason, "title": source.title} for source in SOURCES}}


class MachineSession(Session):
    """Hosts on the worker's machine, and the agent that runs programs on them."""

    first_host: str | None = None
    """Host of the launch command; None: the machine itself."""
    interface = "lo"
    confined = True
    """True if jobs run in a sandbox: the agent has its own namespaces."""
    needed: tuple[Path, ...] = ()
    """Files that jobs need from hidden directories."""

    def __init__(self, launcher: Launcher, agent: LocalAgent, hosts: tuple[str, ...], facts: dict[str, Any]) -> None:
        super().__init__(launcher, hosts, facts)
        self.agent = agent
        self._disk = DiskUse(0, 0, 0)
        self._of_interface: dict[str, str] | None = None
        self._stack.callback(agent.close)

    def alive(self) -> bool:
        """Return whether the session can run another job, which needs ports of its own.

        Closed connections occupy theirs for a minute; a program can leave one on every port.
        """
        with suppress(ClusterUnavailable, OSError):
            if self.agent.alive():
                return not self.confined or self.agent.ask("connections")[0]["most"] <= MOST_CONNECTIONS_LEFT
        return False

    def machines(self) -> Sequence[Machine]:
        return [Machine.from_dict({"hosts": self.hosts, **self.agent.processors()})]

    @property
    def _counting_agents(self) -> Mapping[str, Agent]:
        return {self.hosts[0]: self.agent}

    def launch(self, job: Job, *, stdout: Path, stderr: Path) -> Process:
        job.report_dir.mkdir(parents=True, exist_ok=True)
        for stale in (path for end in ("json", "mpi", "ways") for path in job.report_dir.glob(f"rank-*.{end}")):
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
            self._disk = DiskUse(0, 0, *free_space(job.workdir))
            process = self.agent.spawn(
                self.argv(job),
                environment=self.environment_variables(),
                directory=job.workdir.resolve(),
                descriptors=(nothing, *streams),
                host=self.first_host,
                job=True,
                sandbox=job.limits.plan(readable=readable, writable=writable) if self.confined else None,
            )
        self.agent.while_silent = partial(self._require_disk, job, process)
        return process

    def _require_disk(self, job: Job, process: Process) -> None:
        """End a job that fills the disk while it blocks its agent."""
        if self.confined and process.returncode is None:
            self._disk = self._disk_use(job)
            if limit := job.limits.exceeded_on_disk(self._disk):
                self.agent.kill(limit)

    def _require_launch_command(self, job: Job) -> None:
        launch = job.launch or self.usual_launch
        if find(launch.program, job.workdir) is None:
            raise LaunchFailed(f"{launch.refusal} on this machine.")

    def _granted_program(self, job: Job) -> list[Path]:
        """Return an absolute program's file, seen in the sandbox. Raises LaunchFailed."""
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
        """Return the variables of programs: a fixed few, and none of the worker's secrets."""
        variables = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        variables |= {"PATH": open_path(search_path()) if self.confined else search_path(), "LANG": "C.UTF-8"}
        if self.confined:
            variables["TMPDIR"] = str(TEMPORARY)
        return variables

    def sample(self) -> Sample:
        """Add the worker's own processor time: it is an instrument of the trial."""
        return Sample.from_message(self.agent.ask("sample", beside_s=time.process_time())[0])

    def exceeded(self, job: Job) -> str:
        if not self.confined:
            return ""
        self._disk = self._disk_use(job)
        return job.limits.exceeded(self.agent.ask("use")[0], self._disk)

    def _disk_use(self, job: Job) -> DiskUse:
        return job.limits.disk_use(outermost([job.workdir, job.report_dir]))

    def fills_disk(self, job: Job) -> bool:
        return self.confined and job.limits.may_be_exceeded(self._disk, job.workdir)

    def environment(
        self,
        program: Path | None = None,
        arguments: Sequence[str] = (),
        launch: Launch | None = None,
        limits: Limits | None = None,
    ) -> dict[str, Any]:
        argv: Sequence[str] = () if program is None else (str(program), *arguments)
        if self.confined and limits is not None:
            argv = limits.visible(argv)
        mpirun = (launch or self.usual_launch).program
        if self.confined and self._of_interface is None:  # only the agent can change an interface of its own
            self._of_interface = answers_to(questions_about(self.interface), self.agent, self.first_host)
        variables, answers = self.environment_variables(), self._of_interface
        return describe(self.agent, self.first_host, self.interface, argv, mpirun, variables, of_interface=answers)


@dataclass(frozen=True)
class Recording:
    """Place of a capture in words, and its pcap filter (None: every packet there)."""

    where: str
    capture_filter: str | None = None


@dataclass(frozen=True)
class Reached:
    """Result of contacting a host.

    ``python``: its version, empty without one; ``problem``: why the host cannot be used, with a ``remedy`` and ``commands``.
    """

    host: str
    took_s: float
    python: str = ""
    problem: str = ""
    remedy: str = ""
    commands: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rehearsal:
    """Commands of a job before hosts exist.

    `preparation` gets the hosts, `argv` launches, and `notes` explain the placeholders in capitals.
    """

    argv: list[str]
    preparation: list[list[str]]
    notes: list[str]


class Launcher(ABC):
    """Launcher of clusters of one kind."""

    kind: ClassVar[ClusterKind]
    settings: Settings
    reports_python: ClassVar[bool] = False
    """True if `reach` reports the version of Python."""

    def __init__(self, settings: Mapping[str, Any] | None = None) -> None:
        """Read the cluster's settings. Raises ClusterUnavailable if they are invalid."""
        try:
            self.settings = self.kind.read_settings(settings or {})
        except InvalidSettings as error:
            raise ClusterUnavailable(str(error)) from None

    @property
    def usual_launch(self) -> Launch:
        """The launch of a program whose MPI library is unknown."""
        return Launch()

    @property
    def usual_transport(self) -> str:
        """The transport of jobs whose specification leaves it to the cluster."""
        return getattr(self.settings, "transport", TCP)

    def transport(self, job: Job) -> Transport:
        """Return the transport of a job."""
        return transport_of(job.transport or self.usual_transport)

    def placement(self, job: Job) -> Placement:
        """Return what ranks of a job are bound to, and their distribution."""
        usual = {name: getattr(self.settings, name, default) for name, default in DEFAULTS.items()}
        return Placement(job.bind or usual["bind"], job.distribution or usual["distribution"])

    def launch_refusals(self, job: Job) -> list[str]:
        """Return what the launch of a job cannot keep, in sentences."""
        variables = {**getattr(self.settings, "environment", {}), **job.environment}
        launch, transport, placement = job.launch or self.usual_launch, self.transport(job), self.placement(job)
        unbound = mpi.binding_refusal(launch, placement) if launch.launcher == MPIRUN else []
        not_kept = direct.refusals(launch, transport, placement)
        return [*mpi.refused_variables(launch, transport, variables), *unbound, *not_kept]

    def for_program(self, job: Job) -> Job:
        """Return the job with its program's launch, as far as this machine knows it."""
        return job

    @abstractmethod
    def probe(self) -> list[str]:
        """Return obstacles of this kind on this machine, in sentences."""

    @property
    def python(self) -> str:
        """The interpreter on the hosts."""
        return PYTHON

    def reach(self) -> list[Reached]:
        """Contact what must be reached before hosts exist; [] if there is nothing."""
        return []

    def for_test(self, reached: Sequence[str]) -> tuple[Launcher, int]:
        """Return launcher and number of hosts of a check; ``reached`` hosts answered."""
        most = len(self.host_names(2))
        return self, most or 1

    def refusals(self, link: Link) -> list[str]:
        """Return why the hosts cannot have this link, in sentences. Pure."""
        return refusals(self.kind, link)

    @abstractmethod
    def host_names(self, host_count: int) -> tuple[str, ...]:
        """Return the hosts of a session of this size. Pure."""

    @abstractmethod
    def argv(self, job: Job) -> list[str]:
        """Return the exact launch command. Pure, but for one question for the MPI library."""

    def rehearse(self, job: Job) -> Rehearsal:
        """Return the commands of a job in directory `TRIAL`, by the code that runs them."""
        return Rehearsal(self.argv(job), [], ["TRIAL is the trial's own directory."])

    @abstractmethod
    def recording(self, job: Job) -> Recording:
        """Return what a capture here records. Pure."""

    @abstractmethod
    def open(self, *, host_count: int, link: Link, tell: Tell = ignore_progress) -> Session:
        """Make the hosts ready; `tell` receives progress and may raise to give up.

        Raises ClusterUnavailable.
        """


def find(program: str, workdir: Path, path: str | None = None) -> str | None:
    """Return a program's path: from PATH, or relative to `workdir` if it has a slash."""
    return shutil.which(str(workdir / program) if "/" in program else program, path=path or search_path())


def get(kind: str, settings: Mapping[str, Any] | None = None) -> Launcher:
    """Return the launcher of a kind and its settings. Raises ClusterUnavailable."""
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
