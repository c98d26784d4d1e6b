"""Cost of comparison, explorer, histories and trials in a growing repository.

    python -m benchmarks.explorer [--sizes 1000 100000] [--requests 40] [--measurements 60] [--only PAGE ...] [--json FILE]

A private PostgreSQL and Redis are started in a temporary directory, filled with generated trials (``generated``) and removed
again. Every request runs the whole stack below HTTP (middleware, queries, statistics, template) as a superuser and as a member of
the project; nothing of an answer is cached. The 95th percentile counts. Beside it is the processor time of a request, this process
and its database backend together, which other work on the machine stretches far less.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from benchmarks.private import laboratory

LIMIT_MS, MOST_GROWTH = 300.0, 3.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 100_000])
    parser.add_argument("--requests", type=int, default=40)
    parser.add_argument(
        "--measurements", type=int, default=60, help="of each trial; a million trials with 60 take an hour"
    )
    parser.add_argument("--only", nargs="+", default=[], help="pages, by name")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with laboratory():
        table = measure(options.sizes, options.requests, options.measurements, options.only)
    return report(table, options.sizes, options.json)


@dataclass(frozen=True)
class Cost:
    """Milliseconds of every request, sorted, and the mean processor time of one."""

    elapsed_ms: list[float]
    cpu_ms: float

    def percentile(self, share: float) -> float:
        return self.elapsed_ms[min(len(self.elapsed_ms) - 1, int(share * len(self.elapsed_ms)))]


def measure(sizes: list[int], requests: int, measurements: int, only: list[str]) -> dict[str, dict[int, Cost]]:
    """Page -> number of trials -> what a request costs."""
    from benchmarks.generated import generate

    table: dict[str, dict[int, Cost]] = {}
    there = 0
    for size in sizes:
        began = time.monotonic()
        generate(size - there, measurements)
        print(f"  seeded to {size} in {time.monotonic() - began:.0f} s", flush=True)
        there = size
        for name, cost in ask(requests, only).items():
            table.setdefault(name, {})[size] = cost
    return table


def ask(requests: int, only: list[str]) -> dict[str, Cost]:
    """Request every page (or those named) as both people, with new addresses."""
    from django.contrib.auth import get_user_model
    from django.test import Client

    from experiments.models import Configuration, Experiment, Membership, Project, Trial

    users = get_user_model().objects
    admin = users.filter(username="admin").first() or users.create_superuser("admin")
    member = users.get_or_create(username="member")[0]
    Membership.objects.get_or_create(
        project=Project.objects.get(slug="generated"), user=member, defaults={"role": "viewer"}
    )
    slugs = list(Experiment.objects.filter(project__slug="generated").order_by("pk").values_list("slug", flat=True))
    some = Configuration.objects.filter(experiment__slug=slugs[0]).select_related("experiment__cluster")
    histories = [f"/history/{c.hash}/{c.experiment.cluster.slug}/" for c in some if c.experiment.cluster]
    trials = list(Trial.objects.filter(experiment__slug__in=slugs[:10]).values_list("pk", flat=True)[:1000:25])
    pages: dict[str, Callable[[int], str]] = {
        "comparison of 4 experiments": lambda n: (
            "/compare/?of=" + ",".join(f"e:{slugs[(n * 7 + k) % len(slugs)]}" for k in range(4))
        ),
        "explorer": lambda n: "/explore/",
        "explorer, colour and panels": lambda n: "/explore/?y=packets&colour=link.mtu&facet=molecules",
        "explorer, filtered": lambda n: f"/explore/?where=hosts+%3E%3D+{1 + n % 8},elapsed_s+%3C+5&colour=link.mtu",
        "explorer, metric over metric": lambda n: "/explore/?x=packets&y=elapsed_s&colour=hosts",
        "history": lambda n: histories[n % len(histories)],
        "histories": lambda n: f"/history/?page={1 + n % 3}",
        "trial": lambda n: f"/trials/{trials[n % len(trials)]}/",
        "trials": lambda n: "/trials/",
        "trials, sorted by a metric": lambda n: "/trials/?sort=-elapsed_s",
        "trials, filtered": lambda n: f"/trials/?where=hosts+%3E%3D+{1 + n % 8}&state=finished",
    }
    costs: dict[str, Cost] = {}
    # As a process of the web server does when it has loaded everything (config.wsgi): a full collection takes 130 ms otherwise.
    gc.collect()
    gc.freeze()
    for name, address in ((name, address) for name, address in pages.items() if name in only or not only):
        for person in (admin, member):
            client = Client()
            client.force_login(person)
            for number in range(2):
                client.get(address(number))
            times, busy = [], cpu_ms()
            for number in range(2, requests + 2):
                began = time.perf_counter()
                answer = client.get(address(number))
                times.append((time.perf_counter() - began) * 1000)
                assert answer.status_code == 200, (address(number), answer.status_code)
            who = "superuser" if person is admin else "member"
            costs[f"{name} ({who})"] = Cost(sorted(times), (cpu_ms() - busy) / requests)
    return costs


def cpu_ms() -> float:
    """Processor time so far of this process and of the backend that answers it."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        used = psutil.Process(cursor.fetchone()[0]).cpu_times()
    return 1000 * (time.process_time() + used.user + used.system)


def report(table: dict[str, dict[int, Cost]], sizes: list[int], output: Path | None) -> int:
    """Print the table; return 1 when a bound is not kept."""
    heads = "".join(f"{size:>12,} p50   p95   cpu" for size in sizes)
    print(f"{'page, ms':45}{heads}   growth   cpu")
    bad = 0
    for name, by_size in table.items():
        costs = [(c.percentile(0.5), c.percentile(0.95), c.cpu_ms) for c in by_size.values()]
        cells = "".join(f"{middle:16.0f}{high:6.0f}{cpu:6.0f}" for middle, high, cpu in costs)
        first, last = by_size[sizes[0]], by_size[sizes[-1]]
        growth, cpu_growth = last.percentile(0.95) / first.percentile(0.95), last.cpu_ms / first.cpu_ms
        failed = last.percentile(0.95) >= LIMIT_MS or growth >= MOST_GROWTH
        bad += failed
        print(f"{name:45}{cells}{growth:9.1f}{cpu_growth:6.1f}{'  <-- too slow' if failed else ''}")
    if output:
        output.write_text(json.dumps({page: {n: asdict(c) for n, c in rows.items()} for page, rows in table.items()}))
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
