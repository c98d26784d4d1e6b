"""Launch commands of MPI libraries; `mpi_choice` chooses the library."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from workers.launchers import openmpi
from workers.launchers.job import Job


@dataclass(frozen=True)
class Place:
    """Cluster properties of a launch command.

    `remote_shell` starts a program on another host (`HOST COMMAND...`), None without another host; `interface` None: the
    library's choice.
    """

    remote_shell: str | None
    interface: str | None
    program: str
    shared_cores: bool = False


def open_mpi(job: Job, place: Place) -> list[str]:
    """Return mpirun of Open MPI, over our remote shell and not its Slurm support."""
    version = job.open_mpi or openmpi.OLDEST
    return [
        *(place.program, "--allow-run-as-root"),
        *openmpi.placement(job),
        *(openmpi.shared_cores() if place.shared_cores else openmpi.unbound(job)),
        *(openmpi.daemons(place.remote_shell, version, slurm=False) if place.remote_shell is not None else ()),
        *openmpi.transport(job, place.interface, version),
        *openmpi.exports(job),
        *job.wrapped_program(),
    ]


def hydra(job: Job, place: Place, variables: Mapping[str, str] | None = None) -> list[str]:
    """Return mpiexec of MPICH, Intel MPI and MVAPICH2: the process manager Hydra.

    `variables` are the cluster's own; those of the job follow them.
    """
    variables_of_ranks = {**(variables or {}), **job.environment}
    exports = [word for name in sorted(variables_of_ranks) for word in ("-genv", name, variables_of_ranks[name])]
    launcher = ("fork",) if place.remote_shell is None else ("ssh", "-launcher-exec", place.remote_shell)
    return [
        *(place.program, "-launcher", *launcher),
        *(("-iface", place.interface) if place.interface is not None else ()),
        *("-hosts", ",".join(job.hosts), "-ppn", str(job.ranks_per_host), "-n", str(job.ranks)),
        *exports,
        *job.wrapped_program(),
    ]


def over_tcp(job: Job, interface: str) -> dict[str, str]:
    """Return variables that restrict MPICH's family to TCP.

    On one interface and known ports. For UCX, libfabric or ch3, whichever the library uses. Virtual hosts share memory
    that hosts of a cluster would not. Ranks share cores here: they are not bound, and yield while they wait.
    """
    first, count = job.btl_ports
    last = first + count - 1
    return {
        "FI_PROVIDER": "tcp",
        "FI_TCP_IFACE": interface,
        "FI_TCP_PORT_HIGH_RANGE": str(last),
        "FI_TCP_PORT_LOW_RANGE": str(first),
        "I_MPI_FABRICS": "ofi",
        "I_MPI_OFI_PROVIDER": "tcp",
        "I_MPI_PIN": "off",
        "I_MPI_THREAD_YIELD": "2",
        "MPIR_CVAR_CH3_PORT_RANGE": f"{first}:{last}",
        "MPIR_CVAR_NOLOCAL": "1",
        "UCX_NET_DEVICES": interface,
        "UCX_TCP_PORT_RANGE": f"{first}-{last}",
        "UCX_TLS": "tcp,self",
    }


LIBRARIES: dict[str, Callable[[Job, Place], list[str]]] = {
    "openmpi": open_mpi,
    "mpich": hydra,
    "intelmpi": hydra,
    "mvapich2": hydra,
}
KNOWN_PORTS = ("openmpi",)
"""Libraries whose ports we set on real hosts."""
