"""Elapsed times of virtual hosts name the shared cores."""

from __future__ import annotations

import pytest
from django.urls import reverse

from experiments.models import Trial


def ran(trial: Trial) -> None:
    """Traits of the test-bed, which states shared cores; other launchers do not."""
    here = trial.cluster is not None and trial.cluster.slug == "testbed"
    words = f"{trial.configuration.hosts} virtual hosts on 2 cores" if here else None
    Trial.objects.filter(pk=trial.pk).update(conditions={"cores": 2, "oversubscription": words})


def test_the_largest_size_so_far_is_named_while_larger_ones_wait(page, submit, run):
    experiment = submit(sweep={"hosts": [2, 4]}, repetitions=1)
    run(most=1)
    for trial in experiment.trials.filter(state="finished"):
        ran(trial)
    assert (
        page.get(experiment.get_absolute_url()).context["oversubscription"] == "up to 2 virtual hosts on 2 cores so far"
    )
    experiment.trials.filter(state="queued").update(state="failed")
    assert page.get(experiment.get_absolute_url()).context["oversubscription"] == "up to 2 virtual hosts on 2 cores"


@pytest.mark.parametrize(
    ("hosts", "words"), [([2, 4], "Up to 4 virtual hosts on 2 cores"), ([2], "2 virtual hosts on 2 cores")]
)
def test_it_says_so_in_the_head_of_an_experiment_as_soon_as_a_trial_has_ended(page, submit, run, hosts, words):
    experiment = submit(sweep={"hosts": hosts}, repetitions=2)
    run(most=2)
    for trial in experiment.trials.filter(state="finished"):
        ran(trial)
    poll = page.get(reverse("experiment-live", args=[experiment.slug]), {"seen": 0}).content.decode()
    assert f'<li id="oversubscription" hx-swap-oob="true">{words}</li>' in poll
    assert f'<li id="oversubscription">{words}</li>' in page.get(experiment.get_absolute_url()).content.decode()
