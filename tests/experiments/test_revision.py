"""Revisions: new versions, more repetitions, failed trials again."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from django.db import transaction

from experiments import selectors
from experiments.errors import InvalidSpec
from experiments.library import load_defaults
from experiments.models import Cluster, Experiment, State, Trial
from experiments.revision import add_points, plan_configuration, preview_of
from experiments.specification import parse
from experiments.specification.design import expand
from tests.experiments.races import at_once

BASE: dict[str, Any] = {
    "name": "under revision",
    "workload": "water",
    "parameters": {"molecules": 64},
    "sweep": {"hosts": [1, 2]},
    "repetitions": 2,
}


@pytest.fixture
def experiment(db: None) -> Experiment:
    """Two configurations with two repetitions, all finished."""
    experiment = Experiment.submit(parse(BASE), project=load_defaults())
    experiment.trials.update(state=State.FINISHED)
    return experiment


def queued(experiment: Experiment) -> list[tuple[int, int, int]]:
    rows = experiment.trials.filter(state=State.QUEUED).order_by("position")
    return list(rows.values_list("configuration__hosts", "repetition", "attempt"))


def test_it_queues_only_what_a_new_version_adds(experiment: Experiment) -> None:
    assert experiment.revise(parse({**BASE, "sweep": {"hosts": [1, 2, 4]}})) == 2
    assert queued(experiment) == [(4, 1, 1), (4, 2, 1)]
    assert experiment.version == 2
    assert list(experiment.versions.values_list("number", flat=True)) == [1, 2]
    assert set(experiment.trials.filter(state=State.QUEUED).values_list("version", flat=True)) == {2}


def test_it_keeps_points_that_are_no_longer_asked_for_out_of_the_counts(experiment: Experiment) -> None:
    assert experiment.revise(parse({**BASE, "sweep": {"hosts": [2]}})) == 0
    assert experiment.trials.count() == 4
    assert selectors.progress_of([experiment])[experiment.pk].total == 2
    assert experiment.trials.counted().count() == 2
    assert experiment.revise(parse(BASE)) == 0, "the point that comes back has its trials already"
    assert selectors.progress_of([experiment])[experiment.pk].finished == 4


def test_it_refuses_a_cluster_that_was_switched_off(experiment: Experiment) -> None:
    Cluster.objects.update(enabled=False)
    for change in (lambda: experiment.revise(parse({**BASE, "repetitions": 3})), lambda: experiment.add_repetitions(1)):
        with pytest.raises(InvalidSpec, match=r"^cluster: "):
            change()
    experiment.refresh_from_db()
    assert experiment.version == 1


def test_it_measures_again_when_the_cluster_changes_and_keeps_what_it_had(experiment: Experiment) -> None:
    Cluster.objects.create(slug="rack", name="Rack", kind="ssh", settings={"hosts": ["a", "b"]})
    assert experiment.revise(parse({**BASE, "cluster": "rack"})) == 4
    assert queued(experiment) == [(1, 1, 2), (2, 1, 2), (2, 2, 2), (1, 2, 2)]
    assert experiment.trials.filter(superseded=True, state=State.FINISHED).count() == 4
    assert not experiment.trials.counted().exists()


def test_it_makes_no_version_of_an_equal_specification(experiment: Experiment) -> None:
    assert experiment.revise(parse(dict(BASE))) == 0
    assert experiment.version == 1


def test_it_gives_waiting_trials_the_order_of_the_new_version(db: None) -> None:
    experiment = Experiment.submit(parse(BASE), project=load_defaults())
    assert experiment.revise(parse({**BASE, "order": "sequential"})) == 4
    assert queued(experiment) == [(1, 1, 1), (1, 2, 1), (2, 1, 1), (2, 2, 1)]


def test_revision_keeps_a_trial_that_a_worker_claims_meanwhile(transactional_db: None) -> None:
    experiment = Experiment.submit(parse(BASE), project=load_defaults())
    cluster = Cluster.objects.get(slug="testbed")
    is_claimed = threading.Event()

    def claim(number: int) -> None:
        if number:
            is_claimed.wait(10)
            experiment.revise(parse({**BASE, "sweep": {"hosts": [1, 2, 4]}}))
            return
        with transaction.atomic():
            Trial.claim_next(cluster, "host:1:1")
            is_claimed.set()
            time.sleep(1.0)  # the revision waits for this transaction

    at_once(claim, 2)
    assert experiment.trials.filter(state=State.PREPARING).count() == 1
    assert experiment.trials.count() == 6


def test_it_adds_repetitions(experiment: Experiment) -> None:
    assert experiment.add_repetitions(1) == 2
    assert queued(experiment) == [(1, 3, 1), (2, 3, 1)]
    assert experiment.spec.repetitions == 3


def test_it_keeps_waiting_repetitions_that_were_asked_for_of_single_points(experiment: Experiment) -> None:
    (two,) = experiment.configurations.filter(hosts=2).values_list("hash", flat=True)
    assert experiment.queue_repetitions({two: 2}) == 2
    assert queued(experiment) == [(2, 3, 1), (2, 4, 1)]
    more = parse({**BASE, "repetitions": 3})
    planned = preview_of(experiment, more, expand(more))
    assert (planned.queued, planned.dropped) == (4, 2)
    assert experiment.add_repetitions(1) == 4
    assert queued(experiment) == [(1, 3, 1), (2, 3, 1), (2, 4, 1), (2, 5, 1)]
    assert experiment.revise(parse({**BASE, "repetitions": 3, "sweep": {"hosts": [1]}})) == 1, "its point is gone"


def test_further_repetitions_of_several_points_alternate(experiment: Experiment) -> None:
    one, two = experiment.configurations.order_by("hosts").values_list("hash", flat=True)
    assert experiment.queue_repetitions({one: 2, two: 3}) == 5
    assert queued(experiment) == [(1, 3, 1), (2, 3, 1), (2, 4, 1), (1, 4, 1), (2, 5, 1)]


def test_it_runs_only_the_failed_and_missing_trials_again(experiment: Experiment) -> None:
    failed, cancelled, *_ = experiment.trials.order_by("position")
    Trial.objects.filter(pk=failed.pk).update(state=State.FAILED)
    Trial.objects.filter(pk=cancelled.pk).update(state=State.CANCELLED)
    assert experiment.rerun_failed() == 2
    assert sorted(queued(experiment)) == [(1, 1, 2), (2, 1, 2)]
    assert experiment.rerun_failed() == 0
    failed.refresh_from_db()
    assert (failed.state, failed.superseded) == (State.FAILED, True)


def test_it_adds_one_configuration_and_no_other_combination(db: None) -> None:
    """Of a sweep of two delays at two rates, filtered to three points."""
    links = {"link.delay": ["0 ms", "1 ms"], "link.bandwidth": ["1 Gbit/s", "100 Mbit/s"]}
    written = {**BASE, "parameters": {"molecules": 64, "hosts": 2}, "sweep": links, "repetitions": 1}
    where = "link.delay < 1 ms or link.bandwidth > 500 Mbit/s"
    experiment = Experiment.submit(parse({**written, "where": where}), project=load_defaults())
    experiment.trials.update(state=State.FINISHED)
    first = experiment.configurations.order_by("position").first()
    assert first is not None
    added = {**first.parameters, "link.delay": 0.00035, "link.loss": 0.01}
    more = plan_configuration(experiment, added, 2)
    assert more is not None
    assert (more.queued, add_points(experiment, more)) == (2, 2)
    points = experiment.configurations.filter(in_design=True)
    assert points.count() == 4
    assert points.get(parameters__contains={"link.loss": 0.01}).trials.filter(state=State.QUEUED).count() == 2
    assert experiment.trials.filter(state=State.FINISHED).counted().count() == 3
    assert parse(experiment.specification) == experiment.spec
    again = plan_configuration(experiment, added, 2)
    assert again is not None
    assert (again.spec, again.queued) == (None, 2), "it is in the design now: only repetitions are missing"


def test_it_adds_no_configuration_to_a_design_of_as_many_trials_as_are_allowed(
    experiment: Experiment, settings: Any
) -> None:
    settings.MAX_TRIALS = 4
    first = experiment.configurations.first()
    assert first is not None
    assert plan_configuration(experiment, {**first.parameters, "hosts": 4}, 2) is None
