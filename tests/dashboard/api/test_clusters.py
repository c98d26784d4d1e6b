"""REST: clusters with facts and last test, workloads with parameters."""

from __future__ import annotations

import pytest
from django.test import Client
from jsonschema import Draft202012Validator

from experiments import workloads
from experiments.models import Cluster, ClusterTest
from tests.dashboard.api.clients import client_of
from tests.experiments import factories

pytestmark = pytest.mark.django_db
CLUSTERS, WORKLOADS = "/api/v1/clusters/", "/api/v1/workloads/"
RACK = {"hosts": ["n1", "n2"], "environment": {"LICENCE": "s3cret"}}


@pytest.fixture
def viewer() -> Client:
    viewer = client_of(factories.person("ada", "viewer"))
    Cluster.objects.create(slug="rack", name="Rack", kind="ssh", settings=RACK, facts={"hosts": 2, "clock_hz": 3e9})
    return viewer


def test_clusters_are_listed_with_facts_and_waiting_trials(viewer: Client) -> None:
    factories.experiment()
    factories.finished()
    rows = {row["slug"]: row for row in viewer.get(CLUSTERS).json()["results"]}
    assert set(rows) == {"local", "rack", "testbed"}
    assert rows["rack"]["facts"] == {"hosts": 2, "clock_hz": 3e9}
    assert (rows["rack"]["kind"], rows["rack"]["most_hosts"], rows["rack"]["state"]) == ("ssh", 2, "ready")
    assert (rows["testbed"]["finished"], rows["testbed"]["queued"]) == (1, 3)
    assert rows["rack"]["test"] is None


def test_settings_are_visible_only_with_permission(viewer: Client) -> None:
    answer = viewer.get(f"{CLUSTERS}rack/")
    assert answer.json()["settings"] is None
    assert "s3cret" not in answer.content.decode()
    root = client_of(factories.person("root", is_superuser=True))
    assert root.get(f"{CLUSTERS}rack/").json()["settings"] == RACK


def test_misconfigured_cluster_is_listed_with_its_errors(viewer: Client) -> None:
    Cluster.objects.filter(slug="rack").update(settings={"host": ["n1"]})
    row = viewer.get(f"{CLUSTERS}rack/").json()
    assert (row["state"], row["most_hosts"]) == ("wrong", None)
    assert row["settings_errors"] == ["hosts: is missing", "host: is not a known field; did you mean hosts?"]


def test_maintainer_tests_a_cluster_and_reads_the_result(viewer: Client) -> None:
    assert viewer.post(f"{CLUSTERS}rack/test/").status_code == 403
    maintainer = client_of(factories.person("bob", "maintainer"))
    answer = maintainer.post(f"{CLUSTERS}rack/test/")
    assert (answer.status_code, answer.json()["test"]["ended_at"]) == (202, None)
    test = ClusterTest.begin(Cluster.objects.get(slug="rack"), "host:1:1")
    assert test is not None
    step = {"name": "Reach", "state": "problem", "value": "1 of 2 failed", "seen": "n2", "remedy": "", "commands": []}
    test.end([step])
    data = maintainer.get(f"{CLUSTERS}rack/").json()["test"]
    assert data["steps"] == [step]
    assert data["ended_at"] is not None
    assert viewer.get(f"{CLUSTERS}rack/").json()["test"]["steps"] == [{**step, "seen": ""}]
    assert maintainer.post(f"{CLUSTERS}moon/test/").status_code == 404


def test_every_workload_has_a_schema_of_its_parameters(viewer: Client) -> None:
    for workload in viewer.get(WORKLOADS).json()["results"]:
        data = workload["parameters_schema"]
        assert data["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        Draft202012Validator.check_schema(data)
        assert set(data["properties"]) == {parameter["name"] for parameter in workload["parameters"]}
        validator = Draft202012Validator(data)
        definition = workloads.find(workload["slug"])
        assert definition is not None
        assert validator.is_valid(definition.parameters_type().model_dump(mode="json"))
        assert not validator.is_valid({"nonsense": 1})
    water = Draft202012Validator(viewer.get(f"{WORKLOADS}water/").json()["parameters_schema"])
    assert [water.is_valid({"steps": steps}) for steps in (50, -3, "many")] == [True, False, False]
