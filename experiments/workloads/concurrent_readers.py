"""Concurrent readers of one database server: the study of MONARC (about 1999).

Rank 0 runs a private PostgreSQL in memory and fills it; the ranks on the other hosts run the reading jobs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, Final

from analysis.numbers import SHARE
from experiments.errors import OutputError
from experiments.workloads.base import LoadTest, Parameters, Parsed, WorkloadDefinition, figures_of
from experiments.workloads.fields import Bytes, Seconds, parameter
from experiments.workloads.shipped import json_result, shipped

RESULT: Final = "readers.json"
_CPU_SOURCE: Final = "sampled from /proc while the jobs read, as a share of all processors of its machine."


class ReadersParameters(Parameters):
    """Stored events, the reads of each job, and the number of simultaneous jobs."""

    jobs: int = parameter(10, "Jobs", ge=1, le=500)
    """Reading jobs at the same time, shared evenly by the client hosts; the study went from 1 to 60."""
    events_per_job: int = parameter(30, "Events per job", ge=1, le=1_000_000)
    """Events that each job reads one after the other; about 3000 in the study."""
    events: int = parameter(400, "Events stored", ge=1, le=1_000_000)
    """Events in the database, held in memory; 50 000 in the study. Jobs start at different ones."""
    event_bytes: Bytes = parameter(40_000, "Event size", unit="B", ge=1, le=100_000_000)
    """40 KB in the study."""
    page_bytes: Bytes = parameter(8192, "Page size", unit="B", ge=64, le=1_000_000)
    """Bytes of one request and its answer; an event is read page by page."""
    work_s: Seconds = parameter(0, "Work per event", unit="s", ge=0, le=60)
    """CPU time that a job computes on each event before it reads the next one."""
    sample_s: Seconds = parameter(0.5, "Sampling interval", unit="s", ge=0.1, le=60)
    """Interval between samples of processor use and throughput."""


_FIGURES: Final = figures_of("concurrent-readers", (
    ("job_wall_s", "Wall time of a job", "s", "lower", "Mean wall time of one reading job, from the common start to its last page."),
    ("job_wall_max_s", "Wall time of the slowest job", "s", "lower", "Largest wall time of a reading job."),
    ("server_throughput_bps", "Server throughput", "bit/s", "higher", "Contents read by all jobs / wall time of the slowest."),
    ("client_cpu_max_share", "Client CPU, largest", SHARE, "lower", f"Largest use by the jobs of one client host, {_CPU_SOURCE}"),
    ("server_cpu_max_share", "Server CPU, largest", SHARE, "lower", f"Largest use by the database server, {_CPU_SOURCE}"),
    ("machine_cpu_share", "CPU of the server's machine", SHARE, "lower", "Busy share of its processors, by all processes."),
    ("client_cpu_user_s", "Client CPU, user", "s", "lower", "User CPU time of all jobs while they read."),
    ("client_cpu_system_s", "Client CPU, system", "s", "lower", "System CPU time of all jobs while they read."),
    ("server_cpu_user_s", "Server CPU, user", "s", "lower", "User CPU time of the database server while the jobs read."),
    ("server_cpu_system_s", "Server CPU, system", "s", "lower", "System CPU time of the database server while the jobs read."),
    ("read_bytes", "Bytes read", "B", "neutral", "Contents that all jobs read."),
))  # fmt: skip


def estimate_s(parameters: ReadersParameters, *, ranks: int) -> float:
    stored, read = parameters.events * parameters.event_bytes, parameters.jobs * parameters.events_per_job
    # 2.5 s until the server answers, 80 MB/s to fill it, 0.1 s per job to start; then 40 MB/s, if the link allows as much, and the
    # work of all jobs on one core.
    reading = read * (parameters.event_bytes / 4e7 + parameters.work_s)
    return 3.0 + stored / 8e7 + 0.1 * parameters.jobs + reading


def bottleneck_bytes(parameters: ReadersParameters, *, ranks: int) -> float:
    return float(parameters.jobs * parameters.events_per_job * parameters.event_bytes)


def _parsed(result: Mapping[str, Any]) -> Parsed:
    server, clients = result["server"], result["clients"]
    jobs = sorted((job for client in clients for job in client["jobs"]), key=lambda job: job["job"])
    if not jobs:
        raise OutputError("no job has read anything")
    walls = [job["wall_s"] for job in jobs]
    read_bytes = sum(job["bytes"] for job in jobs)
    reading = next(phase for phase in result["phases"] if phase["phase"] == "read")
    shares = {
        "client_cpu_max_share": max(_largest(samples) / cores for samples, cores in _by_host(clients)),
        "server_cpu_max_share": _largest(server["samples"]) / server["cores"],
    }
    if result["machine_busy_share"] is not None:
        shares["machine_cpu_share"] = min(result["machine_busy_share"], 1.0)
    values = {
        "job_wall_s": fmean(walls),
        "job_wall_max_s": max(walls),
        "server_throughput_bps": 8 * read_bytes / max(walls),
        **shares,
        "client_cpu_user_s": sum(job["user_s"] for job in jobs),
        "client_cpu_system_s": sum(job["system_s"] for job in jobs),
        "server_cpu_user_s": reading["server_user_s"],
        "server_cpu_system_s": reading["server_system_s"],
        "read_bytes": read_bytes,
    }
    tables = {
        "Phases": result["phases"],
        "Jobs": jobs,
        "Server while the jobs read": server["samples"],
        **{f"Jobs on {client['host']}, CPU": client["samples"] for client in clients},
    }
    return Parsed({f"concurrent-readers.{name}": value for name, value in values.items()}, tables)


def _largest(samples: Sequence[Mapping[str, float]]) -> float:
    """Return the largest CPU use, in processors, of intervals longer than clock ticks."""
    whole = [row for row in samples if row["length_s"] >= 0.1] or samples
    return max((row["user_share"] + row["system_share"] for row in whole), default=0.0)


def _by_host(clients: Sequence[Mapping[str, Any]]) -> Iterator[tuple[list[dict[str, float]], int]]:
    """Yield the samples of each client host, summed over ranks, and its processors."""
    for host in dict.fromkeys(client["host"] for client in clients):
        ranks = [client for client in clients if client["host"] == host]
        # Ranks sample at the same interval from the same start: rows of equal number are of the same moment.
        longest = max(ranks, key=lambda client: len(client["samples"]))["samples"]
        rows = [
            {
                "length_s": row["length_s"],
                "user_share": sum(r["samples"][i]["user_share"] for r in ranks if i < len(r["samples"])),
                "system_share": sum(r["samples"][i]["system_share"] for r in ranks if i < len(r["samples"])),
            }
            for i, row in enumerate(longest)
        ]
        yield rows, ranks[0]["cores"]


CONCURRENT_READERS: Final = WorkloadDefinition(
    slug="concurrent-readers",
    title="Concurrent readers",
    summary="One PostgreSQL server, n reading jobs on other hosts: wall time, throughput, CPU of both sides",
    programs={
        "/usr/bin/python3": "python3",
        "/usr/lib/postgresql/*/bin/postgres": "postgresql",
        "setpriv": "util-linux",
    },
    python_modules={"mpi4py": "python3-mpi4py", "psycopg2": "python3-psycopg2"},
    parameters_type=ReadersParameters,
    decides="concurrent-readers.job_wall_s",
    figures=_FIGURES,
    outputs=(RESULT,),
    ranks_alike=False,
    load_test=LoadTest(
        load="jobs",
        wall="concurrent-readers.job_wall_s",
        uses={
            "client CPU": "concurrent-readers.client_cpu_max_share",
            "server CPU": "concurrent-readers.server_cpu_max_share",
        },
        throughput="concurrent-readers.server_throughput_bps",
        same_processors=("client CPU", "server CPU"),
    ),
    later_defaults={"work_s": 0.0},
    **shipped(
        "the server takes one rank and the jobs need another",
        "readers.py",
        "database.py",
        "places.py",
        "reading_job.py",
    ),
    parse=json_result(RESULT, _parsed),
    estimate_s=estimate_s,
    bottleneck_bytes=bottleneck_bytes,
)
"""A PostgreSQL server on the first host, n sequential readers on the others."""
