"""This machine alone: ranks talk over TCP on the loopback interface."""

from __future__ import annotations

import os

from experiments.cluster_kinds.local import Local
from workers.errors import ClusterUnavailable
from workers.hosts.processes import LocalKeeper
from workers.hosts.programs import missing_programs
from workers.launchers import openmpi
from workers.launchers.base import (
    BTL_PORTS,
    PYTHON,
    Job,
    Launcher,
    Link,
    MachineSession,
    Recording,
    Session,
    Tell,
    say_nothing,
)
from workers.testbed.probe import PROGRAMS

HOST = "localhost"
INTERFACE = "lo"


class LocalSession(MachineSession):
    """The loopback interface carries everybody's traffic: record MPI's ports only."""

    capture_interface = INTERFACE
    interface = INTERFACE
    capture_filter = f"tcp portrange {BTL_PORTS[0]}-{sum(BTL_PORTS) - 1}"


class LocalLauncher(Launcher):
    """mpirun without remote hosts."""

    kind = Local()

    def probe(self) -> list[str]:
        return missing_programs({program: PROGRAMS[program] for program in ("mpirun", PYTHON)})

    def host_names(self, host_count: int) -> tuple[str, ...]:
        return (HOST,) if host_count == 1 else ()

    def argv(self, job: Job) -> list[str]:
        return [
            *(self.mpirun, "--allow-run-as-root"),
            *openmpi.placement(job),
            *openmpi.shared_cores(),
            *openmpi.transport(job, INTERFACE, job.open_mpi or openmpi.installed()),
            *openmpi.exports(job),
            *job.wrapped_program(),
        ]

    def recording(self) -> Recording:
        return Recording(f"the loopback interface ({INTERFACE})", LocalSession.capture_filter)

    def open(self, *, host_count: int, link: Link, tell: Tell = say_nothing) -> Session:
        problems = self.probe()
        if host_count != 1:
            problems.append(f"The cluster local is one host, not {host_count}: put the ranks on it.")
        problems += self.refusals(link)
        if problems:
            raise ClusterUnavailable(" ".join(problems))
        cores = len(os.sched_getaffinity(0))
        facts = {
            "hosts": [HOST],
            "cores": cores,
            "oversubscription": None,
            "back_end": "loopback",
            "interface": INTERFACE,
            "capture_interface": INTERFACE,
            "link": {"bandwidth_bps": None, "mtu": None},
        }
        return LocalSession(self, LocalKeeper(), (HOST,), facts)
