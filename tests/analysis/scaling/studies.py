"""Studies of several tests: the published water table, and simulated ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from analysis.scaling import Point, Study

HOSTS = (2, 4, 6, 8, 10, 12)
_PUBLISHED = Path(__file__).parents[3] / "experiments/library/published/guster-2007-water.json"


def published_water(**facts: Any) -> Study:
    """Return the published table guster-2007-water as a study."""
    rows = json.loads(_PUBLISHED.read_text())["tables"][0]["rows"]
    points = [Point(row["parameters"], {name: [value] for name, value in row["values"].items()}) for row in rows]
    return Study(points, name="guster-2007-water", published=True, **facts)


def usl_time(t1: float, sigma: float, kappa: float) -> Callable[[float], float]:
    """Elapsed time of the Universal Scalability Law, seconds."""
    return lambda n: t1 * (1 + sigma * (n - 1) + kappa * n * (n - 1)) / n


def simulated(
    truth: dict[str, Callable[[float], float]],
    *,
    hosts: Sequence[int] = HOSTS,
    noise: float = 0.05,
    repetitions: int = 5,
    seed: int = 0,
    ranks_per_host: int = 2,
    point: dict[str, Any] | None = None,
    **facts: Any,
) -> Study:
    """A study whose metrics are the truth at each size times normal noise."""
    rng = np.random.default_rng(seed)
    points = []
    for n in hosts:
        values = {
            metric: (np.full(repetitions, f(n)) * (1 + noise * rng.standard_normal(repetitions))).tolist()
            for metric, f in truth.items()
        }
        points.append(Point({"hosts": n}, values, ranks=ranks_per_host * n, **(point or {})))
    return Study(points, name="simulated", **facts)
