"""Ticked trials: confirmation, run again, cancel."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from experiments.models import Trial
from tests.dashboard.texts import text_of
from tests.experiments import factories

pytestmark = pytest.mark.usefixtures("empty_redis")
AGAIN = "/trials/chosen/again/"
CANCEL = "/trials/chosen/cancel/"


def tokens(trials: Any) -> list[str]:
    return [f"t:{trial.pk}" for trial in trials]


def test_confirmation_page_changes_nothing(page: Client, submit: Any, run: Any) -> None:
    experiment = submit()
    run(most=2)
    text = text_of(page.get(AGAIN, {"of": tokens(experiment.trials.all()), "back": "q=water"}))
    assert text.count("It has not ended.") == 4
    assert 'href="/trials/?q=water"' in text
    assert experiment.trials.count() == 6


def test_it_runs_those_again_that_can_be_and_goes_back_to_the_list(page: Client, submit: Any, run: Any) -> None:
    experiment = submit()
    run(most=2)
    over = list(experiment.trials.filter(state="finished"))
    waiting = experiment.trials.filter(state="queued").first()
    form = {"of": tokens([*over, waiting]), "back": "q=water", "once": "a1"}
    for _ in range(2):  # the second press of the button does nothing more
        response = page.post(AGAIN, form)
        assert response.url == "/trials/?q=water"
    assert experiment.trials.filter(attempt=2, state="queued").count() == 2
    assert experiment.trials.filter(superseded=True).count() == 2


def test_it_cancels_those_that_wait(page: Client, submit: Any) -> None:
    experiment = submit()
    first, second = experiment.trials.all()[:2]
    page.post(CANCEL, {"of": tokens([first, second])})
    assert set(Trial.objects.filter(state="cancelled")) == {first, second}


def test_it_does_nothing_to_trials_of_others(client: Client, submit: Any) -> None:
    trial = submit().trials.first()
    for kind, data in (("viewer", "maintainers and the owner"), (None, "1 does not exist")):
        client.force_login(factories.person(f"some-{kind}", kind) if kind else factories.person("eve"))
        assert data in text_of(client.get(CANCEL, {"of": f"t:{trial.pk}"}))
        client.post(CANCEL, {"of": f"t:{trial.pk}"})
    trial.refresh_from_db()
    assert trial.state == "queued"


@pytest.mark.parametrize(
    ("of", "words"),
    [("", "Tick the trials"), ("t:many", "names no trial"), (",".join(map(str, range(201))), "At most 200 trials")],
)
def test_invalid_selections_are_refused(page: Client, submit: Any, of: str, words: str) -> None:
    submit()
    response = page.get(AGAIN, {"of": of})
    assert words in text_of(page.get(response.url))
