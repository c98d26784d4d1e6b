"""Answers of published studies against their papers' conclusions."""

from __future__ import annotations

import pytest

from analysis.conclusions import Answer, answer
from experiments.library import built_in, load_defaults
from experiments.models import Cluster, Experiment, Trial, TrialResult
from experiments.selectors.question import question_of
from experiments.selectors.study import study_of
from experiments.specification import parse_yaml
from tests.kept_rows import PUBLISHED_STUDIES

LINK = "link.bandwidth"
ASKED_BY = {
    "water-quick": "scale",
    "water-slow-link-quick": "scale",
    "water-network-quick": "network",
    "ring-network-quick": "network",
    "pingpong-network-quick": "network",
    "hpl-network-quick": "network",
    "wan-pingpong-quick": "network",
    "concurrent-readers-quick": "load and network",
    "hpl-tuning-quick": "steps",
    "data-staging-quick": "scale and treatment",
}


@pytest.fixture
def published(db: None) -> None:
    PUBLISHED_STUDIES.restore()


def answered(slug: str) -> Answer:
    experiment = Experiment.objects.get(slug=slug)
    return answer(question_of(experiment, study_of(experiment)))


def value(result: Answer, name: str, **where: object) -> float:
    figure = result.figure(name, **where)
    assert figure is not None, name
    assert isinstance(figure.value, int | float)
    return figure.value


def test_it_stops_water_at_four_hosts(published: None) -> None:
    water = answered("guster-2007-water")
    assert (water.question, water.strength) == ("scale", "printed")
    assert value(water, "best size") == 4
    assert value(water, "times the best", hosts=12) == pytest.approx(264.85 / 200.4)
    assert water.causes[0].part == "off_cpu"


def test_it_says_what_delay_and_loss_cost_a_transfer(published: None) -> None:
    wan = answered("pinning-2007-wan")
    assert (wan.question, wan.strength) == ("network", "printed")
    four = {"message_bytes": 4 << 20}
    assert value(wan, "factor of loss", **four) == pytest.approx(1.997 / 0.703)
    assert value(wan, "factor of delay", **four) == pytest.approx(1.789 / 0.703)
    assert value(wan, "seconds per second of delay", **four) == pytest.approx((1.789 - 0.703) / 0.016, rel=0.03)


def test_it_says_what_each_link_runs_out_of(published: None) -> None:
    readers = answered("monarc-1999-readers")
    assert (readers.question, readers.strength) == ("load and network", "printed")
    first = {f.where[LINK]: f.value for f in readers.figures if f.name == "used up first"}
    assert first == {2e6: "link", 1e7: "link", 1e8: "server CPU", 1e9: "client CPU"}


def test_it_finds_the_best_step_of_a_tuned_cluster(published: None) -> None:
    tuning = answered("eadline-2006-hpl")
    assert (tuning.question, tuning.strength) == ("steps", "printed")
    assert value(tuning, "best step") == 7
    assert value(tuning, "share of peak") == pytest.approx(0.52, abs=0.005)
    assert value(tuning, "gain", step=8) == pytest.approx(7.45 / 14.53)


def test_it_says_how_much_faster_broadcast_is(published: None) -> None:
    staging = answered("york-staging")
    assert staging.strength == "printed"
    assert value(staging, "factor", hosts=10) == 4.4


@pytest.mark.parametrize("name", ASKED_BY)
def test_the_whole_design_asks_while_a_single_point_has_finished(db: None, name: str) -> None:
    file = next(file for file in built_in() if file.stem == name)
    experiment = Experiment.submit(parse_yaml(file.read_text()), project=load_defaults())
    trial = Trial.claim_next(Cluster.objects.get(slug="testbed"), "tests:1:1")
    assert trial is not None
    trial.start_running(command=["mpirun"], conditions={"cores": 2})
    trial.start_analysing()
    trial.finish(TrialResult({"all": {"elapsed_s": 2.0}}, {}, "good"))

    result = answered(experiment.slug)

    assert (result.question, result.strength) == (ASKED_BY[name], "open")
