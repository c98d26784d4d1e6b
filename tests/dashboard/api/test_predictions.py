"""REST: predictions are stored, listed, checked and exported."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from dashboard.api.experiments.result import experiment_result
from dashboard.panels.network.table import COLUMNS
from experiments.models import Experiment, Prediction
from tests.dashboard.api.clients import client_of
from tests.dashboard.studies_measured import needs
from tests.experiments import factories

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]
PREDICTIONS = "/api/v1/predictions/"


@pytest.fixture
def study() -> Experiment:
    return needs()


def request_body(study: Experiment, **changes: Any) -> dict[str, Any]:
    return {"experiment": study.slug, "delay_s": 0.35e-3, "rate_bps": 700e6, **changes}


def test_it_keeps_checks_lists_and_exports(study: Experiment) -> None:
    client = client_of(factories.person("ada", "maintainer"))
    answer = client.post(PREDICTIONS, request_body(study, check=True), content_type="application/json")
    assert answer.status_code == 201, answer.content
    data = answer.json()
    assert (data["check"]["waiting"], data["check"]["inside"], len(data["evidence"])) == (2, None, 20)
    assert data["low_s"] < data["value_s"] < data["high_s"]
    assert data["page"] == f"/network/predictions/{data['id']}/"
    assert client.get(answer.headers["Location"]).json() == data
    listed = client.get(PREDICTIONS, {"experiment": study.slug, "workload": "water"}).json()
    assert listed["results"] == [data]
    assert client.get(PREDICTIONS, {"experiment": "another"}).json()["count"] == 0
    assert client.get(PREDICTIONS, {"experimnt": study.slug}).status_code == 400
    again = client.post(f"{PREDICTIONS}{data['id']}/check/")
    assert (again.status_code, again.json()["errors"][0]["path"]) == (400, "check")
    exported = experiment_result(study)["predictions"]
    assert [(row["id"], row["value_s"]) for row in exported] == [(data["id"], data["value_s"])]


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"rate_bps": 1e10, "check": True}, "check"),
        ({"loss": 0.01}, "loss"),
        ({"delay_s": "nan"}, "delay_s"),
        ({"rate_bps": 10.0}, "rate_bps"),
        ({"at": "3 hosts"}, "at"),
        ({"experiment": "another"}, "experiment"),
    ],
)
def test_it_refuses_at_the_field_and_keeps_nothing(study: Experiment, changes: dict[str, Any], path: str) -> None:
    client = client_of(factories.person("ada", "maintainer"))
    answer = client.post(PREDICTIONS, request_body(study, **changes), content_type="application/json")
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (400, path)
    assert not Prediction.objects.exists()


@pytest.mark.parametrize(
    ("role", "scope", "keeps", "checks"),
    [("viewer", "maintain", 403, 403), ("submitter", "submit", 201, 403), ("maintainer", "read", 403, 403)],
)
def test_it_keeps_to_role_and_scope(study: Experiment, role: str, scope: str, keeps: int, checks: int) -> None:
    client = client_of(factories.person("ada", role), scope=scope)
    prediction = factories.prediction(study)
    assert client.get(f"{PREDICTIONS}{prediction.pk}/").status_code == 200
    assert client.post(PREDICTIONS, request_body(study), content_type="application/json").status_code == keeps
    checking = client.post(PREDICTIONS, request_body(study, check=True), content_type="application/json")
    assert checking.status_code == checks
    assert client.post(f"{PREDICTIONS}{prediction.pk}/check/").status_code == checks


def test_its_list_leaves_as_csv_as_it_is_filtered(study: Experiment) -> None:
    client = client_of(factories.person("ada", "viewer"), scope="read")
    prediction = factories.prediction(study)
    (row,) = csv.DictReader(io.StringIO(client.get(f"{PREDICTIONS}export/").getvalue().decode()))
    assert (row["id"], float(row["value_s"]), row["measured_s"]) == (str(prediction.pk), prediction.value_s, "")
    other = client.get(f"{PREDICTIONS}export/", {"workload": "hpl"}).getvalue().decode()
    assert other.splitlines() == [",".join(COLUMNS)]
    assert client.get(f"{PREDICTIONS}export/", {"worklaod": "hpl"}).status_code == 400
    stranger = client_of(factories.person("eve", None)).get(f"{PREDICTIONS}export/")
    assert len(stranger.getvalue().splitlines()) == 1
