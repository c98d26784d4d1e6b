"""REST: programs are registered and replaced by maintainers."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from experiments import workloads
from experiments.models import Experiment, Project
from tests.dashboard.api.clients import client_of
from tests.experiments import factories

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("registered_programs")]
PROGRAMS = "/api/v1/programs/"
SOLVER: dict[str, Any] = {
    "name": "solver",
    "program": ["/opt/solver", "in.deck"],
    "placeholders": {"steps": {"type": "integer", "default": 10}},
    "inputs": {"in.deck": "run {steps}\n"},
}


@pytest.fixture
def maintainer() -> Client:
    return client_of(factories.person("mia", "maintainer"))


def put(client: Client, name: str, definition: Any) -> Any:
    return client.put(f"{PROGRAMS}{name}/", definition, content_type="application/json")


def test_it_registers_a_program_and_its_next_version(maintainer: Client) -> None:
    answer = maintainer.post(PROGRAMS, SOLVER, content_type="application/json")
    assert (answer.status_code, answer.json()["version"]) == (201, 1)
    assert answer["Location"] == answer.json()["url"]
    assert workloads.find("solver") is not None
    again = put(maintainer, "solver", {**SOLVER, "environment": {"MODE": "fast"}})
    assert (again.status_code, again.json()["version"]) == (200, 2)
    assert (
        put(maintainer, "solver", {**SOLVER, "environment": {"MODE": "fast"}, "success": "done"}).json()["version"] == 2
    )
    (row,) = maintainer.get(PROGRAMS).json()["results"]
    assert (row["name"], row["version"], row["definition"]["success"]) == ("solver", 2, "done")
    assert maintainer.get(f"{PROGRAMS}solver/").json() == row


def test_errors_of_yaml_have_lines(maintainer: Client) -> None:
    text = "name: solver\nprogram: [/opt/solver]\nkeep: ['/etc/*']\n"
    answer = maintainer.post(PROGRAMS, text, content_type="application/yaml")
    assert answer.status_code == 400
    (error,) = answer.json()["errors"]
    assert (error["path"], error["line"]) == ("keep", 3)
    assert (
        maintainer.post(PROGRAMS, text.replace("/etc/*", "*.log"), content_type="application/yaml").status_code == 201
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("environment", {"X; touch /tmp/found; Y": "1"}),
        ("environment", {"OMP_NUM_THREADS": "1"}),
        ("environment", {"X": "a\nb"}),
        ("modules", ["gcc; touch /tmp/found"]),
        ("modules", ["--force"]),
        ("container", "--writable"),
        ("binary", "-x"),
        ("binary", "{steps}"),
    ],
)
def test_settings_of_one_cluster_are_validated(maintainer: Client, field: str, value: Any) -> None:
    definition = {**SOLVER, "clusters": {"local": {field: value}}}
    answer = maintainer.post(PROGRAMS, definition, content_type="application/json")
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["path"].startswith(f"clusters.local.{field}")


@pytest.mark.parametrize(
    ("field", "value"),
    [("inputs", {"in.deck\n": "x"}), ("decks", {"in.deck\n": "/x"}), ("placeholders", {"steps\n": {}})],
)
def test_it_refuses_names_that_end_in_a_new_line(maintainer: Client, field: str, value: Any) -> None:
    answer = maintainer.post(PROGRAMS, {**SOLVER, field: value}, content_type="application/json")
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["path"].startswith(field)


def test_rename_and_unknown_programs_are_refused(maintainer: Client) -> None:
    maintainer.post(PROGRAMS, SOLVER, content_type="application/json")
    renamed = put(maintainer, "solver", {**SOLVER, "name": "other"})
    assert renamed.json()["errors"] == [{"path": "name", "message": "a registered program keeps its name"}]
    assert put(maintainer, "moon", {**SOLVER, "name": "moon"}).status_code == 404
    assert put(maintainer, "solver", ["no mapping"]).status_code == 400


def test_only_maintainers_register_and_read_definitions(maintainer: Client) -> None:
    maintainer.post(PROGRAMS, SOLVER, content_type="application/json")
    submitter = client_of(factories.person("sam", "submitter"))
    assert submitter.post(PROGRAMS, SOLVER, content_type="application/json").status_code == 403
    assert put(submitter, "solver", SOLVER).status_code == 403
    assert submitter.get(f"{PROGRAMS}solver/").json()["definition"] is None


def test_programs_of_other_projects_cannot_be_changed(maintainer: Client) -> None:
    """Their experiments run its next version, and its parser changes results."""
    maintainer.post(PROGRAMS, SOLVER, content_type="application/json")
    optics = Project.objects.create(slug="optics", name="Optics")
    other = client_of(factories.person("noor", "maintainer", optics))
    changed = {**SOLVER, "success": "done"}
    assert put(other, "solver", changed).status_code == 200  # no experiment uses it yet
    experiment = factories.experiment(workload="solver", parameters={})
    for answer in (put(other, "solver", SOLVER), other.post(PROGRAMS, SOLVER, content_type="application/json")):
        assert answer.status_code == 400
        (error,) = answer.json()["errors"]
        assert (error["path"], error["message"].split(";")[0]) == (
            "name",
            "is registered already and used by experiments of projects that you do not maintain",
        )
    yaml = other.post(PROGRAMS, "name: solver\nprogram: [/opt/solver]\n", content_type="application/yaml")
    assert (yaml.status_code, yaml.json()["errors"][0]["line"]) == (400, 1)
    assert maintainer.get(f"{PROGRAMS}solver/").json()["definition"]["success"] == "done"
    Experiment.objects.filter(pk=experiment.pk).update(project=optics)
    assert put(other, "solver", SOLVER).status_code == 200  # all of its experiments are in the own project
    assert put(maintainer, "solver", changed).status_code == 200  # who registered it
    assert put(client_of(factories.person("root", is_superuser=True)), "solver", SOLVER).status_code == 200
