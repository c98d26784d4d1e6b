"""REST: share links are created, listed and revoked."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.models import Experiment, Project, ShareLink
from tests.dashboard.api.clients import client_of
from tests.experiments import factories

SHARES = "/api/v1/shares/"


@pytest.fixture
def experiment(submit: Callable[..., Experiment], run: Callable[..., None]) -> Experiment:
    experiment = submit()
    run()
    return experiment


def post(client: Client, **fields: Any) -> Any:
    return client.post(SHARES, json.dumps(fields), "application/json")


def test_a_link_opens_the_experiment_until_it_is_ended(person: User, experiment: Experiment) -> None:
    client = client_of(person)
    made = post(client, experiment=experiment.slug, days=30)
    assert (made.status_code, made.json()["experiments"]) == (201, [experiment.slug])
    visitor = Client()
    assert visitor.get(made.json()["address"], follow=True).redirect_chain[-1][0] == experiment.get_absolute_url()
    listed = client.get(SHARES).json()["results"]
    assert [link["id"] for link in listed] == [made.json()["id"]]
    assert made.json()["address"].rsplit("/", 2)[1] not in json.dumps(listed)
    assert client.delete(f"{SHARES}{made.json()['id']}/").status_code == 204
    assert visitor.get(experiment.get_absolute_url()).status_code == 302


def test_a_token_for_one_project_shares_and_sees_nothing_of_others(experiment: Experiment) -> None:
    root = factories.person("root", is_superuser=True)
    other = Project.objects.create(slug="other", name="Other")
    ShareLink.issue([experiment], by=root, days=7)
    limited = client_of(root, project=other)
    assert limited.get(SHARES).json()["results"] == []
    published = Experiment.objects.filter(published=True).latest("pk")
    assert post(limited, experiment=published.slug).status_code == 403
    assert post(limited, experiment=experiment.slug).status_code == 400
    assert post(client_of(root), experiment=published.slug).status_code == 201


@pytest.mark.parametrize(
    "fields",
    [{}, {"experiment": "a", "compare": "of=e:a,e:b"}, {"compare": "of=e:none,e:other"}, {"compare": "scope=x"}],
)
def test_invalid_share_links_are_refused(person: User, experiment: Experiment, fields: dict[str, Any]) -> None:
    answer = post(client_of(person), **fields)
    assert (answer.status_code, len(answer.json()["errors"])) == (400, 1)
