"""REST: findings, diagnosis, result and certificate match the schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from drf_spectacular.generators import SchemaGenerator

from experiments.models import Experiment, Trial
from tests.dashboard.api.answers.judging import errors
from tests.dashboard.api.clients import EXPERIMENTS, TRIALS, client_of
from tests.experiments import factories
from workers.testbed.certificate import Certificate
from workers.testbed.verdict import CertificateRow

pytestmark = pytest.mark.usefixtures("empty_redis")
STUDIES = ("eadline-2006-hpl", "guster-2007-water", "monarc-1999-readers", "pinning-2007-wan", "york-staging")
ROW = CertificateRow("n1", "n2", "bandwidth", "bit/s", 1e9, 9.57e8, (9.5e8, 9.6e8), "5 %", kept=True)


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    data: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    return data


@pytest.fixture
def client(person: User) -> Client:
    return client_of(person)


def judged(document: dict[str, Any], client: Client, address: str, operation: str) -> Any:
    """Return an answer that is as promised."""
    promised = document["paths"][f"/api/v1/{operation}"]["get"]["responses"]["200"]["content"]["application/json"]
    answer = client.get(address)
    assert answer.status_code == 200, answer.content
    wrong = errors(answer.json(), {"components": document["components"], **promised["schema"]})
    assert not wrong, "\n".join(wrong)
    return answer.json()


def all_of(document: dict[str, Any], client: Client, slug: str) -> tuple[Any, Any]:
    parts = [
        judged(document, client, f"{EXPERIMENTS}{slug}/{part}/", f"experiments/{{slug}}/{part}/")
        for part in ("findings", "diagnosis", "result")
    ]
    return parts[0], parts[1]


@pytest.mark.parametrize("slug", STUDIES)
def test_of_published_studies(document: dict[str, Any], client: Client, slug: str) -> None:
    findings, diagnosis = all_of(document, client, slug)
    assert findings["answer"]["sentence"]
    assert diagnosis["answer"] == findings["answer"]


def test_answers_of_own_experiments(
    document: dict[str, Any], client: Client, submit: Callable[..., Experiment], run: Callable[..., None]
) -> None:
    findings, diagnosis = all_of(document, client, submit(name="Nothing yet").slug)
    assert (findings["answer"]["strength"], diagnosis["slices"][0]["rows"]) == ("open", [])
    experiment = submit(repetitions=3)
    run()
    findings, diagnosis = all_of(document, client, experiment.slug)
    assert findings["findings"]
    assert findings["facts"]
    (part,) = diagnosis["slices"]
    assert len(part["rows"]) == 3
    assert part["models"]["elapsed_s"]["fits"]


def test_of_a_certificate(document: dict[str, Any], client: Client, submit: Callable[..., Experiment]) -> None:
    submit()
    trial = factories.finished()
    data = Certificate(True, (), ("delay",), (ROW,), ({"median_s": 1e-4},), 2, 4.25).to_dict()
    for certificate in (data, {"kept": False, "from_elsewhere": [1]}, None):
        Trial.objects.filter(pk=trial.pk).update(certificate=certificate)
        answer = client.get(f"{TRIALS}{trial.pk}/").json()
        promised = {"components": document["components"], "$ref": "#/components/schemas/TrialDetail"}
        wrong = [each for each in errors(answer, promised) if "from_elsewhere" not in each]
        assert not wrong, "\n".join(wrong)
    assert errors({**answer, "certificate": {**data, "kept": "yes"}}, promised)
