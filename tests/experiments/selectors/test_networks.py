"""Designs over links alone: networks compared as wholes."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.conclusions import Answer, ExperimentQuestion, answer, kind_of
from experiments.library import load_defaults
from experiments.models import Experiment, Measurement, State, Trial
from experiments.selectors.designs import are_networks, is_ladder
from experiments.selectors.question import question_of
from experiments.selectors.study import study_of
from experiments.specification import parse

SITE, CAMPUS, WAN = ("1 Gbit/s", "0.1 ms", "0 %"), ("200 Mbit/s", "1 ms", "0.1 %"), ("20 Mbit/s", "10 ms", "1 %")
LINK = ("link.bandwidth", "link.delay", "link.loss")


def question_over(
    links: list[tuple[str, ...]], times: list[float], sweep: dict[str, Any] | None = None
) -> ExperimentQuestion:
    """Return the question of an experiment over these links, three trials each."""
    spec = {
        "name": "Networks",
        "workload": "pingpong",
        "parameters": {"hosts": 2},
        "sweep": {name: list(values) for name, values in zip(LINK, zip(*links, strict=True), strict=True)}
        | (sweep or {}),
        "zip": [list(LINK)],
        "repetitions": 3,
    }
    experiment = Experiment.submit(parse(spec), project=load_defaults())
    of = {configuration.pk: times[i] for i, configuration in enumerate(experiment.configurations.order_by("pk"))}
    for trial in experiment.trials.all():
        value = of[trial.configuration_id] * (1 + 0.01 * trial.repetition)
        Measurement.objects.create(trial=trial, metric="pingpong.transfer_time_s", value=value)
    Trial.objects.filter(experiment=experiment).update(state=State.FINISHED)
    return question_of(experiment, study_of(experiment))


def best_of(result: Answer) -> list[Any]:
    return [figure.value for figure in result.figures if figure.name == "best"]


def test_three_links_are_three_networks(db: None) -> None:
    design = question_over([SITE, CAMPUS, WAN], [1.0, 2.0, 8.0])
    result = answer(design)

    assert (kind_of(design), design.steps) == ("treatment", False)
    assert {factor.name for factor in design.factors} == set(LINK)
    assert len(best_of(result)) == 1
    worst = [f.value for f in result.figures if f.name == "times the best"][-1]
    assert worst == pytest.approx(8.0)
    assert not any(f.name.startswith("factor of ") for f in result.figures), (
        "no single property has an effect of its own"
    )
    assert any("change together" in cause.statement for cause in result.causes)


def test_two_networks_are_compared_at_every_message_size(db: None) -> None:
    design = question_over([SITE, WAN], [1.0, 2.0, 8.0, 16.0], {"message_bytes": ["64 KiB", "1 MiB"]})

    assert kind_of(design) == "treatment"
    assert len(best_of(answer(design))) == 2


def test_links_that_change_one_property_each_give_its_effect(db: None) -> None:
    slow, far = ("20 Mbit/s", "0.1 ms", "0 %"), ("1 Gbit/s", "10 ms", "0 %")
    design = question_over([SITE, slow, far], [1.0, 2.0, 8.0])

    assert kind_of(design) == "network"
    assert {f.name for f in answer(design).figures} >= {"factor of rate", "factor of delay"}


def test_a_property_that_advances_with_another_is_named_with_it(db: None) -> None:
    far, farther = ("1 Gbit/s", "1 ms", "0.1 %"), ("1 Gbit/s", "10 ms", "1 %")
    lossy = [(rate, delay, loss) for rate in ("1 Gbit/s", "20 Mbit/s") for _, delay, loss in (SITE, far, farther)]
    design = question_over(lossy, [1.0, 2.0, 8.0, 2.0, 4.0, 16.0])

    assert kind_of(design) == "network"
    assert sorted(factor.label for factor in design.factors) in (
        ["delay with loss", "rate"],
        ["loss with delay", "rate"],
    )


class Point:
    def __init__(self, **parameters: Any) -> None:
        self.parameters, self.values = parameters, {}

    def median(self, metric: str) -> None:
        return None


def test_a_grid_of_parameters_that_advance_together_is_no_ladder() -> None:
    sites = [{"link.bandwidth": 1e8 * n, "link.delay": 1e-3 * n, "events": n, "work": n} for n in (1, 2)]

    assert not is_ladder([Point(jobs=jobs, **site) for site in sites for jobs in (1, 6, 40)])
    assert is_ladder([Point(nb=n, ns=100 * n) for n in (1, 2, 3)])


def test_links_alone_are_no_ladder() -> None:
    links = [{"link.bandwidth": 1e9 / n, "link.delay": 1e-3 * n} for n in (1, 2, 4)]

    assert is_ladder([Point(nb=i, **link) for i, link in enumerate(links)])
    assert not is_ladder([Point(**link) for link in links])
    assert are_networks([Point(**link) for link in links])
    assert are_networks([Point(hosts=n, **link) for link in links for n in (1, 2)])
    assert not are_networks([Point(**{**links[0], "link.delay": d}) for d in (0.0, 1e-3, 2e-3)])
