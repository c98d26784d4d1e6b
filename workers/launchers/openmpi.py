"""The arguments of Open MPI's mpirun that all clusters share. Decision 7 says why each is needed.

Since version 5 PRRTE, a project of its own, starts the ranks: what concerns its daemons has another option and partly
other names. `version` is the major version; everything but `installed` is pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from workers.agent import machine
from workers.hosts.programs import search_path
from workers.launchers.job import Job

OOB_PORTS = "21000-21015"  # mpirun and its daemons listen on every port of the range: keep it narrow
OLDEST = 4  # what a library is taken for that does not tell


class Runtime(NamedTuple):
    """How the part of Open MPI that starts ranks wants to be told: option, component for agents, interface."""

    option: str
    component: str
    interface: str


ORTE = Runtime("--mca", "rsh", "oob_tcp_if_include")
PRRTE = Runtime("--prtemca", "ssh", "prte_if_include")


def runtime(version: int) -> Runtime:
    """The runtime that belongs to a version of the library."""
    return ORTE if version < 5 else PRRTE


def major(text: str) -> int | None:
    """The major version out of what `mpirun --version` says; None where it is not Open MPI's."""
    match = re.search(r"\(Open MPI\) (\d+)\.", text)
    return None if match is None else int(match[1])


def installed(name: str = "mpirun") -> int:
    """Return the major version of an mpirun of this machine."""
    return major(machine.mpi_version(name, {"PATH": search_path()}) or "") or OLDEST


def parameters(settings: Mapping[str, str], option: str = "--mca") -> list[str]:
    """`--mca NAME VALUE` for each."""
    return [word for name, value in settings.items() for word in (option, name, value)]


def daemons(remote_shell: str, version: int, *, slurm: bool = True) -> list[str]:
    """mpirun itself starts its daemons on all other hosts: `remote_shell HOST COMMAND...`; `slurm` False: not as Slurm says."""
    names = runtime(version)
    settings = {
        "plm": names.component,
        f"plm_{names.component}_agent": remote_shell,
        f"plm_{names.component}_no_tree_spawn": "1",
    }
    return parameters(settings if slurm else {**settings, "ras": "^slurm"}, names.option)


def transport(job: Job, interface: str | None, version: int) -> list[str]:
    """MPI messages over TCP on one interface (None: the library chooses) and known ports, whatever faster way the
    library might find; its daemons on the same interface and on ports of their own."""
    first, count = job.btl_ports
    names = runtime(version)
    messages = {
        "pml": "ob1",
        "btl": "tcp,self",
        "btl_tcp_if_include": interface,
        "btl_tcp_port_min_v4": str(first),
        "btl_tcp_port_range_v4": str(count),
    }
    control = {names.interface: interface, "oob_tcp_dynamic_ipv4_ports": OOB_PORTS}
    return [
        *parameters({name: value for name, value in messages.items() if value is not None}),
        *parameters({name: value for name, value in control.items() if value is not None}, names.option),
    ]


def shared_cores() -> list[str]:
    """More ranks than cores: unbound, and yielding while they wait. Bound and polling, a ping-pong takes 4000 us, not 14."""
    return ["--bind-to", "none", *parameters({"mpi_yield_when_idle": "1"})]


def unbound(job: Job) -> list[str]:
    """A rank with several threads is not bound, or all of them would share the one core that the library gives it."""
    return ["--bind-to", "none"] if job.threads > 1 else []


def placement(job: Job) -> list[str]:
    """Number of ranks and the slots of each host, filled in order."""
    slots = ",".join(f"{host}:{job.ranks_per_host}" for host in job.hosts)
    return ["-np", str(job.ranks), "--host", slots, "--map-by", "slot"]


def exports(job: Job) -> list[str]:
    """`-x NAME=VALUE` for each variable of the job, by name."""
    return [word for name in sorted(job.environment) for word in ("-x", f"{name}={job.environment[name]}")]
