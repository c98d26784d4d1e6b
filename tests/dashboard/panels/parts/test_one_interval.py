"""A page gives one interval for one quantity in all its parts."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest
from django.test import Client
from django.urls import reverse

from experiments.models import Experiment, Project
from experiments.selectors.diagnosis import diagnosis_of
from tests.dashboard.studies_measured import FACTORS, LADDER, SCALING, measured, scaling, solve
from tests.dashboard.texts import plain_text, text_of, words_of
from tests.words import plain

THRICE: Final = {"repetitions": 3}
STEPS: Final = {**LADDER, "sweep": {"ns": [1000, 2000, 2000, 2200], "nb": [80, 80, 160, 160]}, **THRICE}


def unsteady(
    values: Callable[[Mapping[str, Any]], dict[str, float]],
) -> Callable[[Mapping[str, Any]], dict[str, float]]:
    """Trials that scatter by some per cent, with median near the mean."""
    scatter = itertools.cycle((0.97, 1.0, 1.045))
    return lambda parameters: {metric: value * next(scatter) for metric, value in values(parameters).items()}


@pytest.fixture
def ladder(library: Project) -> Experiment:
    return measured(library, STEPS, unsteady(solve))


def diagnosed(page: Client, experiment: Experiment) -> str:
    return plain(plain_text(text_of(page.get(reverse("experiment-diagnosis", args=[experiment.slug])))))


def test_a_ladder_gives_the_gain_of_a_step_once(page: Client, ladder: Experiment) -> None:
    gains = {f.where["step"]: f for f in diagnosis_of(ladder).answer.figures if f.name == "gain"}
    rows = re.findall(
        r"(\d) N[sb] [\d ]+ → [\d ]+? [\d.]+ ([\d.]+) \(([\d.]+) to ([\d.]+)\)", plain(words_of(page, ladder))
    )
    assert [int(step) for step, *_ in rows] == [2, 3, 4]
    for step, *reported in rows:
        figure = gains[int(step)]
        assert figure.low is not None
        assert figure.high is not None
        assert [float(n) for n in reported] == pytest.approx([figure.value, figure.low, figure.high], rel=6e-3)


def test_a_caption_gives_the_interval_of_the_answer(page: Client, library: Project) -> None:
    experiment = measured(library, {**FACTORS, **THRICE}, unsteady(solve))
    best = [f for f in diagnosis_of(experiment).answer.figures if f.name == "times the best"]
    caption = plain(words_of(page, experiment)).partition("medians, intervals of the answer. ")[2][:200]
    reported = re.findall(r"80 → 160: ([\d.]+)× \(([\d.]+) to ([\d.]+)\)", caption)
    assert len(reported) == len(best) == 2
    for row, figure in zip(reported, best, strict=True):
        assert figure.low is not None
        assert figure.high is not None
        assert [float(n) for n in row] == pytest.approx([figure.value, figure.low, figure.high], rel=6e-3)


def test_the_table_by_size_is_that_of_the_answer(page: Client, library: Project) -> None:
    sizes = {**SCALING, "name": "Sizes", "study": "scaling", "link": {}, "sweep": {"hosts": [1, 2, 4]}, **THRICE}
    sizes.pop("study")
    experiment = measured(library, sizes, unsteady(lambda p: scaling({"link.delay": 0.0, "link.bandwidth": 1e9, **p})))
    words = diagnosed(page, experiment)
    reported = {f.where["hosts"]: f for f in diagnosis_of(experiment).answer.figures if f.name == "Elapsed time"}
    heading = "Scaling by hosts intervals of the answer"
    assert heading in words
    rows = re.findall(r"([124]) [\d.]+ s \(([\d.]+) to ([\d.]+) s\)", words.partition(heading)[2])
    assert [int(hosts) for hosts, *_ in rows[:3]] == [1, 2, 4]
    for hosts, low, high in rows[:3]:
        figure = reported[int(hosts)]
        assert (float(low), float(high)) == (pytest.approx(figure.low, rel=6e-3), pytest.approx(figure.high, rel=6e-3))


def test_the_best_of_the_answer_is_the_best_of_the_table(page: Client, library: Project) -> None:
    """By the mean of the logarithms the second would be best."""
    values = iter([2.0, 2.0, 2.0, 1.9, 1.9, 4.0])
    specification = {**LADDER, "sweep": {"ns": [1000, 2000], "nb": [80, 160]}, "order": "sequential", **THRICE}
    experiment = measured(library, specification, lambda p: {"elapsed_s": 5.0, "hpl.gflops": next(values)})
    assert "Best so far: nb 80" in diagnosis_of(experiment).answer.sentence
    words = plain_text(text_of(page.get(reverse("experiment", args=[experiment.slug]))))
    assert "best median 2 80 1 000" in plain(words)


def test_no_page_gives_the_interval_of_a_pair_alone(page: Client, ladder: Experiment) -> None:
    assert "95 % CI" not in plain(words_of(page, ladder))
