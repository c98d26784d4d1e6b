"""Cost of REST with many stored trials: one command prints the table.

    python -m benchmarks.rest [--trials 100000] [--requests 100]

A private PostgreSQL and Redis are started in a temporary directory, filled with generated trials of 60 measurements (``generated``)
and removed again. Every request runs the whole stack below HTTP as a member of one project, with a token, as clients ask; nothing of an
answer is cached, and what is loaded is frozen as the server freezes it. Beside the times is the processor time of a request (this
process and its database backend together), and the ratio of its median to that of the catalogue of projects, which asks for one row:
other work on the machine stretches both.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from base64 import b64encode
from collections.abc import Callable
from urllib.parse import urlencode

from benchmarks.explorer import Cost, cpu_ms
from benchmarks.private import laboratory

LIST_MS, METRICS_MS, ONE_MS = 100.0, 60.0, 50.0
"""Wanted 95th percentiles: a list of 50, the same with 60 metrics, and one trial with everything."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--requests", type=int, default=100)
    options = parser.parse_args()
    with laboratory():
        return report(measure(options.trials, options.requests))


def measure(trials: int, requests: int) -> dict[str, tuple[Cost, float]]:
    """Request -> its cost, and the bound in milliseconds (0: none)."""
    from django.contrib.auth import get_user_model
    from django.test import Client

    from benchmarks.generated import generate
    from experiments.models import ApiToken, Experiment, Measurement, Membership, Project, Trial

    generate(trials)
    member = get_user_model().objects.create(username="member")
    project = Project.objects.get(slug="generated")
    Membership.objects.create(project=project, user=member, role="viewer")
    _, secret = ApiToken.issue(member, "benchmark")
    numbers = list(Trial.objects.filter(experiment__project=project).order_by("pk").values_list("pk", flat=True))
    slugs = list(Experiment.objects.filter(project=project).order_by("pk").values_list("slug", flat=True))

    def deep(request: int) -> str:
        key = numbers[len(numbers) * 9 // 10 + request % (len(numbers) // 20)]
        return f"/api/v1/trials/?limit=50&cursor={b64encode(urlencode({'p': key}).encode()).decode()}"

    values = Measurement.objects.filter(metric="elapsed_s", scope="all")
    half = values.order_by("value")[len(numbers) // 2]
    middle = b64encode(json.dumps([half.value, half.trial_id]).encode(), altchars=b"-_").decode().rstrip("=")
    sixty = ",".join(Measurement.objects.filter(trial=numbers[0], scope="all").values_list("metric", flat=True))

    bounds: dict[str, tuple[Callable[[int], str], float]] = {
        "projects (one row)": (lambda request: "/api/v1/projects/", 0),
        "50 trials, first page": (lambda request: "/api/v1/trials/", LIST_MS),
        "50 trials, by cursor at 90 %": (deep, LIST_MS),
        "50 trials, offset from 9 000 on": (
            lambda request: f"/api/v1/trials/?offset={min(9000, len(numbers) // 2) + request}",
            LIST_MS,
        ),
        "50 trials, hosts = 4, finished": (lambda request: "/api/v1/trials/?state=finished&hosts=4", LIST_MS),
        "50 trials of one experiment": (
            lambda request: f"/api/v1/trials/?experiment={slugs[request % len(slugs)]}",
            LIST_MS,
        ),
        "50 trials, three fields": (lambda request: "/api/v1/trials/?fields=id,state,hosts", LIST_MS),
        "50 trials, 60 metrics": (lambda request: f"/api/v1/trials/?metrics={sixty}", METRICS_MS),
        "50 trials, 60 metrics, at 90 %": (lambda request: f"{deep(request)}&metrics={sixty}", METRICS_MS),
        "50 trials, 60 metrics, by one": (
            lambda request: f"/api/v1/trials/?metrics={sixty}&ordering=-metric:elapsed_s",
            METRICS_MS,
        ),
        "the same, in the middle": (
            lambda request: f"/api/v1/trials/?metrics={sixty}&ordering=-metric:elapsed_s&cursor=after.{middle}",
            METRICS_MS,
        ),
        "50 trials, one below, by one": (
            lambda request: "/api/v1/trials/?metrics=elapsed_s&where_metrics=elapsed_s<5&ordering=metric:elapsed_s",
            METRICS_MS,
        ),
        "50 experiments": (lambda request: "/api/v1/experiments/", LIST_MS),
        "one trial with everything": (
            lambda request: f"/api/v1/trials/{numbers[request * 997 % len(numbers)]}/",
            ONE_MS,
        ),
        "one trial, two fields": (
            lambda request: f"/api/v1/trials/{numbers[request * 997 % len(numbers)]}/?fields=id,metrics",
            ONE_MS,
        ),
        "result of an experiment": (lambda request: f"/api/v1/experiments/{slugs[request % len(slugs)]}/result/", 0),
    }
    client = Client(headers={"authorization": f"Bearer {secret}"})
    costs: dict[str, tuple[Cost, float]] = {}
    for address, _ in bounds.values():
        client.get(address(0))
    gc.collect()
    gc.freeze()  # as config.wsgi does
    for name, (address, bound) in bounds.items():
        for number in range(3):
            client.get(address(number))
        times, busy = [], cpu_ms()
        for number in range(requests):
            began = time.perf_counter()
            answer = client.get(address(number))
            times.append((time.perf_counter() - began) * 1000)
            assert answer.status_code == 200, (address(number), answer.status_code, answer.content[:200])
        costs[name] = Cost(sorted(times), (cpu_ms() - busy) / requests), bound
    return costs


def report(costs: dict[str, tuple[Cost, float]]) -> int:
    """Print the table; return 1 when a bound is not kept."""
    print(f"{'asked for, ms':34}{'p50':>8}{'p95':>8}{'CPU':>8}{'ratio':>8}")
    trivial, bad = next(iter(costs.values()))[0].percentile(0.5), 0
    for name, (cost, bound) in costs.items():
        middle, high = cost.percentile(0.5), cost.percentile(0.95)
        slow = bool(bound) and high >= bound
        bad += slow
        mark = "  <-- too slow" if slow else ""
        print(f"{name:34}{middle:8.1f}{high:8.1f}{cost.cpu_ms:8.1f}{middle / trivial:8.1f}{mark}")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
