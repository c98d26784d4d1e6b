"""The arguments of Open MPI's mpirun that all clusters share. TESTBED.md tells what each costs when it is missing."""

from __future__ import annotations

from collections.abc import Mapping

from workers.launchers.base import Job

OOB_PORTS = "21000-21015"  # mpirun and its daemons listen on every port of the range: keep it narrow


def parameters(settings: Mapping[str, str]) -> list[str]:
    """`--mca NAME VALUE` for each."""
    return [word for name, value in settings.items() for word in ("--mca", name, value)]


def transport(job: Job, interface: str) -> dict[str, str]:
    """MPI messages over TCP on one interface and known ports, whatever faster way the library might find."""
    first, count = job.btl_ports
    return {
        "pml": "ob1",
        "btl": "tcp,self",
        "btl_tcp_if_include": interface,
        "btl_tcp_port_min_v4": str(first),
        "btl_tcp_port_range_v4": str(count),
        "oob_tcp_if_include": interface,
        "oob_tcp_dynamic_ipv4_ports": OOB_PORTS,
    }


def shared_cores() -> list[str]:
    """More ranks than cores: unbound, and yielding while they wait. Bound and polling, a ping-pong takes 4000 us, not 14."""
    return ["--bind-to", "none", *parameters({"mpi_yield_when_idle": "1"})]


def placement(job: Job) -> list[str]:
    """Number of ranks and the slots of each host, filled in order."""
    slots = ",".join(f"{host}:{job.ranks_per_host}" for host in job.hosts)
    return ["-np", str(job.ranks), "--host", slots, "--map-by", "slot"]


def exports(job: Job) -> list[str]:
    """`-x NAME=VALUE` for each variable of the job, by name."""
    return [word for name in sorted(job.environment) for word in ("-x", f"{name}={job.environment[name]}")]
