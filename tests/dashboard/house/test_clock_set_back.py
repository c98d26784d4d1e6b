"""Pages after the clock was set back during a trial: no negative durations."""

from datetime import timedelta

import pytest
from django.db.models import F
from django.db.models.functions import Now
from django.urls import reverse

from analysis.numbers import NARROW
from experiments.models import Cluster, Experiment, Trial

BACK = timedelta(days=2)


@pytest.fixture
def half_done(submit, run) -> Experiment:
    """Trials that ended before they began, began in the future, or wait."""
    submit(name="Steady", sweep={"hosts": [1]}, repetitions=1)
    run()
    Trial.objects.update(ended_at=F("preparing_at") + timedelta(minutes=2))
    experiment = submit(name="Stepped", sweep={"hosts": [1]}, repetitions=4)
    run(most=1)
    Trial.claim_next(Cluster.objects.get(slug="testbed"), "tests:1:1")
    experiment.trials.exclude(state="queued").update(preparing_at=Now() + BACK)
    return experiment


def test_what_is_left_counts_whole_trials(page, half_done):
    home = page.get(reverse("home")).content.decode()
    assert f"in 2{NARROW}min" in home, "the running trial has a whole one before it"
    assert f"<b>6{NARROW}min</b>" in home
    live = page.get(reverse("experiment-live", args=[half_done.slug])).content.decode()
    assert f"6{NARROW}min" in live


def test_the_duration_is_not_shown(page, half_done):
    half_done.trials.update(state="finished", ended_at=Now())
    live = page.get(reverse("experiment-live", args=[half_done.slug])).content.decode()
    assert "trials" in live
    assert "took" not in live


def test_every_trial_is_shown(page, half_done):
    for trial in half_done.trials.all():
        assert page.get(trial.get_absolute_url()).status_code == 200
