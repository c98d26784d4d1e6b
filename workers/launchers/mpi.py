"""Launch commands of MPI libraries; `mpi_choice` chooses the library."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from experiments.specification.transport import TCP, Transport
from workers.launchers import openmpi
from workers.launchers.job import BTL_PORTS, Job, Launch


@dataclass(frozen=True)
class ClusterProperties:
    """Cluster properties of a launch command.

    `remote_shell` starts a program on another host (`HOST COMMAND...`), None without another host; `interface` None: the
    library's choice.
    """

    remote_shell: str | None
    interface: str | None
    launch: Launch
    transport: Transport
    placement: openmpi.Placement
    shared_cores: bool = False


def open_mpi(job: Job, cluster: ClusterProperties) -> list[str]:
    """Return mpirun of Open MPI, over our remote shell and not its Slurm support."""
    version = job.open_mpi or openmpi.OLDEST
    return [
        *(cluster.launch.program, "--allow-run-as-root"),
        *openmpi.placement(job, cluster.placement),
        *openmpi.binding(job, cluster.placement.bind, version, shared_cores=cluster.shared_cores),
        *(openmpi.daemons(cluster.remote_shell, version, slurm=False) if cluster.remote_shell is not None else ()),
        *openmpi.transport(job, cluster.interface, version, cluster.transport),
        *openmpi.exports(job, cluster.transport),
        *job.wrapped_program(),
    ]


def hydra(job: Job, cluster: ClusterProperties) -> list[str]:
    """Return mpiexec of MPICH, Intel MPI and MVAPICH2: the process manager Hydra."""
    variables = variables_of_ranks(job, cluster)
    exports = [word for name in sorted(variables) for word in ("-genv", name, variables[name])]
    bind, distribution = cluster.placement
    target = f"core:{job.threads}" if bind == "core" and job.threads > 1 else bind
    ranks_in_turn = 1 if distribution == "cyclic" else job.ranks_per_host
    launcher = ("fork",) if cluster.remote_shell is None else ("ssh", "-launcher-exec", cluster.remote_shell)
    return [
        *(cluster.launch.program, "-launcher", *launcher),
        *(("-iface", cluster.interface) if cluster.interface is not None else ()),
        *("-hosts", ",".join(job.hosts), "-ppn", str(ranks_in_turn), "-n", str(job.ranks)),
        *(("-bind-to", target) if bind != "default" else ()),
        *exports,
        *cluster.transport.arguments,
        *job.wrapped_program(),
    ]


def variables_of_ranks(job: Job, cluster: ClusterProperties) -> dict[str, str]:
    """Return variables of transport and job, and of ranks that share cores and yield."""
    if cluster.launch.library == "openmpi":
        parameters = openmpi.tcp_parameters(job, cluster.interface) if cluster.transport.name == TCP else {}
        parameters |= {"mpi_yield_when_idle": "1"} if cluster.shared_cores else {}
        of_library = {f"OMPI_MCA_{name}": value for name, value in parameters.items()}
    else:
        shared = {"I_MPI_PIN": "off", "I_MPI_THREAD_YIELD": "2"} if cluster.shared_cores else {}
        of_library = {**shared, **(over_tcp(job.btl_ports, cluster.interface) if cluster.transport.name == TCP else {})}
    return {**of_library, **cluster.transport.environment, **job.environment}


def over_tcp(ports: tuple[int, int], interface: str | None) -> dict[str, str]:
    """Return variables that restrict MPICH's family to TCP, within a host too.

    On one interface and known ports. For UCX, libfabric or ch3, whichever the library uses.
    """
    first, count = ports
    last = first + count - 1
    return {
        "FI_PROVIDER": "tcp",
        **({"FI_TCP_IFACE": interface, "UCX_NET_DEVICES": interface} if interface is not None else {}),
        "FI_TCP_PORT_HIGH_RANGE": str(last),
        "FI_TCP_PORT_LOW_RANGE": str(first),
        "I_MPI_FABRICS": "ofi",
        "I_MPI_OFI_PROVIDER": "tcp",
        "MPIR_CVAR_CH3_PORT_RANGE": f"{first}:{last}",
        "MPIR_CVAR_NOLOCAL": "1",
        "UCX_TCP_PORT_RANGE": f"{first}-{last}",
        "UCX_TLS": "tcp,self",
    }


def binding_refusal(launch: Launch, placement: openmpi.Placement) -> list[str]:
    """Return why ranks cannot be bound with this launch command."""
    if placement.bind == "default" or launch.library in ("openmpi", "mpich"):
        return []
    return [
        f"Ranks of {launch.library} cannot be bound by “bind”. Leave it at default, and set the library's own variables "
        "under “Environment”, such as I_MPI_PIN_DOMAIN."
    ]


def refused_variables(launch: Launch, transport: Transport, variables: Mapping[str, str]) -> list[str]:
    """Return why variables of the user would have no effect, in sentences."""
    fixed: dict[str, str] = {}
    set_by_transport = f"the transport {transport.name} sets it. Choose the transport native."
    if launch.library == "openmpi":
        words = transport.arguments
        parameters = [words[n + 1] for n, word in enumerate(words[:-1]) if word in openmpi.PARAMETER_OPTIONS]
        by_transport = [*parameters, *(openmpi.TCP_PARAMETERS if transport.name == TCP else ())]
        names = {
            **dict.fromkeys(
                openmpi.DAEMON_PARAMETERS, "Rankwire starts the library's daemons itself. Remove the variable."
            ),
            **dict.fromkeys(by_transport, set_by_transport),
        }
        fixed = {prefix + name: why for name, why in names.items() for prefix in openmpi.VARIABLE_PREFIXES}
    elif transport.name == TCP:
        fixed = dict.fromkeys(over_tcp(BTL_PORTS, ""), set_by_transport)
    for name in transport.environment.keys() & variables.keys():
        if variables[name] != transport.environment[name]:
            fixed[name] = f"the transport {transport.name} sets it to another value. Remove one of them."
    return [
        f"The variable {name} would have no effect: {fixed[name]}" for name in sorted(fixed.keys() & variables.keys())
    ]


LIBRARIES: dict[str, Callable[[Job, ClusterProperties], list[str]]] = {
    "openmpi": open_mpi,
    "mpich": hydra,
    "intelmpi": hydra,
    "mvapich2": hydra,
}
