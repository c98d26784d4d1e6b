"""Time to the answer and to the whole diagnosis of an experiment of 24 configurations x 5 repetitions: python -m benchmarks.diagnosis

Prints milliseconds of CPU time: the answer alone (what lists wait for), and everything that the page of the experiment shows,
models included; the first call of the process, then the median of the others.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from analysis.conclusions import Asked, Deciding, Factor, answer, diagnose, facts, key_figures
from analysis.scaling import Point, Study

ROUNDS = 7
HOSTS = (1, 2, 4, 8, 12, 16)
DELAYS = (0.0, 0.001, 0.004, 0.016)
METHODS = ("pull", "tree", "multicast", "relay")
MESSAGES = (1024, 65536, 1 << 20, 1 << 24)

SCALE = Factor("hosts", "hosts", "scale", "", "hosts")
DELAY = Factor("link.delay", "delay", "network", "s")
LOSS = Factor("link.loss", "loss", "network", "share")
SIZE = Factor("message_bytes", "message", "message", "B")
METHOD = Factor("staging", "staging", "treatment")


def study_of(names: Sequence[str], points: Sequence[tuple[tuple[Any, ...], float]]) -> Study:
    """Five repetitions of each point that scatter by 3 %, with the metrics that every trial has."""
    rng = np.random.default_rng(1)
    made = []
    for levels, seconds in points:
        elapsed = seconds * np.exp(0.03 * rng.standard_normal(5))
        values = {
            "elapsed_s": elapsed,
            "cpu_mean_rank_s": 0.6 * elapsed,
            "packets": 1e4 * elapsed,
            "throughput_bps": 1e7 * elapsed,
        }
        values |= {
            "interarrival_mean_s": 1e-4 / elapsed,
            "rtt_median_s": 0 * elapsed + 1e-3,
            "connections": 0 * elapsed + 4,
        }
        parameters = {"hosts": 4, **dict(zip(names, levels, strict=True))}
        made.append(Point(parameters, {name: each.tolist() for name, each in values.items()}, ranks=8))
    return Study(made, cores=16, link_bandwidth_bps=1e9)


EXPERIMENTS: dict[str, tuple[list[Factor], list[tuple[tuple[Any, ...], float]]]] = {
    "hosts x delay": (
        [SCALE, DELAY],
        [((n, d), 8 / n + 0.2 * n + 30 * d) for n in HOSTS for d in DELAYS],
    ),
    "hosts x method": (
        [SCALE, METHOD],
        [((n, m), 2 + n * (0.5 if m == "pull" else 0.1 * METHODS.index(m))) for n in HOSTS for m in METHODS],
    ),
    "delay x loss x size": (
        [DELAY, LOSS, SIZE],
        [
            ((d, loss, b), 0.1 + 40 * d + b / 1e8 + 20 * loss)
            for d in DELAYS[:3]
            for loss in (0.0, 0.01)
            for b in MESSAGES
        ],
    ),
}


def milliseconds(work: Callable[[], object]) -> tuple[float, float]:
    """(first call, median of the others)."""
    took = []
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        took.append(1000 * (time.process_time() - start))
    return took[0], median(took[1:])


def main() -> int:
    deciding = Deciding("elapsed_s", "Elapsed time", "s")
    print(
        f"{'experiment':22}{'answer':>10}{'':>10}{'diagnosis':>12}{'':>10}\n{'ms':22}{'first':>10}{'then':>10}{'first':>12}{'then':>10}"
    )
    for name, (factors, points) in EXPERIMENTS.items():
        study = study_of([f.name for f in factors], points)
        assert len(study.points) == 24
        asked = Asked(study.points, deciding, factors)

        def whole(asked: Asked = asked, study: Study = study) -> object:
            told = answer(asked)
            diagnosis = diagnose(study, largest_size=lambda _: 64.0)
            return facts(asked, told, diagnosis.report), key_figures(told, asked.factors)

        quick, full = milliseconds(partial(answer, asked)), milliseconds(whole)
        print(f"{name:22}{quick[0]:10.0f}{quick[1]:10.0f}{full[0]:12.0f}{full[1]:10.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
