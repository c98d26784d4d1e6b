"""Idempotent forms: a second press of a button changes nothing."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from experiments.models import Experiment, Project, State

pytestmark = pytest.mark.usefixtures("empty_redis")


@pytest.fixture
def experiment(submit) -> Experiment:
    experiment: Experiment = submit()
    experiment.trials.update(state=State.FAILED)
    return experiment


def token(page: Client, address: str, action: str) -> str:
    """The token of the form that sends to ``action``."""
    html = page.get(address).content.decode()
    form = html[html.index(f'action="{action}"') :]
    drawn = re.search(r'name="once" value="([^"]{16,})"', form[: form.index("</form>")])
    assert drawn is not None
    return drawn[1]


def twice(page: Client, address: str, sent: dict[str, Any]) -> str:
    """Send a form twice; return the page of the second, equal redirect."""
    first, again = page.post(address, sent), page.post(address, sent)
    assert (first.status_code, again.status_code) == (302, 302)
    assert first["Location"] == again["Location"]
    shown: str = page.get(again["Location"]).content.decode()
    assert "Duplicate submission ignored." in shown
    return shown


def test_a_double_click_on_repeat_adds_the_repetitions_once(page: Client, experiment: Experiment) -> None:
    address, before = reverse("experiment-repeat", args=[experiment.slug]), experiment.spec.repetitions
    sent = {"count": "2", "once": token(page, experiment.get_absolute_url(), address)}
    twice(page, address, sent)
    experiment.refresh_from_db()
    assert experiment.spec.repetitions == before + 2
    page.post(address, {**sent, "count": "1"})
    experiment.refresh_from_db()
    assert experiment.spec.repetitions == before + 3, "who goes back and chooses otherwise asks for something else"
    page.post(address, {**sent, "once": token(page, experiment.get_absolute_url(), address)})
    experiment.refresh_from_db()
    assert experiment.spec.repetitions == before + 5, "a page that is newly loaded asks anew"


def test_a_form_that_was_refused_may_be_sent_again(page: Client, experiment: Experiment) -> None:
    address = reverse("experiment-rerun", args=[experiment.slug])
    sent = {"once": token(page, experiment.get_absolute_url(), address)}
    project = Project.objects.filter(pk=experiment.project_id)
    project.update(most_queued_trials=1)
    page.post(address, sent)
    assert not experiment.trials.filter(state=State.QUEUED).exists()
    project.update(most_queued_trials=None)
    page.post(address, sent)
    assert experiment.trials.filter(state=State.QUEUED, attempt=2).exists()
