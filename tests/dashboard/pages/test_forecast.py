"""The queue's forecast and the preview of an experiment have one base."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from experiments.models import Membership, Trial
from experiments.specification import parse
from experiments.specification.design import expand
from workers.preview import estimates, total_s

SWEPT = {"hosts": [1, 2, 4], "molecules": [256, 512]}


def held(seconds):
    """Set how long each finished trial held its hosts."""
    end = timezone.now() - timedelta(hours=1)
    finished = Trial.objects.filter(state="finished")
    finished.update(preparing_at=end - timedelta(seconds=seconds), ended_at=end)


@pytest.mark.parametrize("sweep", [{"hosts": [1, 2, 4]}, SWEPT])
def test_a_queued_experiment_lasts_as_long_as_its_preview_says(page, submit, run, sweep):
    submit()
    run()
    held(20)
    draft = {"name": "Next", "workload": "water", "parameters": {}, "sweep": sweep, "repetitions": 2}
    spec = parse(draft)
    plan = expand(spec)
    previewed_s = total_s(plan, estimates(spec, plan))
    experiment = submit(**draft)
    live = page.get(reverse("experiment-live", args=[experiment.slug]), {"seen": 0}).context
    assert live["left_s"] == pytest.approx(previewed_s)
    assert previewed_s > 2 * len(plan.configurations)


def test_the_next_experiment_starts_when_the_previewed_time_is_over(page, submit, run):
    submit()
    run()
    held(20)
    first, second = submit(name="First", repetitions=3), submit(name="Second")
    spec = first.spec
    plan = expand(spec)
    assert page.get(reverse("home")).context["queue"][1]["slug"] == second.slug
    starts_in_s = page.get(reverse("home")).context["queue"][1]["starts_in_s"]
    assert starts_in_s == pytest.approx(total_s(plan, estimates(spec, plan)))


def test_a_workload_without_past_trials_has_a_guess_in_the_preview_and_no_forecast(page, submit):
    experiment = submit()
    live = page.get(reverse("experiment-live", args=[experiment.slug]), {"seen": 0}).context
    assert live["left_s"] is None


def test_a_refresh_keeps_the_link_to_the_priority_of_a_queued_experiment(page, submit):
    submit(name="First")
    second = submit(name="Second")
    Membership.objects.update(role=Membership.Role.MAINTAINER)
    live = page.get(reverse("experiment-live", args=[second.slug]), {"seen": 0, "complete": "False"})
    assert "changed" not in live.context
    for answer in (page.get(second.get_absolute_url()), live):
        assert f'href="{second.get_absolute_url()}?tab=setup">Change' in answer.content.decode()
