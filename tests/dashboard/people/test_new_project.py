"""Projects are made, named and limited by superusers, on pages of their own."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.models import Project
from tests.experiments import factories


@pytest.fixture
def root(page: Client, person: User) -> Client:
    User.objects.filter(pk=person.pk).update(is_superuser=True)
    return page


def test_it_gets_an_address_of_its_own_and_a_maintainer(root: Client) -> None:
    ada = factories.person("ada")
    for name, expected in (("TU Graz: HPC", "tu-graz-hpc"), ("TU Graz, HPC", "tu-graz-hpc-2")):
        answer = root.post("/projects/", {"name": name, "maintainer": "ada"})
        assert answer.url == f"/projects/{expected}/"
        assert Project.objects.get(slug=expected).memberships.get(user=ada).role == "maintainer"
    assert Project.create_named("測").slug == "project"


@pytest.mark.parametrize("wrong", [{"name": ""}, {"name": "!!!"}, {"name": "x" * 121}, {"maintainer": "absent"}])
def test_invalid_values_are_refused(root: Client, wrong: dict[str, str]) -> None:
    before = Project.objects.count()
    answer = root.post("/projects/", {"name": "Lab", "maintainer": "okafor", **wrong})
    assert (answer.status_code, Project.objects.count()) == (422, before)
    assert 'class="err"' in answer.content.decode()
    assert ("Create account" in answer.content.decode()) == ("maintainer" in wrong)


def test_its_name_and_quotas_are_changed(root: Client) -> None:
    form = {"settings-name": "Wing", "settings-most_queued_trials": "100", "settings-most_disk_gib": ""}
    root.post("/projects/default/settings/", form)
    project = Project.objects.get(slug="default")
    assert (project.name, project.most_queued_trials, project.most_disk_gib) == ("Wing", 100, None)
    wrong = root.post("/projects/default/settings/", {**form, "settings-most_queued_trials": "-1"})
    assert wrong.status_code == 422
    assert wrong.context["settings_form"].errors == {"most_queued_trials": ["Write 0 or more."]}
    wrong = root.post("/projects/default/settings/", {**form, "settings-most_queued_trials": str(2**31)})
    assert wrong.context["settings_form"].errors == {"most_queued_trials": ["Too large. Write 0 for no limit."]}


@pytest.mark.parametrize(
    ("files", "captures", "status"), [("5", "6", 422), ("5", "5", 302), ("0", "6", 302), ("5", "0", 302)]
)
def test_captures_are_limited_by_the_files(root: Client, files: str, captures: str, status: int) -> None:
    form = {"settings-name": "Wing", "settings-most_disk_gib": files, "settings-most_capture_gib": captures}
    answer = root.post("/projects/default/settings/", form)
    assert answer.status_code == status
    if status == 422:
        assert list(answer.context["settings_form"].errors) == ["most_capture_gib"]


def test_names_of_projects_are_unique_on_their_pages(root: Client) -> None:
    name = Project.objects.get(slug="default").name
    answer = root.post("/projects/", {"name": name.upper(), "maintainer": "okafor"})
    assert (answer.status_code, "Another project has this name." in answer.content.decode()) == (422, True)
    Project.create_named("Wing")
    assert root.post("/projects/wing/settings/", {"settings-name": name}).status_code == 422
    assert root.post("/projects/wing/settings/", {"settings-name": "wing"}).status_code == 302


def test_quotas_of_projects_with_equal_names_are_changed(root: Client) -> None:
    for _ in range(2):
        project = Project.create_named("Wing")
    form = {"settings-name": "Wing", "settings-most_queued_trials": "100"}
    assert root.post(f"/projects/{project.slug}/settings/", form).status_code == 302
    project.refresh_from_db()
    assert project.most_queued_trials == 100


def test_hints_of_quotas_name_the_limits_of_the_installation(root: Client, settings: Any) -> None:
    settings.QUOTA_QUEUED_TRIALS, settings.QUOTA_DISK_GIB = 12_345, 0
    page = root.get("/projects/default/").content.decode()
    assert "the limit of the installation (12\u202f345); 0: no limit" in page
    assert "the limit of the installation (none); 0: no limit" in page


def test_a_member_reads_the_number_of_all_members(page: Client, person: User, submit) -> None:
    project = submit().project
    for name in ("ada", "ben"):
        project.memberships.create(user=factories.person(name), role="viewer")
    ((row, _),) = page.get("/projects/").context["rows"]
    assert (row, row.members) == (project, project.memberships.count())
