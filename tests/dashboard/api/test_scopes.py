"""REST: a token does no more than its scope, in no other project than its own."""

from __future__ import annotations

import pytest
from django.test import Client

from experiments.models import ApiToken, Cluster, Experiment, Membership, Project
from tests.dashboard.api.clients import EXPERIMENTS, TRIALS, client_of
from tests.experiments import factories
from tests.experiments.specifications import written

pytestmark = pytest.mark.django_db
TOKENS = "/api/v1/tokens/"


@pytest.mark.parametrize("is_superuser", [False, True])
@pytest.mark.parametrize(
    ("scope", "reads", "submits", "cancels", "tests"),
    [("read", 200, 403, 403, 403), ("submit", 200, 201, 403, 403), ("maintain", 200, 201, 200, 202)],
)
def test_token_has_the_permissions_of_its_scope(
    scope: str, reads: int, submits: int, cancels: int, tests: int, is_superuser: bool
) -> None:
    factories.experiment(owner=factories.person("bob"), slug="of-bob")
    client = client_of(factories.person("ada", "maintainer", is_superuser=is_superuser), scope=scope)
    cluster = Cluster.objects.get(slug="testbed")
    assert client.get(f"{EXPERIMENTS}of-bob/").status_code == reads
    assert client.post(EXPERIMENTS, written(), content_type="application/json").status_code == submits
    assert client.post(f"{EXPERIMENTS}of-bob/cancel/").status_code == cancels
    assert client.post(f"/api/v1/clusters/{cluster.slug}/test/").status_code == tests


def test_it_never_does_more_than_its_owner() -> None:
    experiment = factories.experiment()
    client = client_of(factories.person("ada", "viewer"), scope="maintain")
    assert client.post(EXPERIMENTS, written(), content_type="application/json").status_code == 403
    assert client.post(f"{EXPERIMENTS}{experiment.slug}/cancel/").status_code == 403


@pytest.mark.parametrize("is_superuser", [False, True])
def test_it_sees_its_own_project_alone(is_superuser: bool) -> None:
    factories.experiment(slug="of-default")
    optics = Project.objects.create(slug="optics", name="Optics")
    trial = factories.experiment(project=optics, slug="of-optics").trials.first()
    assert trial is not None
    user = factories.person("ada", "maintainer", is_superuser=is_superuser)
    Membership.objects.create(user=user, project=optics, role="maintainer")
    client = client_of(user, project=optics)
    assert [e["slug"] for e in client.get(EXPERIMENTS, {"published": "false"}).json()["results"]] == [
        "optics--of-optics"
    ]
    assert client.get(f"{EXPERIMENTS}of-default/").status_code == 404
    assert client.get(f"{TRIALS}{trial.pk}/").status_code == 200
    assert client.post(f"{EXPERIMENTS}?project=default", written(), content_type="application/json").status_code == 403
    assert client.post(f"{EXPERIMENTS}?project=optics", written(), content_type="application/json").status_code == 201
    # What all projects share is not one project's to change.
    assert client.post("/api/v1/clusters/testbed/test/").status_code == 403


def test_it_is_refused_after_its_time() -> None:
    assert client_of(factories.person("ada", "viewer"), days=0).get(EXPERIMENTS).status_code == 401


def test_it_sees_and_ends_itself_alone() -> None:
    user = factories.person("ada", "viewer")
    ApiToken.issue(user, "another")
    client = client_of(user, scope="read")
    tokens = client.get(TOKENS).json()["results"]
    assert [(token["name"], token["scope"], token["project"]) for token in tokens] == [("test", "read", None)]
    another = ApiToken.objects.get(name="another")
    assert client.delete(f"{TOKENS}{another.pk}/").status_code == 404
    assert client.delete(f"{TOKENS}{tokens[0]['id']}/").status_code == 204
    assert client.get(TOKENS).status_code == 401


def test_it_shows_all_of_ones_own_tokens_to_a_browser() -> None:
    user, other = factories.person("ada"), factories.person("bob")
    for owner, name in ((user, "a"), (user, "b"), (other, "c")):
        ApiToken.issue(owner, name)
    browser = Client()
    browser.force_login(user)
    assert [token["name"] for token in browser.get(TOKENS).json()["results"]] == ["a", "b"]
    assert browser.delete(f"{TOKENS}{ApiToken.objects.get(name='c').pk}/").status_code == 404


def test_its_project_is_the_default() -> None:
    factories.experiment(slug="of-default")
    optics = Project.objects.create(slug="optics", name="Optics")
    client = client_of(factories.person("ada", "maintainer", project=optics), project=optics)
    made = client.post(EXPERIMENTS, written(), content_type="application/json")
    assert made.status_code == 201
    assert Experiment.objects.latest("pk").project == optics
    assert client.post("/api/v1/validate/", written(), content_type="application/json").status_code == 200
    refused = client.post(f"{EXPERIMENTS}?project=default", written(), content_type="application/json")
    assert "limited to the project 'optics'" in refused.content.decode()
