"""The page of an unfinished experiment: running and queued trials, estimates."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from experiments.models import Cluster, Experiment, Membership, Project, Trial
from experiments.specification import parse
from tests.dashboard.laboratory import specification


def said(page, experiment: Experiment) -> str:
    """Return the text of the answer to a poll."""
    html = page.get(reverse("experiment-live", args=[experiment.slug])).content.decode()
    return " ".join(re.sub(r"<[^>]*>", " ", html).replace("\N{NARROW NO-BREAK SPACE}", " ").split()).replace(" ,", ",")


def claim() -> Trial:
    trial = Trial.claim_next(Cluster.objects.get(slug="testbed"), "tests:1:1")
    assert trial is not None
    return trial


def let_them_have_held_s(seconds: float) -> None:
    """All finished trials ended a week ago and held their hosts for so long."""
    end = timezone.now() - timedelta(days=7)
    Trial.objects.filter(state="finished").update(preparing_at=end - timedelta(seconds=seconds), ended_at=end)


def test_it_gives_seconds_for_more_repetitions_a_week_later(page, submit, run):
    experiment = submit(sweep={"hosts": [1]}, repetitions=3)
    run()
    let_them_have_held_s(6)
    experiment.add_repetitions(2)
    assert "3 of 5 trials finished · about 12 s left" in said(page, experiment)
    claim()
    home = page.get(reverse("home"))
    assert home.context["running"][0]["left_s"] == pytest.approx(12, abs=2)


def test_it_names_the_next_trials_with_when_they_start(page, submit, run):
    experiment = submit()
    run(most=1)
    let_them_have_held_s(200)
    running = claim()
    text = said(page, experiment)
    assert (
        "4 trials queued next: 4 hosts, repetition 1; 4 hosts, repetition 2; 2 hosts, repetition 2 starts in about 3 min"
        in text
    )
    assert running.get_absolute_url() in page.get(experiment.get_absolute_url()).content.decode()


def test_it_counts_an_experiment_of_others_without_its_name(page, submit):
    hidden = Project.objects.create(slug="hidden", name="Hidden")
    Experiment.submit(parse(specification(name="Secret plan")), project=hidden)
    text = said(page, submit())
    assert "after 1 trial of another experiment" in text
    assert "Secret plan" not in text
    hidden.memberships.create(user_id=page.session["_auth_user_id"], role=Membership.Role.VIEWER)
    assert "after 1 trial of Secret plan" in said(page, Experiment.objects.get(name="Water in miniature"))


def test_it_leaves_an_experiment_that_is_over_without_a_queue(page, submit, run):
    experiment = submit()
    submit(name="Still waiting")
    run(most=6)
    text = said(page, experiment)
    assert "queued" not in text


def test_it_says_on_both_pages_what_a_trial_waits_for(page, submit):
    experiment = submit()
    trial = claim()
    trial.beat({"note": "Slurm job 12: PENDING (Resources)"})
    assert "Preparing Slurm job 12: PENDING (Resources)" in said(page, experiment)
    assert "preparing · Slurm job 12: PENDING (Resources)" in page.get(reverse("home")).content.decode()
    trial.start_running(command=["mpirun"], conditions={})
    assert "PENDING" not in said(page, experiment)
    assert "PENDING" not in page.get(reverse("home")).content.decode()
