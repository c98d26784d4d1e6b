"""Overhead of the sandbox: trials on `local` with and without it, in turn.

    python -m benchmarks.cells [--pairs 12] [--json FILE]

Overhead: the time from the end of one short trial to the end of the next of the same experiment, which holds everything that a
trial costs but opening the session. Each pair is one experiment in cells and one without, in changing order; of each the
median of its trials counts. Start: the same of the launch command's own time. Water: the elapsed time of LAMMPS on two ranks, as
control runs compare it. Reported is the median of the differences of the pairs with its interval of 95 % (by their order, no
distribution assumed; at least 6 pairs are needed). Run it on an idle machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from scipy import stats

from benchmarks.private import laboratory

SHORT: dict[str, Any] = {
    "workload": "command",
    "parameters": {"program": ["true"]},
    "sweep": {"hosts": [1]},
    "repetitions": 6,
}
WATER: dict[str, Any] = {
    "workload": "water",
    "parameters": {"molecules": 216, "steps": 200},
    "sweep": {"hosts": [1], "ranks_per_host": [2]},
    "repetitions": 1,
}
CLUSTERS = {"in cells": "local", "without": "open"}
LIMIT_MS = 20.0
LEAST_PAIRS = 6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    pairs = max(LEAST_PAIRS, options.pairs)
    os.environ["RANKWIRE_LOG_LEVEL"] = "ERROR"
    with laboratory():
        without_a_cell()
        run(SHORT, "local")  # loads what the first trial of a process loads
        run(SHORT, "open")
        rows = [
            *paired(
                pairs, SHORT, [Figure("overhead per trial", between_ends_ms), Figure("of it, the launch", elapsed_ms)]
            ),
            *paired(pairs, WATER, [Figure("water on two ranks", elapsed_ms, percent=True)]),
        ]
    for each in rows:
        print(f"{each['name']:28} {each['median']:+7.2f} {each['unit']} ({each['low']:+.2f} to {each['high']:+.2f})")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return int(rows[0]["median"] > LIMIT_MS)


def without_a_cell() -> None:
    """A second cluster on this machine, whose operator gave the cells up."""
    from experiments.models import Cluster

    local = Cluster.objects.get(slug="local")
    Cluster.objects.create(slug="open", name="Without cells", kind=local.kind, settings={"confined": False})


@dataclass(frozen=True)
class Figure:
    """Measurement of an experiment, in ms, or in percent of that without sandbox."""

    name: str
    measure: Callable[[Any], float]
    percent: bool = False


def paired(pairs: int, spec: dict[str, Any], figures: Sequence[Figure]) -> list[dict[str, Any]]:
    """One row for each figure of the same pairs of experiments."""
    names: list[str] = list(CLUSTERS)
    seen: dict[str, list[tuple[float, float]]] = {figure.name: [] for figure in figures}
    for _ in range(pairs):
        names.reverse()
        ended = {name: run(spec, CLUSTERS[name]) for name in names}
        for figure in figures:
            inside, outside = figure.measure(ended["in cells"]), figure.measure(ended["without"])
            scale = 100 / outside if figure.percent else 1.0
            seen[figure.name].append((inside * scale, outside * scale))
    return [row(each.name, seen[each.name], "%" if each.percent else "ms") for each in figures]


def run(spec: dict[str, Any], cluster: str) -> Any:
    """Submit and run to the end, as a worker does; returns the experiment."""
    from experiments.library import load_defaults
    from experiments.models import Cluster
    from experiments.specification import parse
    from workers import queue, tasks

    whole = {"name": f"cells {cluster}", "cluster": cluster, "warmups": 0, "capture": {"enabled": False}, **spec}
    experiment = queue.submit(parse(whole), project=load_defaults())
    tasks.work(Cluster.objects.get(slug=cluster).pk)
    bad = experiment.trials.exclude(state="finished").first()
    if bad is not None:
        raise SystemExit(f"a trial did not finish: {bad.message}{bad.traceback}")
    return experiment


def between_ends_ms(experiment: Any) -> float:
    """Median time between the ends of trials that follow each other."""
    ends = list(experiment.trials.order_by("ended_at").values_list("ended_at", flat=True))
    gaps_ms = [float((after - before).total_seconds() * 1000) for before, after in pairwise(ends)]
    return statistics.median(gaps_ms)


def elapsed_ms(experiment: Any) -> float:
    """Median elapsed time of the launch command."""
    from experiments.models import Measurement

    elapsed = Measurement.objects.filter(trial__experiment=experiment, metric="elapsed_s", scope="all")
    return statistics.median(elapsed.values_list("value", flat=True)) * 1000


def row(name: str, seen: Sequence[tuple[float, float]], unit: str) -> dict[str, Any]:
    """Return the median of the differences and its 95 % interval by ranks."""
    differences = sorted(inside - outside for inside, outside in seen)
    skipped = max(1, int(stats.binom.ppf(0.025, len(differences), 0.5)))
    low, high = differences[skipped - 1], differences[-skipped]
    return {
        "name": name,
        "median": statistics.median(differences),
        "low": low,
        "high": high,
        "unit": unit,
        "pairs": seen,
    }


if __name__ == "__main__":
    raise SystemExit(main())
