"""Disturbance of a measurement by open pages: their headers ask every two seconds.

    python -m benchmarks.pages.open [--pages 4] [--pairs 6]

Trials beside which four readers have a page open, and trials without readers, in turn: the mean ratio of the elapsed times of
neighbours and its interval of 95 %. The machine may be busy, and then that says little: beside it is the processor time that the
answers took, of Django and of PostgreSQL, which no other load changes much.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from http import HTTPStatus
from pathlib import Path

from benchmarks.orchestration import Row, change, report, row, run_water
from benchmarks.private import services

PERIOD_S = 2.0
"""How often a header asks."""
LIMIT_PERCENT = 3.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", type=int, default=4)
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--ask", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.pairs < 2:
        parser.error("--pairs is at least 2: one pair has no interval")
    if options.ask:
        return ask(options.pages)
    with services(durable=True):
        os.environ["RANKWIRE_LOG_LEVEL"] = "ERROR"
        return report(measure(options.pages, options.pairs))


def measure(pages: int, pairs: int) -> list[Row]:
    """The rows of the table."""
    import django

    django.setup()
    from django.core.management import call_command

    from experiments.models import Measurement

    call_command("migrate", verbosity=0)
    run_water()  # compiles the kernels
    times: dict[bool, list[float]] = {True: [], False: []}
    shares = []
    readers = Readers(pages)
    try:
        for number in range(2 * pairs):
            watched = number % 4 in (0, 3)
            # They live on while they do not ask: memory that their end frees would be felt by the next trial.
            readers.process.send_signal(signal.SIGCONT if watched else signal.SIGSTOP)
            began, used_s = time.monotonic(), readers.processor_s()
            experiment = run_water()
            if readers.process.poll() is not None:
                raise SystemExit("the header does not answer")
            if watched:
                shares.append(100 * (readers.processor_s() - used_s) / (time.monotonic() - began))
            elapsed = Measurement.objects.get(trial__experiment=experiment, metric="elapsed_s", scope="all")
            times[watched].append(elapsed.value)
    finally:
        readers.process.kill()
        readers.process.wait()
    return [
        row(f"{pages} open pages, elapsed time", change(times[True], times[False]), "%", LIMIT_PERCENT),
        row(f"{pages} open pages, processor time, of one core", shares, "%", LIMIT_PERCENT),
    ]


class Readers:
    """Process that asks as the headers of many pages do, and all its costs."""

    def __init__(self, pages: int) -> None:
        argv = [sys.executable, "-m", "benchmarks.pages.open", "--ask", "--pages", str(pages)]
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self._pids = (self.process.pid, int(self.process.stdout.readline()))

    def processor_s(self) -> float:
        """Processor time so far."""
        stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in self._pids]
        return sum(int(ticks) for fields in stats for ticks in fields[11:13]) / os.sysconf("SC_CLK_TCK")


def ask(pages: int) -> int:
    """Poll as the headers of so many open pages do, until killed."""
    import django

    django.setup()
    from django.contrib.auth import get_user_model
    from django.db import connection
    from django.test import Client

    clients = []
    for number in range(pages):
        person, _ = get_user_model().objects.get_or_create(username=f"reader-{number}", is_superuser=True)
        client = Client(headers={"host": "localhost"})
        client.force_login(person)
        clients.append(client)
    connection.ensure_connection()
    print(connection.connection.info.backend_pid, flush=True)
    while True:
        for client in clients:
            if client.get("/pulse/").status_code != HTTPStatus.OK:
                return 1
            time.sleep(PERIOD_S / pages)


if __name__ == "__main__":
    sys.exit(main())
