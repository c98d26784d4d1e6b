"""This machine alone: sandboxed ranks use TCP on a loopback of their own."""

from __future__ import annotations

from typing import Any, Final

from experiments.cluster_kinds.local import Local, LocalSettings
from experiments.common.processors import usable_cores
from experiments.specification.transport import TCP
from workers.capture.dumpcap import DEFAULT_SNAP_LENGTH, Capture
from workers.capture.ring import RingCapture
from workers.capture.slot_memory import SlotMemory
from workers.errors import ClusterUnavailable
from workers.hosts.processes import LocalAgent
from workers.hosts.programs import missing_programs
from workers.launchers import mpi, mpi_choice, openmpi
from workers.launchers.base import Launcher, Link, MachineSession, Recording, Session, Tell, ignore_progress
from workers.launchers.job import BTL_PORTS, PYTHON, Job, Launch
from workers.testbed.probe import PROGRAMS, namespace_problems, unshare_argv

HOST = "localhost"
INTERFACE = "lo"
ALL_PORTS: Final = (0, 65535)
UNCONFINED: Final = (
    "Without namespaces a trial could read and change all that the worker can; only if all users with permission to start commands may do "
    "that, set `confined: false` in the cluster's settings."
)


def capture_filter(*, known_ports: bool, confined: bool) -> str:
    """Return a filter of MPI's own ports, or of all TCP of a loopback of our own."""
    return f"tcp portrange {BTL_PORTS[0]}-{sum(BTL_PORTS) - 1}" if known_ports or not confined else "tcp"


class LocalSession(MachineSession):
    """Session whose loopback has other traffic too."""

    def __init__(
        self, launcher: LocalLauncher, agent: LocalAgent, hosts: tuple[str, ...], facts: dict[str, Any]
    ) -> None:
        super().__init__(launcher, agent, hosts, facts)
        self.confined = launcher.confined
        self._memory = SlotMemory()
        self._stack.callback(self._memory.close)

    def capture(self, host: str | None = None, *, snap_length: int = DEFAULT_SNAP_LENGTH) -> Capture:
        if self.confined:  # a namespace permits a ring, which costs the ranks less than dumpcap
            ports = (BTL_PORTS[0], sum(BTL_PORTS) - 1) if self.knows_ports else ALL_PORTS
            return RingCapture.on_interface(
                self.agent, INTERFACE, self._memory, snap_length=snap_length, tcp_ports=ports
            )
        return Capture.start(
            self.agent, INTERFACE, capture_filter(known_ports=self.knows_ports, confined=self.confined), snap_length
        )


class LocalLauncher(Launcher):
    """Launch command without remote hosts."""

    kind = Local()

    @property
    def confined(self) -> bool:
        """Return whether trials run in a sandbox; an operator may switch it off."""
        return isinstance(self.settings, LocalSettings) and self.settings.confined

    def probe(self) -> list[str]:
        missing = missing_programs({program: PROGRAMS[program] for program in ("mpirun", PYTHON)})
        if missing or not self.confined:
            return missing
        problems = missing_programs({"unshare": PROGRAMS["unshare"]}) or namespace_problems()
        return [*problems, UNCONFINED] if problems else []

    def host_names(self, host_count: int) -> tuple[str, ...]:
        return (HOST,) if host_count == 1 else ()

    @property
    def usual_launch(self) -> Launch:
        return mpi_choice.usual_here()

    def for_program(self, job: Job) -> Job:
        return mpi_choice.chosen_here(job)

    def argv(self, job: Job) -> list[str]:
        launch = job.launch or Launch()
        transport, placement = self.transport(job), self.placement(job)
        if launch.library != "openmpi":
            return mpi.hydra(
                job, mpi.ClusterProperties(None, INTERFACE, launch, transport, placement, shared_cores=True)
            )
        version = job.open_mpi or openmpi.installed(launch.program)
        return [
            *(launch.program, "--allow-run-as-root"),
            *openmpi.placement(job, placement),
            *openmpi.binding(job, placement.bind, version, shared_cores=True),
            *openmpi.transport(job, INTERFACE, version, transport),
            *openmpi.exports(job, transport),
            *job.wrapped_program(),
        ]

    def recording(self, job: Job) -> Recording:
        return Recording(
            f"the loopback interface ({INTERFACE})",
            capture_filter(known_ports=self.transport(job).name == TCP, confined=self.confined),
        )

    def open(self, *, host_count: int, link: Link, tell: Tell = ignore_progress) -> Session:
        problems = self.probe()
        if host_count != 1:
            problems.append(f"The cluster local is one host, not {host_count}: put the ranks on it.")
        problems += self.refusals(link)
        if problems:
            raise ClusterUnavailable(" ".join(problems))
        facts = {
            "hosts": [HOST],
            "cores": usable_cores(),
            "oversubscription": None,
            "back_end": "loopback",
            "interface": INTERFACE,
            "capture_interface": INTERFACE,
            "link": {"bandwidth_bps": None, "mtu": None},
        }
        agent = LocalAgent(unshare_argv() if self.confined else ())
        if self.confined:
            try:
                agent.ask("loopback")
            except BaseException:
                agent.close()
                raise
        return LocalSession(self, agent, (HOST,), facts)
