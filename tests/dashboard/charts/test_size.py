"""Figures stay small enough to be read with the page: below 200 kB of JSON each, whatever was measured."""

from __future__ import annotations

import re

from analysis.numbers import rounded
from dashboard.charts import Figure, Line, over_parameter, throughput_over_time
from dashboard.templatetags.rankwire import figure
from experiments.models import Experiment

MOST_BYTES = 200_000
MOST_TRIALS = 10_000
FIGURE = re.compile(r'<script type="application/json" id="figure-([^"]+)">(.*?)</script>', re.DOTALL)


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


def test_a_long_run_is_drawn_in_few_steps() -> None:
    assert size_of(throughput_over_time([10**9 // 7 + i for i in range(2000)], 0.1)) < MOST_BYTES


def test_every_figure_of_the_published_studies_is_small(page) -> None:
    seen = 0
    for study in Experiment.objects.filter(published=True):
        for name, text in FIGURE.findall(page.get(study.get_absolute_url()).content.decode()):
            assert len(text.strip().encode()) < MOST_BYTES, (study.slug, name)
            seen += 1
    assert seen > 10
