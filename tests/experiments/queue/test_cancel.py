"""Cancelling waiting and running trials."""

from __future__ import annotations

import pytest

from experiments.models import Cluster, Experiment, State, Trial
from tests.experiments import factories

pytestmark = pytest.mark.django_db


def states(experiment: Experiment) -> list[str]:
    return list(experiment.trials.order_by("position").values_list("state", flat=True))


def test_it_ends_waiting_trials_at_once_and_asks_running_ones_to_stop() -> None:
    experiment = factories.experiment()
    trial = factories.running()
    assert trial.cancel() == 1
    assert experiment.cancel() == 3
    assert states(experiment) == ["running", "cancelled", "cancelled", "cancelled"]
    assert trial.beat() is True
    trial.end_cancelled()
    assert states(experiment) == ["cancelled"] * 4
    assert Trial.claim_next(Cluster.objects.get(slug="testbed"), "host:1:1") is None


def test_it_leaves_what_is_over_as_it_is() -> None:
    experiment = factories.experiment()
    done = factories.finished()
    assert experiment.cancel() == 3
    done.refresh_from_db()
    assert done.state == State.FINISHED
    assert experiment.cancel() == 0


def test_it_cancels_one_trial_and_leaves_the_others() -> None:
    experiment = factories.experiment()
    first = experiment.trials.order_by("position").first()
    assert first is not None
    assert first.cancel() == 1
    first.refresh_from_db()
    assert (first.state, first.message) == (State.CANCELLED, "Cancelled before it started.")
    assert states(experiment) == ["cancelled", "queued", "queued", "queued"]
