"""Permissions to see, submit and cancel."""

from __future__ import annotations

import pytest

from experiments import access
from experiments.models import Experiment, Project, Trial
from experiments.specification import parse
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
    assert access.may_submit(user, experiment.project, {"workload": "water"}) is submits
    assert access.may_cancel(user, experiment) is cancels_own
    assert access.may_cancel(user, foreign) is cancels_any


def test_only_maintainers_submit_workloads_that_name_their_program() -> None:
    submitter, maintainer = factories.person("sue", "submitter"), factories.person("max", "maintainer")
    project = Project.objects.get(slug="default")
    command = {"workload": "command"}
    assert not access.may_submit(submitter, project, command)
    assert access.may_submit(maintainer, project, command)
    usual = {"workload": "imb", "parameters": {"benchmark": "Bcast"}}
    own_program = {"workload": "imb", "parameters": {"program": "/opt/imb/IMB-MPI1"}}
    assert access.may_submit(submitter, project, usual)
    assert not access.may_submit(submitter, project, own_program)
    assert access.may_submit(maintainer, project, own_program)
    assert access.projects_for(submitter, own_program) == []
    assert access.projects_for(submitter, usual) == [project]


@pytest.mark.parametrize("words", ["-np 1 /usr/bin/id :", "LD_PRELOAD=/tmp/evil.so", "--mca plm_rsh_agent /tmp/evil",
    "--mca mca_base_component_path /tmp", "UCX_TLS=rc --app /tmp/evil", "UCX_MODULE_DIR=/tmp", "--mca pml --app"])  # fmt: skip
@pytest.mark.parametrize("field", ["transport", "sweep"])
def test_only_maintainers_choose_transports_that_name_programs_or_files(words: str, field: str) -> None:
    submitter, maintainer = factories.person("sue", "submitter"), factories.person("max", "maintainer")
    project = Project.objects.get(slug="default")
    transport = f"mine: {words}"
    chosen = {"transport": transport} if field == "transport" else {"sweep": {"transport": [transport]}}
    specification = parse({"name": "x", "workload": "water", **chosen}, max_trials=100).to_dict()
    assert access.restricted_field(specification) == "transport"
    assert not access.may_submit(submitter, project, specification)
    assert access.may_submit(maintainer, project, specification)
    experiment = factories.experiment(owner=submitter)
    experiment.specification = specification
    assert not access.may_run_more(submitter, experiment)


def test_submitters_choose_among_the_components_of_installed_libraries() -> None:
    swept = ["native", "tcp", "ucx: UCX_TLS=rc,self UCX_NET_DEVICES=mlx5_0:1 --mca pml ucx", "vader: --mca btl ^openib"]
    specification = parse({"name": "x", "workload": "water", "sweep": {"transport": swept}}, max_trials=100).to_dict()
    assert access.restricted_field(specification) is None
    assert access.restricted_field({"workload": "water", "transport": "cluster"}) is None
