"""REST: idempotency keys."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from experiments.models import Experiment, IdempotencyKey, State
from tests.dashboard.api.clients import EXPERIMENTS, client_of
from tests.experiments import factories
from tests.experiments.races import at_once
from workers.retention import remove_old_keys

pytestmark = pytest.mark.usefixtures("empty_redis")


@pytest.fixture
def experiment(db: None) -> Experiment:
    experiment = factories.experiment(owner=factories.person("ada", "submitter"))
    experiment.trials.update(state=State.FAILED)
    return experiment


@pytest.fixture
def client(experiment: Experiment) -> Client:
    return client_of(experiment.owner)


def post(client: Client, address: str, key: str, body: Any = None) -> Any:
    headers = {"Idempotency-Key": key}
    return client.post(f"{EXPERIMENTS}{address}", json.dumps(body), "application/json", headers=headers)


def outcome(answer: Any) -> tuple[int, Any]:
    return answer.status_code, answer.json()


def test_it_repeats_once_for_two_requests_with_one_key(experiment: Experiment, client: Client) -> None:
    address, before = f"{experiment.slug}/repetitions/", experiment.spec.repetitions
    first, again = (post(client, address, "retry-1", {"count": 3}) for _ in range(2))
    experiment.refresh_from_db()
    assert experiment.spec.repetitions == before + 3
    assert outcome(first) == outcome(again) == (200, {"queued": experiment.trials.filter(version=2).count()})
    assert ("Idempotency-Replayed" in first, again["Idempotency-Replayed"]) == (False, "true")
    assert post(client, address, "retry-2", {"count": 3}).status_code == 200
    experiment.refresh_from_db()
    assert experiment.spec.repetitions == before + 6, "another key is another request"


def test_it_gives_a_page_of_many_trials_at_once_the_same_task(
    experiment: Experiment, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.background.changes.MOST_AT_ONCE", 0)
    first, again = (post(client, f"{experiment.slug}/repetitions/", "retry", {"count": 2}) for _ in range(2))
    assert outcome(first) == outcome(again)
    assert (first.status_code, first["Location"]) == (202, again["Location"])


def test_it_refuses_a_key_that_came_with_another_request(experiment: Experiment, client: Client) -> None:
    address = f"{experiment.slug}/repetitions/"
    assert post(client, address, "retry", {"count": 1}).status_code == 200
    for other, body in ((address, {"count": 2}), (f"{experiment.slug}/rerun-failed/", None)):
        status, answer = outcome(post(client, other, "retry", body))
        assert (status, "another request" in answer["errors"][0]["message"]) == (409, True)


@pytest.mark.parametrize("key", ["", "a b", "é", "x" * 101])
def test_invalid_keys_are_refused(experiment: Experiment, client: Client, key: str) -> None:
    answer = post(client, f"{experiment.slug}/rerun-failed/", key)
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (400, "Idempotency-Key")


def test_key_of_a_refused_request_is_free_again(experiment: Experiment, client: Client) -> None:
    address = f"{experiment.slug}/repetitions/"
    assert post(client, address, "retry", {"count": 0}).status_code == 400
    Experiment.objects.filter(pk=experiment.pk).update(published=True)
    assert post(client, address, "retry", {"count": 1}).status_code == 409
    Experiment.objects.filter(pk=experiment.pk).update(published=False)
    assert post(client, address, "retry", {"count": 1}).status_code == 200


def test_permission_is_checked_before_a_stored_answer(experiment: Experiment, client: Client) -> None:
    address = f"{experiment.slug}/rerun-failed/"
    assert post(client, address, "retry").status_code == 200
    experiment.owner.memberships.update(role="viewer")
    assert post(client, address, "retry").status_code == 403
    experiment.owner.memberships.all().delete()
    assert post(client, address, "retry").status_code in (403, 404)


def test_keys_of_two_people_and_of_two_tokens_are_their_own(experiment: Experiment, client: Client) -> None:
    address = f"{experiment.slug}/repetitions/"
    others = (client_of(experiment.owner), client_of(factories.person("eve", "maintainer")))
    before = experiment.spec.repetitions
    assert {post(item, address, "retry", {"count": 1}).status_code for item in (client, *others)} == {200}
    experiment.refresh_from_db()
    assert experiment.spec.repetitions == before + 3


def test_it_repeats_once_for_many_requests_with_one_key_at_once(transactional_db: None) -> None:
    experiment = factories.experiment(owner=factories.person("ada", "submitter"))
    before, client = experiment.spec.repetitions, client_of(experiment.owner)
    key = client.defaults["HTTP_AUTHORIZATION"]

    def ask(_: int) -> Any:
        token_client = Client(headers={"Authorization": key})
        return post(token_client, f"{experiment.slug}/repetitions/", "retry", {"count": 2})

    answers = at_once(ask, 6)
    experiment.refresh_from_db()
    assert experiment.spec.repetitions == before + 2
    assert [answer.status_code for answer in answers] == [200] * 6
    assert len({answer.content for answer in answers}) == 1


def test_answers_are_forgotten_after_a_day(experiment: Experiment, client: Client) -> None:
    post(client, f"{experiment.slug}/rerun-failed/", "old")
    IdempotencyKey.objects.update(asked_at=timezone.now() - timedelta(hours=25))
    post(client, f"{experiment.slug}/rerun-failed/", "new")
    assert remove_old_keys() == 1
    assert IdempotencyKey.objects.count() == 1
