"""NUL in requests: 400 in a query or a form, 404 in a path."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from experiments.models import Experiment, SavedView
from tests.dashboard.api.clients import client_of
from tests.experiments import factories

QUERIES = [("experiments/", "text"), ("compare/", "of"), ("explore/export/csv/", "where")]


@pytest.mark.parametrize("address", ["/search/?q=nig%00ht", "/search/?q%00=night", "/explore/?where=%00"])
def test_nul_in_the_query_of_a_page_is_refused(page: Client, address: str) -> None:
    assert page.get(address).status_code == 400


def test_nul_in_a_form_is_refused(page: Client) -> None:
    answer = page.post(reverse("view-save"), {"name": "Wi\0de", "query": "y=packets"})
    assert answer.status_code == 400
    assert not SavedView.objects.exists()


@pytest.mark.parametrize(("path", "name"), QUERIES)
def test_nul_in_a_query_of_rest_is_refused_at_its_name(db: None, path: str, name: str) -> None:
    answer = client_of(factories.person("ada", "viewer")).get(f"/api/v1/{path}?{name}=a%00b")
    assert answer.status_code == 400
    assert answer.json()["errors"] == [{"path": name, "message": "Null characters are not allowed."}]


def test_nul_in_a_path_names_nothing(page: Client, person: User, submit: Callable[..., Experiment]) -> None:
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
def test_path_of_nul_alone_is_not_found(page: Client, address: str) -> None:
    assert page.get(address, follow=True).status_code == 404
