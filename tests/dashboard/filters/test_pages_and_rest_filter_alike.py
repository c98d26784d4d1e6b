"""Filters of lists are equal on pages, in REST and in the OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from django.test import Client

from dashboard.filters import ConfigurationFilter, ExperimentFilter, HistoryFilter, ListFilter, TrialFilter
from dashboard.requests.explore import AXES
from experiments.models import Experiment
from tests.dashboard.api.clients import client_of

PAGE = {"limit", "offset"}


@pytest.fixture
def three(submit: Any, person: Any) -> list[Experiment]:
    """One whose trials wait, one with a failed trial, and one of another cluster."""
    waiting = submit(name="Waiting", tags=["night"], repetitions=1)
    failed = submit(name="Failed", repetitions=1)
    failed.trials.update(state="failed")
    elsewhere = submit(name="Elsewhere", sweep={"ranks_per_host": [1, 2]}, cluster="local")
    return [waiting, failed, elsewhere]


def listed(page: Client, **query: str) -> set[str]:
    table = page.get("/experiments/", query).content.decode().partition('id="list"')[2]
    return {slug for slug in Experiment.objects.values_list("slug", flat=True) if f'"/experiments/{slug}/"' in table}


@pytest.mark.parametrize(
    ("on_page", "in_rest"),
    [
        ({"q": "wait"}, {"text": "wait"}),
        ({"q": "night"}, {"text": "night"}),
        ({"source": "own"}, {"published": "false"}),
        ({"source": "published", "workload": "water"}, {"published": "true", "workload": "water"}),
        ({"state": "unfinished"}, {"state": "unfinished"}),
        ({"state": "failed"}, {"state": "failed"}),
        ({"state": "over", "source": "own"}, {"state": "over", "published": "false"}),
        ({"tag": "night"}, {"tag": "night"}),
        ({"cluster": "local"}, {"cluster": "local"}),
        ({"owner": "okafor", "project": "default"}, {"owner": "okafor", "project": "default"}),
        ({"source": "own", "created_after": "2999-01-01"}, {"published": "false", "created_after": "2999-01-01"}),
    ],
)
def test_it_lists_the_same_experiments(
    three: list[Experiment], page: Client, person: Any, on_page: Mapping[str, str], in_rest: Mapping[str, str]
) -> None:
    data = client_of(person).get("/api/v1/experiments/", {**in_rest, "limit": "25"}).json()["results"]
    assert listed(page, **on_page) == {experiment["slug"] for experiment in data}


@pytest.mark.parametrize("query", [{"state": "tired"}, {"workload": "fire"}, {"created_after": "soon"}])
def test_invalid_filter_shows_an_error_and_no_rows(
    three: list[Experiment], page: Client, query: dict[str, str]
) -> None:
    assert listed(page, **query) == set()
    html = page.get("/experiments/", query).content.decode()
    assert 'role="alert"' in html
    assert 'aria-invalid="true"' in html


@pytest.mark.parametrize(
    ("address", "name"),
    [("/api/v1/experiments/", "published"), ("/api/v1/trials/", "superseded"), ("/api/v1/history/", "flagged")],
)
def test_rest_takes_nothing_but_true_and_false(person: Any, address: str, name: str) -> None:
    answer = client_of(person).get(address, {name: "maybe"})
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["path"] == name
    for text in ("true", "False", "1", "0"):
        assert client_of(person).get(address, {name: text}).status_code == 200


@pytest.mark.parametrize(
    ("address", "names"),
    [
        ("/experiments/", ["q", "workload", "state", "source", "archived"]),
        ("/history/", ["text", "workload", "cluster", "flagged"]),
    ],
)
def test_it_draws_the_filters_of_the_page(page: Client, address: str, names: list[str]) -> None:
    form = re.search(r"<form[^>]*panel filters.*?</form>", page.get(address).content.decode(), re.DOTALL)
    assert form is not None
    drawn = dict.fromkeys(re.findall(r' name="(\w+)"', form[0]))
    assert [name for name in drawn if name != "columns"] == names


def test_form_shows_further_filters_of_the_query_string(page: Client) -> None:
    html = page.get("/experiments/", {"owner": "okafor", "cluster": "elsewhere", "q": "a & b"}).content.decode()
    assert re.search(r'name="owner" value="okafor"', html)
    assert re.search(r'<option value="elsewhere" selected>', html)
    assert re.search(r'name="q" value="a &amp; b"', html)


@pytest.mark.parametrize(
    ("address", "filters", "others"),
    [
        ("/api/v1/experiments/", ExperimentFilter, {*PAGE, "cursor", "fields"}),
        ("/api/v1/trials/", TrialFilter, {*PAGE, "cursor", "fields", "metrics"}),
        ("/api/v1/history/", HistoryFilter, PAGE),
        ("/api/v1/explore/", ConfigurationFilter, set(AXES)),
        ("/api/v1/explore/export/{form}/", ConfigurationFilter, {*AXES, "form", "rows", "every"}),
    ],
)
def test_it_documents_every_filter(person: Any, address: str, filters: type[ListFilter], others: set[str]) -> None:
    schema = client_of(person).get("/api/v1/schema/").json()
    parameters = schema["paths"][address]["get"]["parameters"]
    assert {parameter["name"] for parameter in parameters} == {*filters.base_filters, *others}
    assert all(parameter.get("description") for parameter in parameters if parameter["name"] in filters.base_filters)
