"""Figures have less than 200 kB of JSON each, whatever was measured."""

from __future__ import annotations

import re

import numpy as np
import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from analysis.numbers import rounded
from analysis.traffic.matrices import LARGEST_MATRIX
from dashboard.charts.parts import Figure, Line
from dashboard.charts.pivot import Axes, Mark, pivot_panel
from dashboard.charts.sweep import over_parameter
from dashboard.charts.traffic import traffic_matrix
from dashboard.templatetags.rankwire import figure
from experiments.models import Experiment, Measurement
from experiments.selectors import explorer
from experiments.specification import parse

MOST_BYTES = 200_000
MOST_TRIALS = 10_000
FIGURE = re.compile(r'<script\s+type="application/json"\s+id="figure-([^"]+)"\s*>(.*?)</script>', re.DOTALL)


def size_of(drawn: Figure) -> int:
    return len(figure(drawn).encode())


def lines(series: int, sizes: int) -> list[Line]:
    each = MOST_TRIALS // (series * sizes)
    return [
        Line(
            f"delay {index} ms",
            list(range(1, sizes + 1)),
            [[rounded(1 / 3 + size + n / 7, 17) for n in range(each)] for size in range(sizes)],
            [10**6 + index * sizes + size for size in range(sizes)],
            [[10**7 + n for n in range(each)] for _ in range(sizes)],
        )
        for index in range(series)
    ]


def test_a_chart_of_ten_thousand_trials_keeps_its_ends_and_its_numbers() -> None:
    for series, sizes in ((1, 10), (6, 20), (6, 150)):
        drawn = over_parameter(lines(series, sizes), quantity="Elapsed time", unit="s", parameter="Hosts")
        assert size_of(drawn) < MOST_BYTES, (series, sizes)
        dots, medians = drawn["data"][:2]
        ends, counts = [row[:2] for row in medians["customdata"]], [row[2] for row in medians["customdata"]]
        assert sum(counts) == MOST_TRIALS // (series * sizes) * sizes
        at_first = [y for x, y in zip(dots["x"], dots["y"], strict=True) if x == 1]
        assert [min(at_first), max(at_first)] == ends[0]


def uneven(*shape: int) -> np.ndarray:
    """Numbers with all their digits over ten powers of ten, the same in every run."""
    return 10 ** (10 * np.random.default_rng(19).random(shape))


@pytest.mark.parametrize("rows", [64, 128, 160, LARGEST_MATRIX])
def test_a_full_matrix_of_the_largest_kept_holds_all_traffic(rows: int) -> None:
    sent = uneven(rows, rows)
    names = [f"node-{number:04}.rack-07.cluster.example.org" for number in range(rows)]
    drawn = traffic_matrix(names, sent.tolist(), of="host")
    assert size_of(drawn) < MOST_BYTES
    heat = drawn["data"][0]
    assert heat["name"] == "From host to host (GB)"
    assert 1e9 * np.sum(heat["z"]) == pytest.approx(sent.sum(), rel=1e-4)


def test_the_explorer_at_its_most_is_small_and_every_point_still_leads() -> None:
    def marks(count: int, leads: str) -> list[list[Mark]]:
        values = [1 / 3 + n / 7 for n in range(10)]
        return [
            [
                Mark(4096 + n, 10 / 7, values[0], values[-1], values, 10, f"{n:010x}", f"{leads}{n}")
                for n in range(count)
            ]
        ]

    axes = Axes("Hosts", "", "Elapsed time", "s", leads="/configurations/*/trials/?counted=elapsed_s")
    pooled = "where=ranks_per_host+%3D+16%2C+link.delay+%3D+0.001%2C+hosts+%3D+4"
    for series, count, leads, scatter in (
        (1, explorer.MOST_CELLS, "1234", False),
        (6, explorer.MOST_CELLS // 6, "1234", False),
        (6, explorer.MOST_DOTS // 6, "1234", True),
        (6, explorer.MOST_CELLS // 6, pooled, False),
    ):
        drawn = pivot_panel([(f"MTU {n}", marks(count, leads)) for n in range(series)], axes, scatter=scatter)
        assert size_of(drawn) < MOST_BYTES, (series, count, size_of(drawn))
        ours = [trace for trace in drawn["data"] if "of" in trace]
        assert sum(map(bool, (own for trace in ours for own in trace["addresses"]))) == series * count


def figures_of(page: Client, experiment: Experiment) -> dict[str, int]:
    """Return the bytes of every figure of an experiment's page and parts."""
    addresses = (experiment.get_absolute_url(), reverse("experiment-parts", args=[experiment.slug]))
    found = [each for address in addresses for each in FIGURE.findall(page.get(address).content.decode())]
    return {name: len(text.strip().encode()) for name, text in found}


def test_every_figure_of_a_large_experiment_is_small(page, library) -> None:
    """1200 trials of sixty points: five delays, three losses, four sizes."""
    sweep = {
        "hosts": [1, 2, 4, 8],
        "link.delay": [f"{delay} ms" for delay in range(5)],
        "link.loss": [f"{loss} %" for loss in range(3)],
    }
    specification = {"name": "Largest", "workload": "water", "sweep": sweep, "repetitions": 20, "warmups": 0}
    experiment = Experiment.submit(parse(specification), project=library)
    assert experiment.trials.count() == 1200
    now = timezone.now()
    experiment.trials.update(state="finished", trust="good", preparing_at=now, ended_at=now)
    scatter = np.random.default_rng(19)
    metrics = ("elapsed_s", "cpu_mean_rank_s", "packets", "wire_bytes", "throughput_Bps")
    Measurement.objects.bulk_create(
        (
            Measurement(trial_id=trial, metric=metric, value=value)
            for trial in experiment.trials.values_list("pk", flat=True)
            for metric, value in zip(metrics, (1 + scatter.random(len(metrics))).tolist(), strict=True)
        )
    )
    sizes = figures_of(page, experiment)
    assert {"elapsed", "map-1-1-1", "lines-1-1"} <= sizes.keys(), list(sizes)
    assert {name: size for name, size in sizes.items() if size >= MOST_BYTES} == {}
