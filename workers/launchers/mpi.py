"""The launch commands of MPI libraries on real hosts, one function each and a registry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from workers.errors import ClusterUnavailable
from workers.launchers import openmpi
from workers.launchers.base import Job


@dataclass(frozen=True)
class Place:
    """What a launch command must know of the cluster. `agent` starts a program on another host: `agent HOST COMMAND...`;
    `interface` None: the library chooses."""

    agent: str
    interface: str | None
    program: str
    shared_cores: bool = False


def open_mpi(job: Job, place: Place) -> list[str]:
    """mpirun of Open MPI; its own support of Slurm is switched off, our agent reaches the nodes."""
    version = job.open_mpi or openmpi.OLDEST
    return [
        *(place.program, "--allow-run-as-root"),
        *openmpi.placement(job),
        *(openmpi.shared_cores() if place.shared_cores else openmpi.unbound(job)),
        *openmpi.daemons(place.agent, version, slurm=False),
        *openmpi.transport(job, place.interface, version),
        *openmpi.exports(job),
        *job.wrapped_program(),
    ]


def hydra(job: Job, place: Place) -> list[str]:
    """mpiexec of MPICH and of the libraries made of it (Intel MPI, MVAPICH2): the process manager Hydra."""
    exports = [word for name in sorted(job.environment) for word in ("-genv", name, job.environment[name])]
    return [
        *(place.program, "-launcher", "ssh", "-launcher-exec", place.agent),
        *(("-iface", place.interface) if place.interface is not None else ()),
        *("-hosts", ",".join(job.hosts), "-ppn", str(job.ranks_per_host), "-n", str(job.ranks)),
        *exports,
        *job.wrapped_program(),
    ]


LIBRARIES: dict[str, Callable[[Job, Place], list[str]]] = {
    "openmpi": open_mpi,
    "mpich": hydra,
    "intelmpi": hydra,
    "mvapich2": hydra,
}
PROGRAMS = {"openmpi": "mpirun"}
"""What launches where the settings name no program; of all others it is Hydra."""
KNOWN_PORTS = ("openmpi",)
"""Libraries whose traffic can be told by its ports, because we can set them."""


def program(library: str, chosen: str | None) -> str:
    """The program that launches ranks: the chosen one, else the library's own."""
    return chosen or PROGRAMS.get(library, "mpiexec.hydra")


def argv(library: str, job: Job, place: Place) -> list[str]:
    """The launch command of a library. Raises ClusterUnavailable for one we do not know."""
    try:
        command = LIBRARIES[library]
    except KeyError:
        raise ClusterUnavailable(
            f"There is no MPI library “{library}” among those Rankwire can launch: {', '.join(LIBRARIES)}."
        ) from None
    return command(job, place)
