"""Cost of exports with many stored trials: one command prints the table.

    python -m benchmarks.export [--trials 100000] [--form csv jsonl parquet]

A private PostgreSQL is filled with generated trials of 60 measurements (``generated``) and removed again. Each form is written by a
process of its own, as a page or the worker of background tasks writes it, to measure its memory: peak resident size, and what of
it was there before the first row. Beside it is ``COPY ... TO STDOUT`` of the same measurements by psycopg, read and thrown away,
before and after each form: other work on the machine stretches both. Processor times are those of the process and its database backend
together: what one core would take alone.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.explorer import cpu_ms
from benchmarks.private import laboratory

COPY = "COPY (SELECT * FROM experiments_measurement ORDER BY trial_id, metric, scope) TO STDOUT"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--form", nargs="+", default=["csv", "jsonl", "parquet"])
    parser.add_argument("--one", nargs=2, metavar=("FORM", "ROWS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        return write(*options.one)
    with laboratory():
        measure(options.trials, options.form)
    return 0


def measure(trials: int, forms: list[str]) -> None:
    from benchmarks.generated import generate

    generate(trials)
    heads = (("trials/s", 10), ("/CPU s", 9), ("MB", 8), ("s", 8), ("COPY, s", 9), ("ratio", 7), ("of CPU", 8))
    print(f"{'rows':14}{'form':9}{''.join(f'{head:>{width}}' for head, width in heads)}{'peak MB':>9}{'before':>8}")
    for rows in ("trials", "measurements"):
        for form in forms:
            before = copied()
            command = [sys.executable, "-m", "benchmarks.export", "--one", form, rows]
            done = subprocess.run(command, env=os.environ, capture_output=True, text=True, timeout=1800)
            if done.returncode:
                raise SystemExit(done.stderr)
            size, took, used, peak, idle, count = map(float, done.stdout.split())
            beside, busy = ((first + second) / 2 for first, second in zip(before, copied(), strict=True))
            print(
                f"{rows:14}{form:9}{count / took:10.0f}{count / used:9.0f}{size / 1e6:8.0f}{took:8.1f}{beside:9.1f}"
                f"{took / beside:7.2f}{used / busy:8.2f}{peak:9.0f}{idle:8.0f}",
                flush=True,
            )


def copied() -> tuple[float, float]:
    """Return PostgreSQL's and psycopg's seconds, and CPU, for all measurements."""
    from django.db import connection

    began, used = time.perf_counter(), cpu_ms()
    with connection.cursor() as cursor, cursor.copy(COPY) as copy:
        for _ in copy:
            pass
    return time.perf_counter() - began, (cpu_ms() - used) / 1000


def write(form: str, rows: str) -> int:
    """Print bytes, seconds, CPU seconds, first and peak resident MB, and trials."""
    import django

    django.setup()
    from django.urls import reverse

    from experiments.models import Configuration
    from experiments.selectors.export import frames
    from experiments.selectors.export.trials import TrialTable, trials_of

    reverse("trial", args=[0])  # the addresses and their pages, which every process that exports has loaded
    idle, began, used, size = resident(), time.perf_counter(), cpu_ms(), 0
    trials = trials_of(Configuration.objects.filter(experiment__project__slug="generated"), every=False)
    table = TrialTable(trials, long=rows == "measurements")
    with Path(os.devnull).open("wb") as sink:
        for piece in frames.WRITERS[form](table.pieces(), table.columns):
            size += sink.write(piece)
    print(size, time.perf_counter() - began, (cpu_ms() - used) / 1000, resident(), idle, trials.count())
    return 0


def resident() -> float:
    """Return the peak MB so far; getrusage would include the parent process."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


if __name__ == "__main__":
    raise SystemExit(main())
