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


class Placement(NamedTuple):
    """Binding of ranks, and their distribution over the hosts."""

    bind: str = "default"
    distribution: str = "block"


ORTE = Runtime("--mca", "rsh", "oob_tcp_if_include")
PRRTE = Runtime("--prtemca", "ssh", "prte_if_include")
PRRTE_SINCE = 5
_AS_USUAL = Placement()


def runtime(version: int) -> Runtime:
    """Return the runtime of a version of the library."""
    return ORTE if version < PRRTE_SINCE else PRRTE


def major(text: str) -> int | None:
    """Return the major version of `mpirun --version`; None for another library."""
    match = re.search(r"\(Open MPI\) ([0-9]{1,9})\.", text)
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


def tcp_parameters(job: Job, interface: str | None) -> dict[str, str]:
    """Return parameters that restrict messages to TCP, within a host too.

    On one interface (None: any) and known ports.
    """
    first, count = job.btl_ports
    values = ("ob1", "tcp,self", interface, str(first), str(count))
    return {name: value for name, value in zip(TCP_PARAMETERS, values, strict=True) if value is not None}


def transport(job: Job, interface: str | None, version: int, chosen: Transport) -> list[str]:
    """Return the options of a transport, and of the daemons' own connections."""
    names = runtime(version)
    messages = tcp_parameters(job, interface) if chosen.name == TCP else {}
    of_daemons = None if names is PRRTE and interface == "lo" else interface  # PRRTE refuses lo beside other interfaces
    control = {names.interface: of_daemons, "oob_tcp_dynamic_ipv4_ports": OOB_PORTS}
    of_user = {name.removeprefix(prefix) for name in job.environment for prefix in VARIABLE_PREFIXES}
    return [
        *parameters(messages),
        *parameters({n: value for n, value in control.items() if value is not None and n not in of_user}, names.option),
        *chosen.arguments,
    ]


def binding(job: Job, bind: str, version: int, *, shared_cores: bool = False) -> list[str]:
    """Return what each rank is bound to.

    By default ranks with threads are not, as the library would bind them to one core. Ranks that share cores are not bound either, and
    yield while they wait: bound and polling, a ping-pong takes 4000 us, not 14.
    """
    if bind == "default":
        bind = "none" if shared_cores or job.threads > 1 else ""
    target = "package" if bind == "socket" and version >= PRRTE_SINCE else bind
    return [
        *(("--bind-to", target) if target else ()),
        *(parameters({"mpi_yield_when_idle": "1"}) if shared_cores else ()),
    ]


def placement(job: Job, chosen: Placement = _AS_USUAL) -> list[str]:
    """Return the number of ranks, the slots of each host, and their order.

    A rank that is bound to cores has one for each of its threads.
    """
    slots = ",".join(f"{host}:{job.ranks_per_host}" for host in job.hosts)
    order = "node" if chosen.distribution == "cyclic" else "slot"
    cores = f":PE={job.threads}" if chosen.bind == "core" and job.threads > 1 else ""
    return ["-np", str(job.ranks), "--host", slots, "--map-by", order + cores]


def exports(job: Job, chosen: Transport) -> list[str]:
    """Return `-x NAME=VALUE` for each variable of the transport and the job, by name."""
    variables = {**chosen.environment, **job.environment}
    return [word for name in sorted(variables) for word in ("-x", f"{name}={variables[name]}")]
