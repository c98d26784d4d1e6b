"""REST: share links are made, listed and ended by who may, and tell their key once."""

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


def post(client: Client, **wanted: Any) -> Any:
    return client.post(SHARES, json.dumps(wanted), "application/json")


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


def test_a_link_opens_a_comparison_as_its_page_asks_for_it(
    person: User, experiment: Experiment, submit: Callable[..., Experiment], run: Callable[..., None]
) -> None:
    another = submit(name="Another")
    run()
    made = post(client_of(person), compare=f"of=e:{experiment.slug},e:{another.slug}")
    assert made.status_code == 201
    visitor = Client()
    assert "Another" in visitor.get(made.json()["address"], follow=True).content.decode()
    assert visitor.get(experiment.get_absolute_url()).status_code == 302


def test_who_may_make_and_end_them(person: User, experiment: Experiment) -> None:
    made = {
        role: post(client_of(factories.person(f"a-{role}", role)), experiment=experiment.slug).status_code
        for role in ("viewer", "submitter", "maintainer")
    }
    assert made == {"viewer": 403, "submitter": 201, "maintainer": 201}
    link = ShareLink.objects.get(made_by__username="a-submitter")
    assert client_of(person).get(SHARES).json()["results"] == []
    assert client_of(person).delete(f"{SHARES}{link.pk}/").status_code == 404
    assert client_of(factories.person("mia", "maintainer")).delete(f"{SHARES}{link.pk}/").status_code == 204
    assert post(client_of(factories.person("eve")), experiment=experiment.slug).status_code == 400
    assert post(client_of(person, scope="read"), experiment=experiment.slug).status_code == 403


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
    "wanted",
    [{}, {"experiment": "a", "compare": "of=e:a,e:b"}, {"compare": "of=e:none,e:other"}, {"compare": "scope=x"}],
)
def test_it_says_what_it_cannot_share(person: User, experiment: Experiment, wanted: dict[str, Any]) -> None:
    answer = post(client_of(person), **wanted)
    assert (answer.status_code, len(answer.json()["errors"])) == (400, 1)
