"""Addresses that no template makes follow the path of a site too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.http import HttpResponse
from django.test import RequestFactory
from django.urls import get_script_prefix, set_script_prefix
from django.views import defaults

from dashboard.api.rest.errors import server_error
from experiments.models import BackgroundTask, Experiment, Prediction, Report, SavedView, Trial


@pytest.fixture
def below_a_path() -> Iterator[None]:
    before = get_script_prefix()
    set_script_prefix("/lab/")
    yield
    set_script_prefix(before)


def test_rows_know_their_pages(below_a_path: None) -> None:
    rows = (Experiment(slug="water"), *(kind(pk=7) for kind in (Trial, SavedView, Prediction, BackgroundTask, Report)))
    assert [row.get_absolute_url() for row in rows] == [
        "/lab/experiments/water/",
        "/lab/trials/7/",
        "/lab/views/7/",
        "/lab/network/predictions/7/",
        "/lab/tasks/7/",
        "/lab/reports/7/",
    ]


def test_the_page_of_a_server_error_links_to_home(below_a_path: None) -> None:
    text = defaults.server_error(RequestFactory().get("/")).content.decode()
    assert '<a href="/lab/">' in text


def test_a_server_error_of_rest_is_json_below_a_path(below_a_path: None) -> None:
    request = RequestFactory(SCRIPT_NAME="/lab").get("/lab/api/v1/trials/")
    request.path, request.path_info = "/lab/api/v1/trials/", "/api/v1/trials/"
    answer: HttpResponse = server_error(request)
    assert answer.headers["Content-Type"] == "application/problem+json"
