"""Predictions: made from current trials, checked by later ones, and scored."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.sensitivity import Link, predict
from experiments.errors import InvalidSpec
from experiments.library import load_defaults
from experiments.models import Cluster, Experiment, Prediction, Trial, TrialResult
from experiments.selectors.network import carried, make_prediction, network_study_of
from experiments.selectors.predictions import PredictionScore, checks_of, plan_check, score
from tests.dashboard.studies_measured import NEEDY, NETWORK, measured, needing, needs
from tests.experiments.races import at_once
from workers import queue

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]
LINK = Link(0.35e-3, 700e6)


@pytest.fixture
def study() -> Experiment:
    return needs()


@pytest.fixture
def prediction(study: Experiment) -> Prediction:
    return stored_prediction(study)


def stored_prediction(study: Experiment, link: Link = LINK) -> Prediction:
    return make_prediction(study, link).keep()


def run(elapsed_s: float, is_kept: bool = True) -> None:
    """Finish every waiting trial with this time, on the requested link or not."""
    cluster = Cluster.objects.get(slug="testbed")
    while (trial := Trial.claim_next(cluster, "tests:1:1")) is not None:
        trial.certify({"kept": is_kept, "rows": [], "reasons": []})
        trial.start_running(command=["mpirun"], conditions={})
        trial.start_analysing()
        trial.finish(TrialResult({"all": {"elapsed_s": elapsed_s}}, {}, "good"))


def check(prediction: Prediction) -> Any:
    return checks_of([prediction])[prediction.pk]


def test_a_prediction_is_that_of_the_model_with_its_trials(study: Experiment) -> None:
    prediction = stored_prediction(study)
    fitted = network_study_of(study).fits[0]
    result = predict(carried(fitted.fit), LINK).elapsed
    assert (prediction.value_s, prediction.low_s, prediction.high_s) == (
        result.value,
        result.interval.low,
        result.interval.high,
    )
    assert prediction.value_s == pytest.approx(NEEDY.elapsed(LINK), rel=0.02)
    assert prediction.evidence == sorted(study.trials.values_list("pk", flat=True))
    assert (prediction.hosts, prediction.extended, prediction.ended) == (2, False, [])
    assert make_prediction(study, LINK).evidence_hash == prediction.evidence_hash
    study.trials.first().measurements.update(value=3.3)
    assert make_prediction(study, LINK).evidence_hash != prediction.evidence_hash


def test_the_same_prediction_of_the_same_trials_is_kept_once(study: Experiment, prediction: Prediction) -> None:
    assert stored_prediction(study) == prediction
    assert stored_prediction(study, Link(0.36e-3, 700e6)) != prediction
    study.trials.first().measurements.update(value=3.3)
    assert stored_prediction(study) != prediction


def test_it_is_checked_by_two_trials_on_its_link_alone(study: Experiment, prediction: Prediction) -> None:
    assert queue.check_prediction(prediction) == 2
    trials = study.trials.filter(state="queued")
    parameters = trials[0].configuration.parameters
    assert {trial.configuration_id for trial in trials} == {trials[0].configuration_id}
    assert (parameters["link.delay"], parameters["link.bandwidth"]) == (0.35e-3, 700e6)
    assert trials[0].configuration.hash == prediction.configuration_hash
    assert (check(prediction).waiting, check(prediction).error) == (2, None)
    with pytest.raises(InvalidSpec, match="are already queued or running"):
        queue.check_prediction(prediction)


@pytest.mark.django_db(transaction=True)
def test_checks_that_are_requested_at_once_run_its_trials_once() -> None:
    study = needs()
    prediction = stored_prediction(study)
    queue.check_prediction(prediction)
    run(prediction.value_s)

    def checked(_: int) -> int:
        try:
            return queue.check_prediction(Prediction.objects.get(pk=prediction.pk))
        except InvalidSpec:
            return 0

    assert sorted(at_once(checked, 4)) == [0, 0, 0, 2]
    assert study.trials.filter(state="queued").count() == 2


def test_it_is_scored_by_the_median_of_its_trials(prediction: Prediction) -> None:
    queue.check_prediction(prediction)
    run(1.25 * prediction.value_s)
    result = check(prediction)
    assert (result.measured_s, result.inside) == (pytest.approx(1.25 * prediction.value_s), False)
    assert result.error == pytest.approx(-0.2)
    assert score([result]) == PredictionScore(1, 0, pytest.approx(0.2))
    queue.check_prediction(prediction)
    run(prediction.value_s)
    assert len(check(prediction).trials) == 4


def test_trials_it_was_made_of_never_check_it_though_they_ran_on_its_link(study: Experiment) -> None:
    measured_before = stored_prediction(study, Link(0.5e-3, 1e9))
    assert len(measured_before.ended) == 2
    assert check(measured_before).trials == ()
    assert queue.check_prediction(measured_before) == 2
    run(measured_before.value_s)
    result = check(measured_before)
    assert (len(result.trials), result.inside) == (2, True)
    assert not set(result.trials) & set(measured_before.evidence)
    later = stored_prediction(study, Link(0.5e-3, 1e9))
    assert set(result.trials) <= set(later.evidence)
    assert check(later).trials == ()


def test_a_link_that_was_not_as_requested_checks_nothing(prediction: Prediction) -> None:
    queue.check_prediction(prediction)
    run(prediction.value_s, is_kept=False)
    result = check(prediction)
    assert (result.measured_s, result.other_link) == (None, 2)
    assert score([result]) == PredictionScore(0, 0, None)


def test_disturbed_trials_check_nothing_until_clean_ones_ran(study: Experiment, prediction: Prediction) -> None:
    queue.check_prediction(prediction)
    run(3 * prediction.value_s)
    slow = study.trials.filter(pk__in=check(prediction).trials)
    slow.update(trust="degraded", conditions={"disturbances": ["other programs"]})
    result = check(prediction)
    assert (result.measured_s, result.disturbed, len(result.trials)) == (None, 2, 2)
    assert score([result]) == PredictionScore(0, 0, None)
    queue.check_prediction(prediction)
    run(prediction.value_s)
    result = check(prediction)
    assert (len(result.seconds), result.disturbed, result.inside) == (2, 2, True)


def test_added_links_keep_the_question(study: Experiment) -> None:
    """Otherwise a delay and rate each would look like a ladder of settings."""
    for link in (LINK, Link(0.6e-3, 300e6), Link(0.2e-3, 120e6), Link(0.8e-3, 180e6)):
        queue.check_prediction(stored_prediction(study, link))
        run(NEEDY.elapsed(link))
    grown = network_study_of(Experiment.objects.get(pk=study.pk))
    assert len(grown.fits[0].points) == 14
    assert grown.answer.question == "network"
    assert score(checks_of(Prediction.objects.all()).values()).inside == 4


def test_it_adds_one_link_at_one_number_of_hosts() -> None:
    swept = {**NETWORK, "parameters": {"molecules": 216, "steps": 50}, "sweep": {"hosts": [2, 4]}, "repetitions": 1}
    study = measured(load_defaults(), swept, needing)
    prediction = make_prediction(study, LINK, "4 hosts")
    prediction.save()
    assert prediction.hosts == 4
    assert queue.check_prediction(prediction) == 2
    waiting = study.trials.filter(state="queued")
    assert {trial.configuration.hosts for trial in waiting} == {4}
    assert study.configurations.filter(in_design=True).count() == 21
    with pytest.raises(InvalidSpec, match=r"^at: there is no model of 3 hosts; known: 2 hosts, 4 hosts$"):
        make_prediction(study, LINK, "3 hosts")


@pytest.mark.parametrize(
    ("link", "why"),
    [(Link(0.35e-3, 10e9), r"certified up to 1\WGbit/s"), (Link(0.35e-3, 700e6, 0.01), "^loss: was not swept")],
)
def test_it_says_why_a_link_cannot_be_built_or_predicted(study: Experiment, link: Link, why: str) -> None:
    with pytest.raises(InvalidSpec, match=why):
        queue.check_prediction(stored_prediction(study, link))
    assert not study.trials.filter(state="queued").exists()


def test_a_cluster_that_takes_its_network_as_it_is_builds_none(study: Experiment) -> None:
    Cluster.objects.filter(slug="testbed").update(kind="ssh", settings={"hosts": ["a", "b"]})
    prediction = stored_prediction(Experiment.objects.get(pk=study.pk))
    with pytest.raises(InvalidSpec, match="Only clusters that emulate links"):
        plan_check(prediction)


def test_a_quota_refuses_its_trials(prediction: Prediction) -> None:
    project = prediction.experiment.project
    type(project).objects.filter(pk=project.pk).update(most_queued_trials=1)
    with pytest.raises(InvalidSpec, match="queued at once"):
        queue.check_prediction(prediction)
    assert prediction.experiment.trials.filter(state="queued").count() == 0


def test_an_added_delay_is_subtracted_from_the_requested_one() -> None:
    """A made link takes 170 us more, a plain one 30 us, nothing in between."""
    study = measured(load_defaults(), NETWORK, needing)
    for trial in Trial.objects.filter(experiment=study).select_related("configuration"):
        parameters = trial.configuration.parameters
        delay = parameters["link.delay"] + (200e-6 if parameters["link.delay"] else 30e-6)
        rows = [
            {"quantity": "delay", "achieved": delay},
            {"quantity": "bandwidth", "achieved": parameters["link.bandwidth"]},
        ]
        Trial.objects.filter(pk=trial.pk).update(certificate={"kept": True, "rows": rows})
    assert make_prediction(study, Link(0.4e-3, 1e9)).parameters["link.delay"] == pytest.approx(0.2e-3)
    assert make_prediction(study, Link(32e-6, 1e9)).parameters["link.delay"] == 0.0
    # Emulation alone takes 200 us: the shortest emulated link is nearer than the bare one, of 30 us.
    assert make_prediction(study, Link(190e-6, 1e9)).parameters["link.delay"] == pytest.approx(1e-6)
    assert "cannot be built" in make_prediction(study, Link(45e-6, 1e9)).obstacle
    assert "cannot be built" in make_prediction(study, Link(0.1e-3, 1e9)).obstacle
