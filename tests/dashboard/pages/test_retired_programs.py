"""Programs are renamed, retired, restored and deleted on their page."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from dashboard.pages.new import form_context
from experiments import registered, workloads
from experiments.errors import InvalidSpec
from experiments.models import Deleted, Program, Project, Trial
from experiments.models.program import read_definition
from experiments.specification import parse
from tests.dashboard.api.clients import client_of
from tests.dashboard.texts import text_of
from tests.experiments import factories

pytestmark = pytest.mark.usefixtures("registered_programs")
HEAT = {
    "name": "heat",
    "program": ["/opt/heat", "{n}"],
    "placeholders": {"n": {"default": 10}},
    "extract": [{"name": "time_s", "unit": "s", "regex": r"(\S+) s"}],
}
RETIRE, RENAME, DELETE = (reverse(f"program-{name}", args=["heat"]) for name in ("retire", "rename", "delete"))
PAGE = reverse("workload", args=["heat"])


@pytest.fixture
def maintainer(page, person):
    person.memberships.update(role="maintainer")
    Program.register(HEAT, author=person)
    return page


@pytest.fixture
def used(maintainer, submit):
    return submit(name="Heat", workload="heat", parameters={}, sweep={"n": [10, 20]})


def listed(client, group="rows"):
    return [row["workload"].slug for row in client.get(reverse("workloads")).context[group]]


def offered(client):
    return [workload.slug for workload, _ in client.get(reverse("new")).context["workloads"]]


def test_a_new_title_makes_no_version_and_reaches_earlier_experiments(maintainer, used, monkeypatch):
    monkeypatch.setattr("workers.queue.read_again", lambda experiment: pytest.fail("no output is read again"))
    assert maintainer.post(RENAME, {"title": " Heat equation "}).url == PAGE
    assert Program.latest("heat").version == 1
    assert maintainer.get(PAGE).context["workload"].title == "Heat equation"
    assert "Heat equation" in text_of(maintainer.get(used.get_absolute_url()))
    maintainer.post(RENAME, {"title": ""})
    assert maintainer.get(PAGE).context["workload"].title == "heat"


def test_a_title_that_is_too_long_is_refused_with_its_reason(maintainer):
    response = maintainer.post(RENAME, {"title": "x" * 81}, follow=True)
    assert "Not renamed: title" in text_of(response)
    assert Program.latest("heat").definition == read_definition(HEAT).to_dict()


def test_a_retired_program_leaves_the_form_and_its_experiments_stay(maintainer, used, submit):
    assert "heat" in offered(maintainer)
    assert maintainer.post(RETIRE).url == PAGE
    assert "heat" not in offered(maintainer)
    assert ("heat" in listed(maintainer), listed(maintainer, "retired")) == (False, ["heat"])
    assert maintainer.get(used.get_absolute_url()).status_code == 200
    assert maintainer.get(used.trials.first().get_absolute_url()).status_code == 200
    assert used.add_repetitions(1) > 0
    with pytest.raises(InvalidSpec) as refused:
        submit(name="Again", workload="heat", parameters={}, sweep={"n": [30]})
    assert refused.value.by_path().keys() == {"workload"}
    clone = maintainer.get(f"{reverse('new')}?from={used.slug}").context
    assert clone["preview"] is None
    assert "heat" in [workload.slug for workload, _ in clone["workloads"]]
    assert "restore it on its page" in text_of(maintainer.get(f"{reverse('new')}?from={used.slug}"))
    edited = maintainer.get(reverse("experiment-edit", args=[used.slug])).context
    assert edited["preview"] is not None, "an experiment that has used it can be edited"


def test_a_restored_program_is_offered_again(maintainer, used, submit):
    maintainer.post(RETIRE)
    page = maintainer.get(PAGE)
    assert 'name="restore"' in page.content.decode()
    assert f"{reverse('new')}?workload=heat" not in page.content.decode()
    maintainer.post(RETIRE, {"restore": "on"})
    assert "heat" in offered(maintainer)
    assert "heat" in listed(maintainer)
    assert submit(name="Again", workload="heat", parameters={}, sweep={"n": [30]}).workload == "heat"


def test_an_edited_program_stays_retired(maintainer):
    maintainer.post(RETIRE)
    form = maintainer.get(reverse("program", args=["heat"])).context["form"]
    texts = {"name": "heat", "program": "/opt/heat2 {n}", "placeholders.0.name": "n", "anyway": "on"}
    assert form is not None
    assert maintainer.post(reverse("program", args=["heat"]), texts).status_code == 302
    latest = Program.latest("heat")
    assert (latest.version, latest.definition["retired"]) == (2, True)


def test_only_a_program_without_experiments_is_deleted(maintainer, used):
    assert "delete-program" not in maintainer.get(PAGE).content.decode()
    assert "1 experiment uses it" in text_of(maintainer.post(DELETE, follow=True))
    assert Program.latest("heat") is not None
    Trial.objects.filter(experiment=used).delete()
    Deleted.objects.create(uid=used.uid, slug=used.slug, name=used.name, workload="heat", project=used.project)
    used.delete()
    maintainer.post(DELETE)
    assert Program.latest("heat") is not None, "the trash can be restored"
    page = maintainer.get(PAGE)
    assert (page.context["experiments"], page.context["trashed"], page.context["of_others"]) == (0, 1, 0)
    assert f'href="{reverse("experiments-deleted")}"' in page.content.decode()
    Deleted.objects.all().delete()
    assert "delete-program" in maintainer.get(PAGE).content.decode()
    assert maintainer.post(DELETE).url == reverse("workloads")
    assert Program.latest("heat") is None
    assert workloads.find("heat") is None
    assert maintainer.get(PAGE).status_code == 404


def test_rest_deletes_an_unused_program_and_refuses_a_used_one(maintainer, used, person):
    client = client_of(person)
    answer = client.delete("/api/v1/programs/heat/")
    assert (answer.status_code, "1 experiment" in answer.json()["errors"][0]["message"]) == (409, True)
    Program.register({**HEAT, "name": "ice"}, author=person)
    assert client.delete("/api/v1/programs/ice/").status_code == 204
    assert Program.latest("ice") is None


def test_rest_refuses_experiments_of_a_retired_program(maintainer, person):
    client = client_of(person)
    spec = {"name": "Heat", "workload": "heat", "sweep": {"n": [1, 2]}}
    put = client.put("/api/v1/programs/heat/", {**HEAT, "retired": True}, content_type="application/json")
    assert (put.status_code, put.json()["version"]) == (200, 1)
    for path in ("validate", "experiments"):
        answer = client.post(f"/api/v1/{path}/", spec, content_type="application/json")
        assert (answer.status_code, answer.json()["errors"][0]["path"]) == (400, "workload")


def test_users_who_may_not_replace_a_program_may_not_change_it_so(maintainer, used, person):
    Program.objects.update(author=None)
    other = factories.person("mia", "maintainer")
    other.memberships.update(role="submitter")
    maintainer.force_login(other)
    assert [maintainer.post(path).status_code for path in (RETIRE, RENAME, DELETE)] == [403, 403, 403]
    assert "More actions" not in text_of(maintainer.get(PAGE))
    assert client_of(other).delete("/api/v1/programs/heat/").status_code == 403


def test_an_edit_cannot_choose_a_retired_program(maintainer, submit):
    experiment = submit(name="Water")
    maintainer.post(RETIRE)
    spec = parse({"name": "Water", "workload": "heat", "sweep": {"n": [1, 2]}})
    with pytest.raises(InvalidSpec) as refused:
        experiment.revise(spec)
    assert refused.value.by_path().keys() == {"workload"}
    edited = form_context(
        experiment.owner, {"name": "Water", "workload": "heat", "sweep": {"n": [1, 2]}}, editing=experiment
    )
    assert (edited["preview"], edited["error"].by_path().keys()) == (None, {"workload"})


def test_an_experiment_locks_its_program_and_a_deleted_one_is_refused(maintainer, submit, monkeypatch):
    with CaptureQueriesContext(connection) as queries:
        submit(name="Heat", workload="heat", parameters={}, sweep={"n": [10]}).delete()
    assert [q for q in queries if "experiments_program" in q["sql"] and "FOR NO KEY UPDATE" in q["sql"]]
    Trial.objects.all().delete()
    monkeypatch.setattr(registered, "LOOK_EVERY_S", 3600.0)
    Program.objects.filter(slug="heat").delete()  # by another process: this one has it in its cache
    with pytest.raises(InvalidSpec) as refused:
        submit(name="Heat", workload="heat", parameters={}, sweep={"n": [10]})
    assert refused.value.by_path().keys() == {"workload"}


def test_a_program_in_the_trash_of_another_project_stays(maintainer, used):
    """A restored experiment would be parsed by the changed program."""
    Program.objects.update(author=None)
    other = factories.person("mia", "maintainer", Project.objects.create(slug="other", name="Other"))
    Trial.objects.filter(experiment=used).delete()
    Deleted.objects.create(uid=used.uid, slug=used.slug, name=used.name, workload="heat", project=used.project)
    used.delete()
    maintainer.force_login(other)
    assert [maintainer.post(path).status_code for path in (RETIRE, RENAME, DELETE)] == [403, 403, 403]
