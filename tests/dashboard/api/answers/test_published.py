"""REST: published studies with their printed figures."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.library.studies import published_studies
from experiments.models import Measurement
from tests.dashboard.api.clients import client_of
from tests.experiments import factories

PUBLISHED = "/api/v1/published/"


@pytest.fixture
def client(person: User) -> Client:
    return client_of(person)


def test_it_lists_the_studies_with_their_citations(client: Client) -> None:
    data = client.get(PUBLISHED).json()
    studies = {study.slug: study for study in published_studies()}
    assert [row["slug"] for row in data["results"]] == sorted(studies)
    for row in data["results"]:
        study = studies[row["slug"]]
        assert (row["citation"]["title"], row["citation"]["year"]) == (study.source.title, str(study.source.year))
        assert row["configurations"] == len(study.points())
    assert client.get(PUBLISHED, {"limit": 2}).json()["next"]
    assert client.get(PUBLISHED, {"workload": "water"}).status_code == 400


def test_study_has_every_configuration_with_its_printed_figures(
    client: Client, django_assert_max_num_queries: Any
) -> None:
    for study in published_studies():
        with django_assert_max_num_queries(12):
            data = client.get(f"{PUBLISHED}{study.slug}/").json()
        rows = {configuration["configuration"]: configuration for configuration in data["configurations"]}
        assert {key: (row["parameters"], row["figures"]) for key, row in rows.items()} == {
            point.hash: (point.parameters, point.values) for point in study.points()
        }
        assert [table["name"] for table in data["tables"]] == [table.name for table in study.tables]
        assert (data["notes"], data["statements"]) == (study.notes, study.statements)
        printed = {metric for table in study.tables for metric in table.printed_as}
        assert set(data["units"]) == printed
        assert data["units"].get("elapsed_s", "s") == "s"
        assert client.get(data["experiment"]).json()["published"]
    assert Measurement.objects.filter(trial__experiment__published=True).count() > 0


def test_published_studies_are_visible_to_all_users(client: Client) -> None:
    stranger = client_of(factories.person("eve"))
    assert stranger.get(f"{PUBLISHED}guster-2007-water/").status_code == 200
    experiment = factories.experiment()
    assert client.get(f"{PUBLISHED}{experiment.slug}/").status_code == 404
    assert Client().get(PUBLISHED).status_code == 401
