"""Permissions to see, submit and cancel."""

from __future__ import annotations

import pytest

from experiments import access
from experiments.models import Experiment, Project, Trial
from tests.experiments import factories
from tests.kept_rows import PUBLISHED_STUDIES

pytestmark = pytest.mark.django_db


def test_members_see_their_projects_and_all_users_published_results() -> None:
    PUBLISHED_STUDIES.restore()
    published = set(Experiment.objects.all())
    mine = factories.experiment()
    other = factories.experiment(project=Project.objects.create(slug="other", name="Other"))
    stranger, member = factories.person("stranger"), factories.person("ada", "viewer")
    factories.person("bob", "submitter")
    admin = factories.person("admin", is_superuser=True)
    assert set(access.visible_experiments(stranger)) == published
    assert sorted(access.visible_experiments(member), key=lambda row: row.pk) == [
        *sorted(published, key=lambda row: row.pk),
        mine,
    ]
    assert set(access.visible_experiments(admin)) == {mine, other, *published}
    assert set(access.visible_trials(member)) == set(Trial.objects.exclude(experiment=other))
    assert set(access.visible_trials(admin)) == set(Trial.objects.all())


@pytest.mark.parametrize(
    ("role", "submits", "cancels_own", "cancels_any"),
    [
        (None, False, False, False),
        ("viewer", False, False, False),
        ("submitter", True, True, False),
        ("maintainer", True, True, True),
        ("superuser", True, True, True),
    ],
)
def test_it_gives_each_role_its_rights(role: str | None, submits: bool, cancels_own: bool, cancels_any: bool) -> None:
    is_superuser = role == "superuser"
    user = factories.person("ada", None if is_superuser else role, is_superuser=is_superuser)
    experiment, foreign = factories.experiment(owner=user), factories.experiment(owner=factories.person("bob"))
    assert access.may_submit(user, experiment.project) is submits
    assert access.may_submit(user, experiment.project, "water") is submits
    assert access.may_cancel(user, experiment) is cancels_own
    assert access.may_cancel(user, foreign) is cancels_any


def test_only_maintainers_submit_workloads_that_name_their_program() -> None:
    submitter, maintainer = factories.person("sue", "submitter"), factories.person("max", "maintainer")
    project = Project.objects.get(slug="default")
    assert not access.may_submit(submitter, project, "command")
    assert access.may_submit(maintainer, project, "command")
    parameters = {"program": "/opt/imb/IMB-MPI1"}
    assert access.may_submit(submitter, project, "imb", {"benchmark": "Bcast"})
    assert not access.may_submit(submitter, project, "imb", parameters)
    assert access.may_submit(maintainer, project, "imb", parameters)
    assert access.projects_for(submitter, "imb", parameters) == []
    assert access.projects_for(submitter, "imb") == [project]
