"""Concurrent readers of one database server on rank 0.

The ranks of the other hosts run the reading jobs. Runs with the system's Python, mpi4py and psycopg2; needs ``database.py`` and
``reading_job.py`` in its directory. Prints a line per sample of the server while the jobs read, and writes everything to readers.json.
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from database import Database, tree_cpu_s  # type: ignore[import-not-found]  # the file beside this one
from mpi4py import MPI  # type: ignore[import-not-found]

SERVER = 0
POLL_S = 0.02
RESULT = "readers.json"


def arguments() -> argparse.Namespace:
    """Return the command line; every rank reads the same one."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("jobs", "events", "events-per-job", "event-bytes", "page-bytes"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--work-s", type=float, default=0.0)
    parser.add_argument("--sample-s", type=float, default=0.5)
    options = parser.parse_args()
    options.pages_per_event = -(-options.event_bytes // options.page_bytes)
    return options


def receive(world: MPI.Intracomm, source: int) -> Any:
    """Receive one object asleep: a polling rank would use the measured processor."""
    while not world.iprobe(source=source):
        time.sleep(POLL_S)
    return world.recv(source=source)


def client_ranks(hosts: list[str]) -> list[int]:
    """Return the ranks that run jobs, on other hosts than the server if possible."""
    away = [rank for rank, host in enumerate(hosts) if host != hosts[SERVER]]
    return away or list(range(1, len(hosts)))


class CpuSampler:
    """CPU use of process trees over time: shares of one core, one row per interval."""

    def __init__(self, interval_s: float) -> None:
        self.interval_s = interval_s
        self.rows: list[dict[str, float]] = []

    def start(self, cpu_s: tuple[float, float], sent_bytes: int = 0) -> None:
        self._began = self._last = time.monotonic()
        self._seen = (*cpu_s, sent_bytes)

    def due(self) -> bool:
        return time.monotonic() - self._last >= self.interval_s

    def take(self, cpu_s: tuple[float, float], sent_bytes: int = 0) -> dict[str, float]:
        """Add the row of the interval that ends now."""
        now = time.monotonic()
        length_s = max(now - self._last, 1e-6)
        user, system, sent = (after - before for after, before in zip((*cpu_s, sent_bytes), self._seen, strict=True))
        self._last, self._seen = now, (*cpu_s, sent_bytes)
        row = {
            "t_s": now - self._began,
            "length_s": length_s,
            "user_share": user / length_s,
            "system_share": system / length_s,
            "sent_bps": 8 * sent / length_s,
        }
        self.rows.append(row)
        return row


def sent_bytes(loopback: bool) -> int:
    """Return the bytes that this host has sent over loopback, or over the others."""
    total = 0
    for line in Path("/proc/self/net/dev").read_text().splitlines()[2:]:
        name, _, rest = line.partition(":")
        if (name.strip() == "lo") == loopback:
            total += int(rest.split()[8])
    return total


def machine_busy_s() -> tuple[float, float]:
    """Return busy and all seconds of the machine's processors since it started."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    tick_s = 1 / os.sysconf("SC_CLK_TCK")
    return (sum(ticks) - ticks[3] - ticks[4]) * tick_s, sum(ticks) * tick_s


def serve(world: MPI.Intracomm, options: argparse.Namespace, clients: list[int]) -> dict[str, Any]:
    """Run the server and its clock; return everything that all ranks measured."""
    pages = options.events * options.pages_per_event
    started = time.monotonic()
    with Database(pages=pages, page_bytes=options.page_bytes, clients=options.jobs) as database:
        phases = [phase("fill", started, database.cpu_s(), (0.0, 0.0))]
        print(f"{options.events} events in {pages} pages are served; {options.jobs} jobs connect", flush=True)
        began, before = time.monotonic(), database.cpu_s()
        for rank in clients:
            world.send(database.settings(), dest=rank)
        for rank in clients:
            receive(world, rank)  # its jobs are connected
        phases.append(phase("connect", began, database.cpu_s(), before))
        began, before, busy_before = time.monotonic(), database.cpu_s(), machine_busy_s()
        sampler, reports = watch(world, options, clients, database)
        phases.append(phase("read", began, database.cpu_s(), before))
        busy, whole = (after - start for after, start in zip(machine_busy_s(), busy_before, strict=True))
    return {
        "phases": phases,
        "server": {"host": MPI.Get_processor_name(), "cores": len(os.sched_getaffinity(0)), "samples": sampler.rows},
        "machine_busy_share": busy / whole if whole else None,
        "clients": [reports[rank] for rank in clients],
    }


def watch(
    world: MPI.Intracomm, options: argparse.Namespace, clients: list[int], database: Database
) -> tuple[CpuSampler, dict[int, Any]]:
    """Start the jobs and sample the server; return samples and reports by rank."""
    loopback = world.size - 1 == len(clients) and len({*options.hosts}) == 1
    sampler = CpuSampler(options.sample_s)
    sampler.start(database.cpu_s(), sent_bytes(loopback))
    for rank in clients:
        world.send("go", dest=rank)
    reports: dict[int, Any] = {}
    while len(reports) < len(clients):
        for rank in clients:
            if rank not in reports and world.iprobe(source=rank):
                reports[rank] = world.recv(source=rank)
        if sampler.due():
            row = sampler.take(database.cpu_s(), sent_bytes(loopback))
            print(
                f"{row['t_s']:8.1f} s  server sends {row['sent_bps'] / 1e6:8.2f} Mbit/s,"
                f" CPU {row['user_share']:.2f} user {row['system_share']:.2f} system",
                flush=True,
            )
        time.sleep(POLL_S)
    sampler.take(database.cpu_s(), sent_bytes(loopback))
    return sampler, reports


def phase(name: str, began: float, cpu_s: tuple[float, float], before: tuple[float, float]) -> dict[str, Any]:
    """Return the server's use from ``began`` until now."""
    return {
        "phase": name,
        "wall_s": time.monotonic() - began,
        "server_user_s": cpu_s[0] - before[0],
        "server_system_s": cpu_s[1] - before[1],
    }


def read(world: MPI.Intracomm, options: argparse.Namespace, numbers: list[int]) -> None:
    """Run the jobs ``numbers`` of this rank and send their reports to the server."""
    server = receive(world, SERVER)
    jobs = [start_job(options, number, server) for number in numbers]
    for job in jobs:
        expect(job, "ready")
    world.send("ready", dest=SERVER)
    receive(world, SERVER)
    sampler = CpuSampler(options.sample_s)
    sampler.start(_cpu_of(jobs))
    for job in jobs:
        tell(job, "go")
    reports = collect(jobs, sampler)
    sampler.take(_cpu_of(jobs))
    world.send(
        {
            "host": MPI.Get_processor_name(),
            "cores": len(os.sched_getaffinity(0)),
            "samples": sampler.rows,
            "jobs": [{"job": number, **reports[job.pid]} for number, job in zip(numbers, jobs, strict=True)],
        },
        dest=SERVER,
    )
    for job in jobs:
        tell(job, "end")
    for job in jobs:
        job.wait()


def collect(jobs: list[subprocess.Popen[str]], sampler: CpuSampler) -> dict[int, dict[str, float]]:
    """Return the reports of all jobs by process; sample their CPU use meanwhile."""
    reports: dict[int, dict[str, float]] = {}
    with selectors.DefaultSelector() as reading:
        for job in jobs:
            assert job.stdout is not None  # noqa: S101 (what PIPE means)
            reading.register(job.stdout, selectors.EVENT_READ, job)
        while len(reports) < len(jobs):
            for key, _ in reading.select(POLL_S):
                reports[key.data.pid] = json.loads(expect(key.data, "{"))
                reading.unregister(key.fileobj)
            if sampler.due():
                sampler.take(_cpu_of(jobs))
    return reports


def start_job(options: argparse.Namespace, number: int, server: dict[str, Any]) -> subprocess.Popen[str]:
    """Start one job; jobs begin at different events, to read different pages."""
    pages_in_all = options.events * options.pages_per_event
    order = {
        "server": server,
        "first_page": number * options.events // options.jobs * options.pages_per_event,
        "events": options.events_per_job,
        "pages_per_event": options.pages_per_event,
        "work_s": options.work_s,
        "pages_in_all": pages_in_all,
    }
    argv = [sys.executable, "-E", "-s", str(Path(__file__).with_name("reading_job.py"))]
    job = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    tell(job, json.dumps(order))
    return job


def tell(job: subprocess.Popen[str], line: str) -> None:
    """Send the job a line."""
    assert job.stdin is not None  # noqa: S101 (what PIPE means)
    job.stdin.write(line + "\n")
    job.stdin.flush()


def expect(job: subprocess.Popen[str], beginning: str) -> str:
    """Return the job's next line. Raise SystemExit if it has died or differs."""
    assert job.stdout is not None  # noqa: S101
    line = job.stdout.readline()
    if not line.startswith(beginning):
        raise SystemExit(f"a reading job ended with status {job.wait()} before it said {beginning!r}")
    return line


def _cpu_of(jobs: list[subprocess.Popen[str]]) -> tuple[float, float]:
    """Return user and system seconds of all jobs so far; none has ended."""
    running = [tree_cpu_s(job.pid) for job in jobs]
    return sum(user for user, _ in running), sum(system for _, system in running)


def main(world: MPI.Intracomm) -> None:
    """Divide the ranks, run, write the result."""
    options = arguments()
    options.hosts = world.allgather(MPI.Get_processor_name())
    if world.size < 2:
        raise SystemExit("needs a rank for the server and one for the jobs")
    clients = client_ranks(options.hosts)[: options.jobs]
    if world.rank in clients:
        index = clients.index(world.rank)
        read(world, options, list(range(index, options.jobs, len(clients))))
    elif world.rank == SERVER:
        result = serve(world, options, clients)
        Path(RESULT).write_text(json.dumps(result))
        walls = [job["wall_s"] for client in result["clients"] for job in client["jobs"]]
        print(f"{len(walls)} jobs took {min(walls):.3f} to {max(walls):.3f} s", flush=True)


if __name__ == "__main__":
    try:
        main(MPI.COMM_WORLD)
    except BaseException:
        # The other ranks would wait for this one for ever.
        traceback.print_exc()
        sys.stderr.flush()
        MPI.COMM_WORLD.Abort(1)
