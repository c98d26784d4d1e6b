"""REST and exports have certificate and trust beside their numbers."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pyarrow.parquet
import pytest
from django.test import Client

from experiments.models import Trial
from tests.dashboard.api.clients import EXPERIMENTS, TRIALS, client_of
from tests.experiments import factories

pytestmark = pytest.mark.django_db
OUTSIDE: dict[str, Any] = {
    "kept": False,
    "reasons": ["the delay from n1 to n2 is 9 ms instead of 4 ms (tolerance 5 % or 0.3 ms)"],
    "rows": [
        {"source": "n1", "target": "n2", "quantity": "delay", "unit": "s", "asked": 0.004, "achieved": 0.009},
        {"source": "n2", "target": "n1", "quantity": "delay", "unit": "s", "asked": 0.004, "achieved": 0.005},
        {"source": "n1", "target": "n2", "quantity": "loss", "unit": "", "asked": 0.0, "achieved": 0.0},
    ],
}
KEPT = {"kept": True, "rows": [{**OUTSIDE["rows"][0], "achieved": 0.004}]}


@pytest.fixture
def trial() -> Trial:
    """Two configurations of two trials: one link failed, one passed, two unknown."""
    factories.experiment()
    trials = sorted((factories.finished() for _ in range(4)), key=lambda trial: (trial.configuration_id, trial.pk))
    for trial, trust, certificate in zip(trials[:2], ("degraded", "good"), (OUTSIDE, KEPT), strict=True):
        Trial.objects.filter(pk=trial.pk).update(trust=trust, certificate=certificate)
    return trials[0]


@pytest.fixture
def client() -> Client:
    return client_of(factories.person("ada", "viewer"))


def test_it_gives_rest_the_certificate_with_the_trial_and_with_the_result(trial: Trial, client: Client) -> None:
    detail = client.get(f"{TRIALS}{trial.pk}/").json()
    assert (detail["certificate"], detail["trust"]) == (OUTSIDE, "degraded")
    result = client.get(f"{EXPERIMENTS}{trial.experiment.slug}/result/").json()
    reported = {each["id"]: each for each in result["trials"]}
    assert (reported[trial.pk]["certificate"], reported[trial.pk]["trust"]) == (OUTSIDE, "degraded")
    assert {each["certificate"] is None for each in reported.values()} == {True, False}


def test_the_explorers_exports_tell_the_worst_trust_and_the_achieved_link(trial: Trial, client: Client) -> None:
    reported = {
        form: b"".join(client.get(f"/api/v1/explore/export/{form}/", {"columns": "elapsed_s"}))
        for form in ("csv", "json", "parquet")
    }
    rows = {row["configuration"]: row for row in json.loads(reported["json"])}
    row = rows.pop(trial.configuration_id)
    assert (row["trust"], row["link_kept"]) == ("degraded", False)
    assert row["achieved.link.delay"] == pytest.approx((0.007 + 0.004) / 2)  # of a mean of two ways, and of one way
    assert (row["achieved.link.loss"], row["achieved.link.bandwidth"]) == (0.0, None)
    (other,) = rows.values()
    assert (other["trust"], other["link_kept"], other["achieved.link.delay"]) == ("good", None, None)
    table = {r["configuration"]: r for r in pyarrow.parquet.read_table(io.BytesIO(reported["parquet"])).to_pylist()}
    assert table[trial.configuration_id]["link_kept"] is False
    assert table[trial.configuration_id]["achieved.link.delay"] == row["achieved.link.delay"]
    text = {int(r["configuration"]): r for r in csv.DictReader(io.StringIO(reported["csv"].decode()))}
    assert text[trial.configuration_id]["trust"] == "degraded"
    assert text[other["configuration"]]["link_kept"] == ""
