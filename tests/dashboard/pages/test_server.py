"""Server status: processes, queue, running trials, services and disk."""

from __future__ import annotations

import os
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from dashboard.pages import server
from experiments.models import BackgroundTask, Cluster, Experiment, Heartbeat, Project, Trial
from experiments.selectors.queue_forecast import Outlook
from tests.dashboard.texts import text_of

SERVER = reverse("server")


@pytest.fixture
def maintainer(page, person):
    person.memberships.update(role="maintainer")
    return page


def report(**ago_s):
    """Store a heartbeat of each role so many seconds ago."""
    for role, seconds in ago_s.items():
        Heartbeat.record(role, f"{role}@n1")
        Heartbeat.objects.filter(role=role).update(seen_at=timezone.now() - timedelta(seconds=seconds))


def claimed():
    return Trial.claim_next(Cluster.objects.get(slug="testbed"), "tests:1:1")


@pytest.mark.parametrize(("role", "status"), [("maintainer", 200), ("submitter", 403), ("viewer", 403)])
def test_only_maintainers_and_superusers_see_it(page, person, role, status):
    person.memberships.update(role=role)
    assert page.get(SERVER).status_code == status
    assert (SERVER in page.get(reverse("clusters")).content.decode()) == (status == 200)
    person.memberships.update(role="viewer")
    person.is_superuser = True
    person.save()
    assert page.get(SERVER).status_code == 200
    assert SERVER in page.get(reverse("home")).content.decode(), "in the menu of the account"


def test_it_leads_to_the_guides_of_an_operator(maintainer):
    html = maintainer.get(SERVER).content.decode()
    assert all(reverse("guide", args=[name]) in html for name in ("back-up", "upgrade", "run-the-server"))


def test_it_changes_nothing(maintainer):
    assert maintainer.post(SERVER).status_code == 405


def test_it_lists_processes_and_names_what_a_silent_one_stops(maintainer):
    report(beat=5, worker=180, background=3)
    context = maintainer.get(SERVER).context
    assert [(p.role, p.name, p.is_alive) for p in context["processes"]] == [
        ("background", "background@n1", True),
        ("beat", "beat@n1", True),
        ("worker", "worker@n1", False),
    ]
    (problem,) = context["problems"]
    assert problem.startswith("No worker has reported for 3")
    assert "queued trials do not start" in problem
    Heartbeat.record("worker", "second@n2")
    context = maintainer.get(SERVER).context
    assert (context["problems"], [p.name for p in context["ended"]]) == ([], ["worker@n1"])
    page = maintainer.get(SERVER)
    assert "All processes and services run" in text_of(page)
    assert page.context["load"]["cores"] == os.cpu_count()
    assert page.context["load"]["busy"] >= 0


def test_processes_that_never_reported_are_listed(maintainer):
    context = maintainer.get(SERVER).context
    assert {p.role for p in context["processes"]} == {"beat", "worker", "background"}
    assert len(context["problems"]) == 3


def test_it_counts_the_queue_of_each_cluster_with_its_end(maintainer, submit, run):
    submit()
    run()
    end = timezone.now() - timedelta(hours=1)
    Trial.objects.filter(state="finished").update(preparing_at=end - timedelta(seconds=10), ended_at=end)
    experiment = submit(name="Next")
    trials = experiment.trials.count()
    trial = claimed()
    rows = {row["row"].cluster.slug: row for row in maintainer.get(SERVER).context["clusters"]}
    assert (rows["testbed"]["row"].active, rows["testbed"]["row"].queued) == (1, trials - 1)
    assert rows["testbed"]["ends_in_s"] == pytest.approx(10 * trials, abs=2)
    assert (rows["local"]["row"].queued, rows["local"]["ends_in_s"]) == (0, None)
    rows = [{"cluster_id": entry["row"].cluster.pk, "experiment_id": pk, "count": 1, "since": timezone.now()}
            for entry in maintainer.get(SERVER).context["clusters"] for pk in (1, 2)]  # fmt: skip
    (first, *_) = server._clusters(rows, [], {1: Outlook(left_s=74), 2: Outlook()})
    assert (first["ends_in_s"], first["has_unknown_end"]) == (74, True), "later than this"
    page = maintainer.get(SERVER)
    assert [row["trial"].pk for row in page.context["running"]] == [trial.pk]
    assert f'href="{trial.get_absolute_url()}"' in page.content.decode()


def test_trials_of_other_projects_are_counted_and_not_named(maintainer, submit):
    secret = submit(name="Secret")
    Experiment.objects.update(project=Project.objects.create(slug="others", name="Others"))
    trial = claimed()
    assert trial.experiment == secret
    page = maintainer.get(SERVER)
    assert len(page.context["running"]) == 1
    assert "Secret" not in text_of(page)
    assert trial.get_absolute_url() not in page.content.decode()


def test_it_states_services_disk_and_versions(maintainer):
    context = maintainer.get(SERVER).context
    assert [(s.name, s.answered_s is not None, bool(s.version)) for s in context["services"]] == [
        ("PostgreSQL", True, True),
        ("Redis", True, True),
    ]
    assert context["services"][0].bytes > 0
    assert 0 < context["storage"]["free"] <= context["storage"]["disk"]
    assert [name for name, version in context["versions"] if version] == ["Rankwire", "Python", "Django"]


def test_it_warns_of_a_full_disk(maintainer, monkeypatch):
    monkeypatch.setattr(server, "LEAST_FREE", 1.1)
    report(beat=1, worker=1, background=1)
    (problem,) = maintainer.get(SERVER).context["problems"]
    assert problem.startswith("The disk is almost full")


def test_it_counts_faults_and_background_tasks(maintainer, person, submit):
    submit()
    claimed().error("A fault.", "Traceback")
    BackgroundTask.objects.create(owner=person, kind="export", title="All trials")
    context = maintainer.get(SERVER).context
    assert context["faults"] == 1
    assert context["tasks"] == {"waiting": 1, "running": 0}


def test_a_silent_process_of_an_earlier_day_is_listed_as_ended(maintainer):
    report(beat=1, worker=1, background=1, analysis=3 * 24 * 3600)
    Heartbeat.forget_old()
    page = maintainer.get(SERVER)
    assert [process.role for process in page.context["ended"]] == ["analysis"]
    assert "<summary>1 ended</summary>" in page.content.decode()


def test_a_refresh_gets_the_panels_only(maintainer):
    panels = maintainer.get(SERVER, headers={"HX-Request": "true"}).content.decode()
    assert panels.startswith("<div")
    assert 'id="server"' in panels
    assert "<nav" not in panels
