"""Cost of the page of an experiment of 120 trials, from a cold cache.

python -m benchmarks.pages.experiment [--rounds 5]

With ``--trials 10000`` instead what everything that shows one experiment costs when it holds so many (``pages.many_trials``).

Experiments of 24 configurations x 5 repetitions, stored by the methods that a worker uses, each trial with some eighty metrics and the
stored analysis of a capture. Every round empties the cache and asks for the page and then for the diagnosis that it loads, as a
browser does, through the whole stack below HTTP; a last request finds both kept. The limit holds for page and diagnosis together.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from functools import cache, partial
from statistics import median
from typing import Any

import numpy as np

from analysis.catalogue import METRICS
from benchmarks.pages import many_trials
from benchmarks.private import laboratory

LIMIT_MS = 1000
WATER = {"workload": "water", "parameters": {"molecules": 512, "steps": 100}}
EXPERIMENTS: Mapping[str, dict[str, Any]] = {
    "hosts x delay": {
        **WATER,
        "sweep": {"hosts": [1, 2, 4, 6, 8, 12], "link.delay": ["0 ms", "1 ms", "4 ms", "16 ms"]},
    },
    "hosts x method": {
        "workload": "data-staging",
        "sweep": {"staging": ["pull", "tree", "multicast"], "hosts": [2, 3, 4, 5, 6, 7, 8, 10]},
    },
    "delay x loss x size": {
        "workload": "pingpong",
        "parameters": {"hosts": 2},
        "sweep": {
            "link.delay": ["0 ms", "4 ms", "16 ms"],
            "link.loss": ["0 %", "1 %"],
            "message_bytes": ["1 KiB", "64 KiB", "1 MiB", "4 MiB"],
        },
    },
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--trials", type=int, help="one experiment of each design with about so many, up to 10 000")
    parser.add_argument("--only", nargs="+", choices=many_trials.DESIGNS, default=[], help="with --trials: designs")
    options = parser.parse_args()
    rounds: int = options.rounds
    if options.trials:
        with laboratory():
            return many_trials.report(options.trials, options.only)
    with laboratory():
        slugs = {name: stored(name, specification) for name, specification in EXPERIMENTS.items()}
        print(f"{'':22}{'page':>8}{'diagnosis':>11}{'together':>10}{'CPU':>8}{'largest':>9}{'kept page':>11}   ms")
        slow = 0
        for name, slug in slugs.items():
            cold = [asked(slug) for _ in range(rounds + 1)][1:]  # the first one compiles templates
            kept = median(took(partial(fetched, f"/experiments/{slug}/"))[0] for _ in range(rounds))
            page, diagnosis, together, cpu = (median(row[k] for row in cold) for k in range(4))
            largest = max(row[2] for row in cold)
            slow += together > LIMIT_MS
            print(
                f"{name:22}{page:8.0f}{diagnosis:11.0f}{together:10.0f}{cpu:8.0f}{largest:9.0f}{kept:11.0f}", flush=True
            )
    return 1 if slow else 0


def asked(slug: str) -> tuple[float, float, float, float]:
    """Return milliseconds of page, diagnosis and both, and their CPU time."""
    from django.core.cache import cache as kept

    kept.clear()
    page, used = took(lambda: fetched(f"/experiments/{slug}/"))
    diagnosis, more = took(lambda: fetched(f"/experiments/{slug}/diagnosis/"))
    return page, diagnosis, page + diagnosis, used + more


def took(work: Callable[[], object]) -> tuple[float, float]:
    """(elapsed, CPU time) in ms."""
    start, used = time.perf_counter(), time.process_time()
    work()
    return 1000 * (time.perf_counter() - start), 1000 * (time.process_time() - used)


def fetched(address: str) -> None:
    answer = reader().get(address)
    assert answer.status_code == 200, (address, answer.status_code)


@cache
def reader() -> Any:
    """A browser's stand-in, signed in once."""
    from django.contrib.auth import get_user_model
    from django.test import Client

    client = Client()
    client.force_login(get_user_model().objects.create_superuser("admin"))
    return client


def stored(name: str, specification: dict[str, Any]) -> str:
    """The slug of an experiment whose trials have all finished."""
    from experiments import workloads
    from experiments.library import load_defaults
    from experiments.models import Trial
    from tests.dashboard.studies_measured import measured
    from tests.experiments import factories

    random = np.random.default_rng(1)
    figures = [f.id for f in workloads.get(specification["workload"]).figures]

    def values(parameters: Mapping[str, Any]) -> dict[str, float]:
        n, delay = parameters["hosts"], parameters.get("link.delay") or 0.0
        seconds = (8 / n + 0.2 * n + 30 * delay) * (1 + parameters.get("message_bytes", 0) / 1e7)
        scattered = seconds * np.exp(0.03 * random.standard_normal(len(METRICS) + len(figures)))
        return dict(zip([*METRICS, *figures], scattered.tolist(), strict=True))

    experiment = measured(load_defaults(), {"name": name, "repetitions": 5, **specification}, values)
    trials = Trial.objects.filter(experiment=experiment).select_related("configuration")
    assert len(trials) == 120, len(trials)
    for trial in trials:
        factories.stored_file(trial, "analysis.json.zst", analysed(trial.configuration.hosts), "analysis").save()
    return str(experiment.slug)


def analysed(hosts: int) -> bytes:
    """Return the stored analysis of a capture of hosts that all communicate."""
    import json

    import zstandard

    names = [f"10.77.0.{k + 1}" for k in range(hosts)]
    pairs = [(a, b) for a in names for b in names if a < b]
    counts = {"packets": 1000, "wire_bytes": 10**6, "payload_bytes": 9 * 10**5, "retransmitted_segments": 3}
    flows = [
        {"connection": k, "host_a": a, "port_a": 40000, "host_b": b, "port_b": 21000, **counts}
        for k, (a, b) in enumerate(pairs)
    ]
    matrix = [[0 if a == b else 1000 for b in names] for a in names]
    matrices = {"hosts": {"labels": names, "omitted": 0, **dict.fromkeys(counts, matrix)}}
    series = {"bytes": list(range(2500)), "packets": list(range(2500))}
    return zstandard.compress(json.dumps({"flows": flows, "matrices": matrices, "series": series}).encode())


if __name__ == "__main__":
    sys.exit(main())
