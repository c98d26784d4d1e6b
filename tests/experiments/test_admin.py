"""Django's admin: settings can be edited, measurements only read."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.test import Client
from django.urls import reverse

from experiments.models import ApiToken, Cluster, State, Trial
from tests.experiments import factories

pytestmark = pytest.mark.django_db
READ_ONLY = ("experiment", "trial", "lease")
LISTS = ("project", "cluster", "apitoken", *READ_ONLY)


@pytest.fixture
def client() -> Client:
    client = Client()
    client.force_login(factories.person("admin", is_superuser=True, is_staff=True))
    return client


@pytest.mark.parametrize("name", LISTS)
def test_it_shows_every_list_and_row(client: Client, name: str) -> None:
    ApiToken.issue(factories.person("ada", "viewer"), "laptop")
    factories.experiment()
    factories.claimed()
    row = apps.get_model("experiments", name)._default_manager.first()
    assert row is not None
    assert client.get(f"/admin/experiments/{name}/").status_code == 200
    assert client.get(f"/admin/experiments/{name}/{row.pk}/change/").status_code == 200


@pytest.mark.parametrize("name", READ_ONLY)
@pytest.mark.parametrize("action", ["add", "{pk}/delete"])
def test_it_changes_nothing_that_was_measured(client: Client, name: str, action: str) -> None:
    factories.experiment()
    trial = factories.claimed()
    row = apps.get_model("experiments", name)._default_manager.first()
    assert row is not None
    assert client.post(f"/admin/experiments/{name}/{action.format(pk=row.pk)}/", {"post": "yes"}).status_code == 403
    changed: Any = client.post(f"/admin/experiments/trial/{trial.pk}/change/", {"state": "finished"})
    assert changed.status_code == 403
    assert Trial.objects.get(pk=trial.pk).state == State.PREPARING


def test_it_withdraws_tokens_but_never_makes_or_shows_them(client: Client) -> None:
    token, key = ApiToken.issue(factories.person("ada"), "laptop")
    assert admin.site.is_registered(ApiToken)
    assert client.get("/admin/experiments/apitoken/add/").status_code == 403
    assert key not in client.get(f"/admin/experiments/apitoken/{token.pk}/change/").content.decode()
    client.post(f"/admin/experiments/apitoken/{token.pk}/delete/", {"post": "yes"})
    assert ApiToken.find(key) is None


def test_it_leads_to_the_pages_that_check_changes(client: Client) -> None:
    text = client.get("/admin/").content.decode()
    assert "Django administration" not in text
    for name in ("people", "projects", "clusters", "changes"):
        assert f'href="{reverse(name)}"' in text


def test_staff_learn_of_no_row_beyond_their_permissions() -> None:
    staff, client = factories.person("staff", is_staff=True), Client()
    staff.user_permissions.set(Permission.objects.filter(codename__in=["view_cluster", "change_cluster"]))
    client.force_login(staff)
    experiment = factories.experiment()
    kind = ContentType.objects.get_for_model(experiment).pk
    assert client.get(f"/admin/r/{kind}/{experiment.pk}/").status_code == 404
    Cluster.objects.create(slug="hidden", name="Hidden", kind="testbed", elsewhere=True)
    page = client.get("/admin/experiments/cluster/").content.decode()
    assert ("Hidden" in page, "testbed" in page) == (False, True)


def test_it_leaves_passwords_to_the_pages_that_count_wrong_ones(client: Client) -> None:
    answer: Any = client.get("/admin/password_change/")
    assert (answer.status_code, answer.headers["Location"]) == (302, reverse("account_change_password"))
    assert client.post("/admin/password_change/", {"old_password": "wrong"}).status_code == 302
