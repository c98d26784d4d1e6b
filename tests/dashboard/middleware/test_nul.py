"""NUL in an address, a query or a form ends before any view: pages pass over it, REST refuses it, an address names nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from experiments.models import Experiment, SavedView
from tests.dashboard.api.clients import client_of
from tests.experiments import factories

# Every view that looks for a word of the query in the database.
PAGES = [
    "/experiments/?q=%00&state=%00&workload=%00",
    "/search/?q=%00",
    "/experiments/new/?workload=%00",
    "/explore/?text=%00&workload=%00&cluster=%00&project=%00&tag=%00&where=%00",
    "/history/?text=%00&workload=%00&cluster=%00",
]
QUERIES = [
    ("experiments/", "text"),
    ("experiments/", "cluster"),
    ("trials/", "configuration"),
    ("compare/", "of"),
    ("explore/", "text"),
    ("explore/export/csv/", "where"),
    ("history/", "text"),
]


@pytest.mark.parametrize("address", PAGES)
def test_in_the_query_of_a_page_it_is_passed_over(page: Client, address: str) -> None:
    assert page.get(address, follow=True).status_code == 200


def test_the_rest_of_a_word_and_of_a_name_it_keeps(page: Client) -> None:
    assert page.get("/search/?q=nig%00ht").url == "/experiments/?q=night"  # type: ignore[attr-defined]
    assert page.get("/search/?q%00=night").url == "/experiments/?q=night"  # type: ignore[attr-defined]


def test_in_the_administration_it_is_passed_over(client: Client, library: Any) -> None:
    client.force_login(User.objects.create_superuser("root"))
    assert client.get("/admin/experiments/experiment/?q=wat%00er").status_code == 200
    assert client.get("/admin/experiments/experiment/?slug__exact=%00", follow=True).status_code == 200


def test_in_a_form_it_is_passed_over(page: Client) -> None:
    page.post(reverse("view-save"), {"name": "Wi\0de", "query": "y=pack\0ets", "shared\0": "on"})
    assert SavedView.objects.values_list("name", "query", "shared").get() == ("Wide", "y=packets", True)


@pytest.mark.parametrize(("place", "name"), QUERIES)
def test_in_a_query_of_rest_it_is_refused_at_its_name(db: None, place: str, name: str) -> None:
    answer = client_of(factories.person("ada", "viewer")).get(f"/api/v1/{place}?{name}=a%00b")
    assert answer.status_code == 400
    assert answer.json()["errors"] == [{"path": name, "message": "Null characters are not allowed."}]
    assert answer.json()["detail"] == f"{name}: Null characters are not allowed."


def test_in_an_address_it_names_nothing(page: Client, person: User, submit: Callable[..., Experiment]) -> None:
    submit()
    trial = factories.analysing()
    trial.finish(factories.RESULT)
    file = factories.stored_file(trial)
    file.save()
    assert page.get(f"/trials/{trial.pk}/files/{file.name}").status_code == 200
    for name in ("%00", f"{file.name}%00", f"%00{file.name}"):
        assert page.get(f"/trials/{trial.pk}/files/{name}").status_code == 404
        answer = client_of(person).get(f"/api/v1/trials/{trial.pk}/artifacts/{name}/")
        assert (answer.status_code, answer["Content-Type"]) == (404, "application/problem+json")


@pytest.mark.parametrize("address", ["/%00", "/experiments/%00/", "/explore/export.%00", "/static/%00"])
def test_an_address_of_it_alone_is_not_there(page: Client, address: str) -> None:
    assert page.get(address, follow=True).status_code == 404
