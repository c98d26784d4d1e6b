"""Arguments of Open MPI's mpirun on all clusters; decision 7 gives the reasons.

Since version 5 PRRTE, a separate project, starts the ranks: parameters of its daemons have another option and partly other names.
`version` is the major version; everything but `installed` is pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from experiments.specification.transport import TCP, Transport
from workers.agent import machine
from workers.hosts.programs import search_path
from workers.launchers.job import Job

OOB_PORTS = "21000-21015"  # mpirun and its daemons listen on every port of the range: keep it narrow
OLDEST = 4  # assumed for a library without a version


TCP_PARAMETERS = ("pml", "btl", "btl_tcp_if_include", "btl_tcp_port_min_v4", "btl_tcp_port_range_v4")
DAEMON_PARAMETERS = (
    "plm",
    "ras",
    *(f"plm_{part}_{name}" for part in ("rsh", "ssh") for name in ("agent", "no_tree_spawn")),
)
PARAMETER_OPTIONS = ("--mca", "-mca", "--gmca", "-gmca", "--prtemca")
"""Options of a parameter on the command line, which has precedence over its variables."""
VARIABLE_PREFIXES = ("OMPI_MCA_", "PRTE_MCA_")


class Runtime(NamedTuple):
    """Open MPI's part that starts ranks: option, rsh component, interface."""

    option: str
    component: str
    interface: str


ORTE = Runtime("--mca", "rsh", "oob_tcp_if_include")
PRRTE = Runtime("--prtemca", "ssh", "prte_if_include")


def runtime(version: int) -> Runtime:
    """Return the runtime of a version of the library."""
    return ORTE if version < 5 else PRRTE


def major(text: str) -> int | None:
    """Return the major version of `mpirun --version`; None for another library."""
    match = re.search(r"\(Open MPI\) (\d+)\.", text)
    return None if match is None else int(match[1])


def installed(name: str = "mpirun") -> int:
    """Return the major version of an mpirun of this machine."""
    return major(machine.mpi_version(name, {"PATH": search_path()}) or "") or OLDEST


def parameters(settings: Mapping[str, str], option: str = "--mca") -> list[str]:
    """Return `--mca NAME VALUE` for each."""
    return [word for name, value in settings.items() for word in (option, name, value)]


def daemons(remote_shell: str, version: int, *, slurm: bool = True) -> list[str]:
    """Return how mpirun starts daemons on other hosts, with Slurm or without."""
    names = runtime(version)
    settings = {
        "plm": names.component,
        f"plm_{names.component}_agent": remote_shell,
        f"plm_{names.component}_no_tree_spawn": "1",
    }
    return parameters(settings if slurm else {**settings, "ras": "^slurm"}, names.option)


def transport(job: Job, interface: str | None, version: int, chosen: Transport) -> list[str]:
    """Return the options of a transport, and of the daemons' own connections.

    TCP is restricted to one interface (None: any) and known ports, also between ranks of one host.
    """
    first, count = job.btl_ports
    names = runtime(version)
    over_tcp = dict(zip(TCP_PARAMETERS, ("ob1", "tcp,self", interface, str(first), str(count)), strict=True))
    messages = over_tcp if chosen.name == TCP else {}
    control = {names.interface: interface, "oob_tcp_dynamic_ipv4_ports": OOB_PORTS}
    of_user = {name.removeprefix(prefix) for name in job.environment for prefix in VARIABLE_PREFIXES}
    return [
        *parameters({name: value for name, value in messages.items() if value is not None}),
        *parameters({n: value for n, value in control.items() if value is not None and n not in of_user}, names.option),
        *chosen.arguments,
    ]


def shared_cores() -> list[str]:
    """Return options for more ranks than cores: unbound, and yielding while they wait.

    Bound and polling, a ping-pong takes 4000 us, not 14.
    """
    return ["--bind-to", "none", *parameters({"mpi_yield_when_idle": "1"})]


def unbound(job: Job) -> list[str]:
    """Return options for ranks with threads, which the library would bind to one core."""
    return ["--bind-to", "none"] if job.threads > 1 else []


def placement(job: Job) -> list[str]:
    """Return the number of ranks and the slots of each host, filled in order."""
    slots = ",".join(f"{host}:{job.ranks_per_host}" for host in job.hosts)
    return ["-np", str(job.ranks), "--host", slots, "--map-by", "slot"]


def exports(job: Job, chosen: Transport) -> list[str]:
    """Return `-x NAME=VALUE` for each variable of the transport and the job, by name."""
    variables = {**chosen.environment, **job.environment}
    return [word for name in sorted(variables) for word in ("-x", f"{name}={variables[name]}")]
