"""Sessions on real hosts, an agent on each; the first host launches.

Each host has a scratch directory. No shared file system is needed: inputs are written to every host, and results are
fetched from them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from analysis.mpi.placement import Machine
from experiments.cluster_kinds.settings import MPIRUN, HostSettings
from experiments.specification.transport import TCP
from workers.agent import machine, mpi_files
from workers.capture.dumpcap import DEFAULT_SNAP_LENGTH, Capture
from workers.capture.remote import RemoteCapture
from workers.errors import (
    CaptureUnavailable,
    ClusterUnavailable,
    HostsLost,
    LaunchFailed,
    ProfileUnavailable,
    TrialFailed,
)
from workers.hosts.answers import MOST_FACTS_BYTES
from workers.hosts.environment import describe, differing_facts
from workers.hosts.fetching import fetch
from workers.hosts.processes import Process
from workers.hosts.remote_agent import READ_LIMIT_S, RemoteAgent
from workers.hosts.sampling import Sample
from workers.launchers import direct, mpi, mpi_choice, openmpi
from workers.launchers.base import PASSED_ON, SIDE_BY_SIDE, Launcher, Recording, Rehearsal, Session
from workers.launchers.job import BTL_PORTS, WRAPPER, Job, Launch
from workers.launchers.limits import MOST_TEXT_BYTES, Limits, as_text

_ADDRESS = re.compile(r"\binet6? ([0-9a-fA-F.:]+)/")


class HostsLauncher(Launcher):
    """Base of kinds with real hosts: settings choose the launch command."""

    settings: HostSettings

    @property
    def usual_launch(self) -> Launch:
        """The launch by the settings; only the first host can resolve "auto"."""
        library = "openmpi" if self.settings.mpi == mpi_choice.AUTO else self.settings.mpi
        return self.started(Launch(library, self.settings.mpirun or mpi_choice.own_program(library)))

    def started(self, launch: Launch) -> Launch:
        """Return the launch of a library by the launcher of the settings."""
        launcher = self.settings.launcher
        if launcher == MPIRUN:
            return launch
        return Launch(launch.library, self.settings.mpirun or direct.PROGRAMS[launcher], launcher)

    @property
    def python(self) -> str:
        return self.settings.python

    def argv(self, job: Job) -> list[str]:
        """Return the command of the first host; `job` has the host's own directories."""
        launch = job.launch or self.usual_launch
        properties = mpi.ClusterProperties(
            remote_shell=str(job.workdir.parent / "rsh"),
            interface=job.interface or self.settings.interface,
            launch=launch,
            transport=self.transport(job),
            placement=self.placement(job),
            shared_cores=self.settings.shared_cores,
        )
        command = mpi.LIBRARIES[launch.library] if launch.launcher == MPIRUN else direct.COMMANDS[launch.launcher]
        return command(job, properties)

    def on_hosts(self, job: Job, scratch: Path, interface: str, open_mpi: int | None) -> Job:
        """Return the job in the hosts' directories, with the facts of the session. Pure."""
        return dataclasses.replace(
            job,
            workdir=scratch / "work",
            report_dir=scratch / "ranks",
            wrapper=(self.settings.python, "-I", "-S", str(scratch / "rank.py")),
            environment={**self.settings.environment, **job.environment},
            interface=interface,
            open_mpi=open_mpi,
            profile=job.profile and dataclasses.replace(job.profile, library=scratch / "mpi-profile.so"),
        )

    def rehearse(self, job: Job) -> Rehearsal:
        scratch = Path(self.settings.scratch, "rankwire-RANDOM")
        notes = [f"{scratch} is made on every host, under a random name."]
        interface = self.settings.interface or ("lo" if len(job.hosts) == 1 else "INTERFACE")
        if interface == "INTERFACE":
            notes.append("INTERFACE is the one through which the first host reaches the second.")
        if self.settings.launcher != MPIRUN:
            notes.append(
                "JOB is the number of the job. Variables of the library are those of Open MPI, unless “mpi” names another."
            )
        elif self.settings.mpi == mpi_choice.AUTO:
            notes.append(
                "The first host determines the program's MPI library and its launch command; these are the arguments "
                f"for Open MPI {openmpi.OLDEST}."
            )
        elif self.settings.mpi == "openmpi":
            notes.append(
                f"The version of {self.usual_launch.program} on the first host decides; these are the arguments for Open MPI "
                f"{openmpi.OLDEST}."
            )
        there = dataclasses.replace(self.on_hosts(job, scratch, interface, None), scheduler_job="JOB")
        return Rehearsal(self.argv(there), [], notes)

    def recording(self, job: Job) -> Recording:
        hosts = "every host" if self.settings.capture == "every" else "the first host"
        interface = self.settings.interface or "the interface towards the other hosts"
        return Recording(f"{interface} of {hosts}", self.capture_filter(known_ports=self.transport(job).name == TCP))

    def capture_filter(self, *, known_ports: bool) -> str | None:
        """Return a filter of MPI's own ports if we set them; "": no filter."""
        if self.settings.capture_filter is not None:
            return self.settings.capture_filter or None
        if known_ports:
            return f"tcp portrange {BTL_PORTS[0]}-{sum(BTL_PORTS) - 1}"
        return "not tcp port 22"


class RemoteSession(Session):
    """Hosts with an agent on each; connections may end while a trial runs."""

    launcher: HostsLauncher
    scheduler_job = ""
    """The job that holds the hosts."""

    def __init__(
        self,
        launcher: HostsLauncher,
        agents: Mapping[str, RemoteAgent],
        scratch: Path,
        remote_shell: str,
        facts: dict[str, Any],
    ) -> None:
        """Connect, choose the interface, write tools. Raises ClusterUnavailable."""
        super().__init__(launcher, tuple(agents), facts)
        self.settings = launcher.settings
        self.scratch = scratch
        self.agents = dict(agents)
        self.first = self.agents[self.hosts[0]]
        self._outputs: dict[Path, tuple[Path, int]] = {}
        self._most_output = 0
        self._versions: dict[str, str] = {}
        for agent in self.agents.values():
            self._stack.callback(agent.close)
        try:
            for agent in self.agents.values():
                agent.connect(scratch)
            self.interface = self.settings.interface or self._find_interface()
            self._launch = self._choose_launch(())
            self._write_tools(remote_shell)
            self.offloads_left = self._switch_offloads() if self.settings.offloads == "off" else {}
        except BaseException:
            self.close()
            raise
        self.facts |= self._facts()

    def why_lost(self, error: TrialFailed) -> str:
        """Return the message of a trial whose connection ended."""
        return str(error)

    def as_lost(self, error: TrialFailed) -> TrialFailed:
        """Convert the end of a connection, at any question, to HostsLost."""
        if isinstance(error, ClusterUnavailable) and not isinstance(error, HostsLost):
            return HostsLost(self.why_lost(error))
        return error

    def alive(self) -> bool:
        return all(agent.alive() for agent in self.agents.values())

    @property
    def remote_agents(self) -> Mapping[str, RemoteAgent]:
        return self.agents

    @property
    def recorded_hosts(self) -> tuple[str | None, ...]:
        return self.hosts if self.settings.capture == "every" else self.hosts[:1]

    @functools.cached_property
    def addresses(self) -> Mapping[str, frozenset[str]]:
        return {host: _addresses_of(self.agents[host]) for host in self.recorded_hosts if host}

    @functools.cached_property
    def addresses_by_name(self) -> Mapping[str, frozenset[str]]:
        names = Counter(agent.name for agent in self.agents.values())
        return {agent.name: _addresses_of(agent) for agent in self.agents.values() if names[agent.name] == 1}

    @property
    def usual_launch(self) -> Launch:
        return self._choose_launch(())

    def prepared(self, job: Job) -> Job:
        """Choose the launch by the program's files on the first host and its inputs here."""
        words = [*job.program, *mpi_files.script_words(job.program, job.workdir)]
        variables = {**self.environment_variables(), **job.environment}
        answer, _ = self.first.ask("mpi", program=words, variables=variables, directory=str(self.scratch / "work"))
        self._launch = self._choose_launch(answer["loaded"])
        self.knows_ports = self.launcher.transport(job).name == TCP
        return dataclasses.replace(job, launch=self._launch)

    def argv(self, job: Job) -> list[str]:
        return self.launcher.argv(self._there(job))

    def machines(self) -> Sequence[Machine]:
        agents = list(self.agents.values())
        if len({agent.name for agent in agents}) < len(agents):
            return ()  # a rank's host is not known
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            described = list(pool.map(RemoteAgent.processors, agents))
        return [
            Machine.from_dict({"hosts": [agent.name], **processors})
            for agent, processors in zip(agents, described, strict=True)
        ]

    @functools.cached_property
    def _architectures(self) -> frozenset[str]:
        return frozenset(agent.output(["uname", "-m"]).strip() for agent in self.agents.values())

    def architecture(self) -> str:
        if len(self._architectures) > 1:
            raise ProfileUnavailable(
                f"the hosts have different architectures: {', '.join(sorted(self._architectures))}"
            )
        return next(iter(self._architectures))

    def missing(self, program: str, workdir: Path, path: str | None = None) -> str | None:
        where = {"path": path or self._path(), "directory": str(self.scratch / "work")}
        answer, _ = self.first.ask("find", program=program, **where)
        return None if answer["found"] else f"The program {program} is not installed on host {self.hosts[0]}."

    def read_text(self, path: str, limits: Limits) -> str:
        try:
            return as_text(b"".join(self.first.read(path, most=MOST_TEXT_BYTES + 1)))
        except OSError as error:
            raise LaunchFailed(
                f"The input file {path} cannot be read on host {self.hosts[0]}: {error.strerror}."
            ) from None

    def capture(self, host: str | None = None, *, snap_length: int = DEFAULT_SNAP_LENGTH) -> Capture:
        try:
            return RemoteCapture.on_host(
                self.agents[host or self.hosts[0]],
                self.interface,
                self.launcher.capture_filter(known_ports=self.knows_ports),
                command=self.settings.capture_command,
                snap_length=snap_length,
            )
        except ClusterUnavailable as error:
            raise CaptureUnavailable(str(error)) from error

    def launch(self, job: Job, *, stdout: Path, stderr: Path) -> Process:
        job = job if job.launch else self.prepared(job)
        there = self._there(job)
        self._send_inputs(job, there)
        try:
            if (reason := self.missing(job.program[0], job.workdir, job.environment.get("PATH"))) is not None:
                raise LaunchFailed(reason)
            if self.find(self._launch.program) is None:
                raise LaunchFailed(f"{self._launch.refusal} on host {self.hosts[0]}.")
            outputs = (self.scratch / "stdout", self.scratch / "stderr")
            process = self.first.spawn(
                self.launcher.argv(there),
                environment=self.environment_variables(),
                directory=there.workdir,
                files=(os.devnull, *map(str, outputs)),
                job=True,
            )
        except OSError as error:
            raise LaunchFailed(f"The trial cannot be started on host {self.hosts[0]}: {error.strerror}.") from error
        self._outputs = {stdout: (outputs[0], 0), stderr: (outputs[1], 0)}
        self._most_output = job.limits.output_bytes
        for path in self._outputs:
            path.write_bytes(b"")
        job.report_dir.mkdir(parents=True, exist_ok=True)
        return RemoteJob(self, process, job, there)

    def sample(self) -> Sample:
        """Return counters of every host; also fetch the output printed since."""
        samples = [Sample.of_machine(agent.name, agent.ask("sample")[0]) for agent in self.agents.values()]
        self.follow_outputs()
        return Sample(
            time.monotonic_ns(),
            samples[0].machine,
            tuple(host for sample in samples for host in sample.hosts),
            {sample.hosts[0].host: sample.machine for sample in samples[1:]},
        )

    def environment(
        self,
        program: Path | None = None,
        arguments: Sequence[str] = (),
        launch: Launch | None = None,
        limits: Limits | None = None,
    ) -> dict[str, Any]:
        """Return the first host's facts, with differences of others in `other_hosts`."""
        argv = () if program is None else (str(program), *arguments)
        mpirun = (launch or self.usual_launch).program
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            described = list(pool.map(lambda agent: self._describe(agent, argv, mpirun), self.agents.values()))
        first, *others = described
        different = {host: differing_facts(first, other) for host, other in zip(self.hosts[1:], others, strict=True)}
        odd = {host: facts for host, facts in different.items() if facts}
        facts = dict(sorted({**first, "other_hosts": odd}.items())) if odd else first
        if len(json.dumps(facts)) > MOST_FACTS_BYTES:
            raise ClusterUnavailable("The hosts report more about themselves than a trial may store.")
        return facts

    def _describe(self, agent: RemoteAgent, program: Sequence[str], mpirun: str) -> dict[str, Any]:
        variables = {**self.environment_variables(), "PATH": self._path(agent)}
        variables.pop("SSH_AUTH_SOCK", None)  # a new one with every connection, so no fact of the host
        return describe(agent, None, self.interface, program, mpirun, variables)

    def environment_variables(self) -> dict[str, str]:
        """Return a few variables of the host's login, and those of the settings."""
        home = self.first.home
        variables = {
            name: home[name] for name in (*PASSED_ON, "SSH_AUTH_SOCK", "SLURM_CONF", "FLUX_URI") if name in home
        }
        return {**variables, "PATH": self._path(), "LANG": "C.UTF-8", **self.settings.environment}

    def follow_outputs(self) -> None:
        """Append the job's output since the last call to the local files.

        Of more than is stored, its middle becomes a hole: a program may print faster than a connection transfers.
        """
        for here, (there, offset) in self._outputs.items():
            with here.open("r+b") as target, contextlib.suppress(OSError):
                size = self.first.size(str(there))
                half = self._most_output // 2
                parts = (
                    [(offset, size)] if size - offset <= 2 * half else [(offset, offset + half), (size - half, size)]
                )
                for begin, end in parts:
                    target.seek(begin)
                    for part in self.first.read(str(there), begin, most=end - begin):
                        target.write(part)
                        offset = target.tell()
            self._outputs[here] = (there, offset)

    def collect(self, job: Job, there: Job) -> None:
        """End leftovers on all hosts and fetch reports and written files."""
        for agent in self.agents.values():
            leftover_count = agent.ask("sweep")[0]["left"]
            if leftover_count:
                raise ClusterUnavailable(f"{leftover_count} programs of the trial do not end on host {agent.host}.")
        self.follow_outputs()
        room, until_s = job.limits.disk_bytes, time.monotonic() + READ_LIMIT_S
        for agent in self.agents.values():
            room = fetch(agent, there.report_dir, job.report_dir, room=room, until_s=until_s)
        fetch(self.first, there.workdir, job.workdir, deep=job.fetched, room=room, until_s=until_s)

    # How a job is moved to the hosts

    def _there(self, job: Job) -> Job:
        """Return the job in the hosts' directories."""
        launch = job.launch or self._launch
        version = openmpi.major(self._version_text(launch.program)) if launch.launcher == MPIRUN else None
        there = self.launcher.on_hosts(job, self.scratch, self.interface, version)
        return dataclasses.replace(there, scheduler_job=self.scheduler_job)

    def _write_tools(self, remote_shell: str) -> None:
        try:
            for agent in self.agents.values():
                agent.ask("watch", interface=self.interface)
                agent.write(self.scratch / "rank.py", WRAPPER.read_bytes())
                agent.write(self.scratch / "rsh", remote_shell.encode(), 0o700)
        except OSError as error:
            raise ClusterUnavailable(f"Host {agent.host} cannot be prepared: {error.strerror}.") from error

    def _switch_offloads(self) -> dict[str, str]:
        """Switch offloads off until the agents end; return the refusals by host.

        Packets of those hosts are estimated.
        """
        refused = {}
        for host, agent in self.agents.items():
            command, path = list(self.settings.offload_command), agent.search_path()
            answer, _ = agent.ask("offloads", command=command, interface=self.interface, path=path)
            if answer["refusal"]:
                refused[host] = answer["refusal"]
        return refused

    def _send_inputs(self, job: Job, there: Job) -> None:
        """Write a job's files into empty directories of every host. Raises LaunchFailed."""
        inputs = [path for path in job.workdir.rglob("*") if path.is_file()]
        counting = job.profile.library.read_bytes() if job.profile else b""
        for agent in self.agents.values():
            try:
                if there.profile is not None:
                    agent.write(there.profile.library, counting, 0o700)
                for directory in (there.workdir, there.report_dir):
                    agent.ask("clear", path=str(directory))
                for path in inputs:
                    mode = path.stat().st_mode & 0o777
                    agent.write(there.workdir / path.relative_to(job.workdir), path.read_bytes(), mode)
            except OSError as error:
                raise LaunchFailed(f"The trial cannot be prepared on host {agent.host}: {error.strerror}.") from error

    # The network

    def _find_interface(self) -> str:
        """Return the interface through which the first host reaches the second."""
        if len(self.hosts) == 1:
            return "lo"
        address = self.first.output(["getent", "ahostsv4", self.hosts[1]]).split()[:1]
        route = self.first.output(["ip", "-o", "route", "get", *address]) if address else ""
        if (match := re.search(r"\bdev ([A-Za-z0-9][\w.:-]{0,14})(?!\S)", route)) is None:
            raise ClusterUnavailable(
                f"Host {self.hosts[0]} has no route to {self.hosts[1]}: set the cluster's setting “interface”."
            )
        return match[1]

    # Choice of the launch command: the session is the `workers.launchers.mpi_choice.Host`

    def _choose_launch(self, loaded: Sequence[str]) -> Launch:
        program = self.settings.mpirun if self.settings.launcher == MPIRUN else None
        chosen = mpi_choice.chosen(self, loaded, library_setting=self.settings.mpi, program=program)
        return self.launcher.started(chosen)

    def find(self, program: str) -> str | None:
        path: str | None = self.first.ask("find", program=program, path=self._path(), directory="/")[0]["found"]
        return path

    def version(self, program: str) -> str | None:
        return machine.read_version(self._version_text(program))

    def _version_text(self, program: str) -> str:
        """Return a launch command's version text, asked once with its environment."""
        if program not in self._versions:
            self._versions[program] = self.output(program, "--version").strip()
        return self._versions[program]

    def output(self, *argv: str) -> str:
        """Return what a command prints on the first host, with the variables of jobs."""
        variables = [f"{name}={value}" for name, value in self.environment_variables().items()]
        return self.first.output(["env", *variables, *argv])

    def _path(self, agent: RemoteAgent | None = None) -> str:
        return self.settings.environment.get("PATH", (agent or self.first).search_path())

    def _facts(self) -> dict[str, Any]:
        machine = self.first.machine((), self._launch.program, self.environment_variables())
        return {
            "hosts": list(self.hosts),
            "cores": machine["cpu"]["cores"],
            "oversubscription": None,
            "interface": self.interface,
            "capture_interface": self.interface,
            "captured_hosts": list(self.recorded_hosts),
            "link": {"bandwidth_bps": None, "mtu": None},
            **({"offloads_left_on": self.offloads_left} if self.offloads_left else {}),
        }


def _addresses_of(agent: RemoteAgent) -> frozenset[str]:
    """Return all IP addresses of the host, those of the loopback interface included."""
    return frozenset(filter(_is_address, _ADDRESS.findall(agent.output(["ip", "-o", "address", "show"]))))


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


class RemoteJob(Process):
    """Launch command on the first host of a session."""

    def __init__(self, session: RemoteSession, process: Process, job: Job, there: Job) -> None:
        super().__init__(session.first, process.pid, process.started_ns)
        self._session = session
        self._jobs = (job, there)
        self._collected = False

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Wait for the end and collect the results. Raises HostsLost if a host is lost."""
        try:
            status = super().wait(timeout_s)
            if status is not None and not self._collected:
                self._collected = True
                self._session.collect(*self._jobs)
        except ClusterUnavailable as error:
            raise HostsLost(self._session.why_lost(error)) from error
        except OSError as error:
            raise HostsLost(f"The results cannot be fetched from the hosts: {error.strerror}.") from error
        return status
