"""Background exports of large tables: content, permissions and removal."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from dashboard.background.tasks import do, work
from experiments.models import BackgroundTask, Experiment, Membership
from tests.dashboard.api.clients import client_of
from tests.experiments import factories
from workers.retention import remove_old_exports

pytestmark = pytest.mark.usefixtures("empty_redis")


@pytest.fixture
def measured(submit, run, settings: LazySettings, tmp_path: Path) -> Experiment:
    """An experiment in an installation whose tables are all large."""
    settings.DIRECT_EXPORT_ROWS = 0
    settings.VAR = tmp_path
    experiment: Experiment = submit()
    run()
    return experiment


def exported(user: Any, query: str = "project=default", form: str = "csv") -> BackgroundTask:
    return BackgroundTask.ask(user, BackgroundTask.Kind.EXPORT, {"query": query, "form": form}, title="Table")


def content(answer: Any) -> bytes:
    return b"".join(answer.streaming_content)


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_large_export_equals_a_direct_export(
    page: Client, measured: Experiment, settings: LazySettings, form: str
) -> None:
    settings.PUBLIC_ADDRESS = "http://testserver"  # links of a direct export begin with the address of its request
    address = f"/explore/export.{form}?project=default"
    answer = page.get(address)
    task = BackgroundTask.objects.get()
    assert (answer.status_code, answer.headers["Location"]) == (302, f"/tasks/{task.pk}/")
    assert "Queued" in page.get(f"/tasks/{task.pk}/").content.decode()
    assert page.get(f"/tasks/{task.pk}/file").status_code == 404
    work()
    html = page.get(f"/tasks/{task.pk}/", headers={"hx-request": "true"}).content.decode()
    assert f'href="/tasks/{task.pk}/file"' in html
    assert "hx-get" not in html, "the page no longer refreshes"
    made = content(page.get(f"/tasks/{task.pk}/file"))
    settings.DIRECT_EXPORT_ROWS = 1000
    assert made == content(page.get(address))
    task.refresh_from_db()
    assert (task.done, task.total) == (3, 3)


def test_rest_answers_202_with_the_address_that_leads_to_the_file(person: User, measured: Experiment) -> None:
    client = client_of(person)
    answer = client.get("/api/v1/explore/export/csv/?project=default")
    assert (answer.status_code, answer.headers["Location"]) == (202, answer.json()["url"])
    assert (answer.json()["state"], answer.json()["file"]) == ("waiting", None)
    work()
    task = client.get(answer.json()["url"]).json()
    assert (task["state"], task["done"], task["total"]) == ("done", 3, 3)
    assert content(client.get(task["file"])).count(measured.slug.encode()) >= 3
    assert client.delete(answer.json()["url"]).status_code == 204
    assert client.get(task["file"]).status_code == 404


def test_two_wait_for_a_person_and_the_same_is_not_asked_twice(page: Client, measured: Experiment) -> None:
    answers = [page.get(f"/explore/export.csv?hosts={hosts}") for hosts in (1, 1, 2)]
    assert len({answer.headers["Location"] for answer in answers}) == 2
    refused = page.get("/explore/export.csv?hosts=4")
    assert (refused.status_code, BackgroundTask.objects.count()) == (429, 2)
    work()
    assert page.get("/explore/export.csv?hosts=4").status_code == 302


def test_export_has_objects_visible_when_it_is_made(person: User, measured: Experiment) -> None:
    task = exported(person)
    Membership.objects.filter(user=person).delete()
    work()
    assert measured.slug not in task.file.read_text()


def test_who_left_a_project_does_not_fetch_a_table_that_was_made_of_it(
    page: Client, person: User, measured: Experiment
) -> None:
    task = exported(person)
    work()
    assert page.get(f"/tasks/{task.pk}/file").status_code == 200
    Membership.objects.filter(user=person).delete()
    assert page.get(f"/tasks/{task.pk}/file").status_code == 404
    assert client_of(person).get(f"/api/v1/tasks/{task.pk}/file/").status_code == 410


def test_a_token_for_one_project_exports_no_other(measured: Experiment) -> None:
    root = factories.person("root", is_superuser=True)
    other = measured.project.__class__.objects.create(slug="other", name="Other")
    answer = client_of(root, project=other).get("/api/v1/explore/export/csv/?workload=water")
    assert answer.status_code == 202
    unlimited = exported(root, "workload=water")
    work()
    limited = BackgroundTask.objects.get(within=other)
    assert measured.slug not in limited.file.read_text()
    assert measured.slug in unlimited.file.read_text()
    assert client_of(root, project=other).get(f"/api/v1/tasks/{unlimited.pk}/").status_code == 404


def test_a_task_whose_worker_was_ended_is_done_by_another_and_given_up_in_the_end(
    person: User, measured: Experiment
) -> None:
    task = exported(person)
    for attempt in (1, 2, 3):
        dead = BackgroundTask.claim_next()
        assert dead is not None
        assert dead.attempt == attempt
        BackgroundTask.requeue_silent()
        assert BackgroundTask.claim_next() is None, "it sent a heartbeat"
        BackgroundTask.objects.update(told_at=timezone.now() - timedelta(hours=1))
        BackgroundTask.requeue_silent()
    task.refresh_from_db()
    assert (task.state, "3 attempts" in task.message) == ("failed", True)
    do(dead)
    task.refresh_from_db()
    assert task.state == "failed"
    assert not task.file.exists(), "who was taken for dead leaves nothing"


def test_a_task_that_is_cancelled_leaves_no_file(page: Client, person: User, measured: Experiment) -> None:
    exported(person)
    task = BackgroundTask.claim_next()
    assert task is not None
    assert page.post(f"/tasks/{task.pk}/forget/").status_code == 302
    do(task)
    assert list(task.file.parent.iterdir()) == []


@pytest.mark.parametrize("rows", ["configurations", "trials", "measurements"])
def test_long_tables_are_made_in_the_background(
    page: Client, measured: Experiment, settings: LazySettings, monkeypatch: pytest.MonkeyPatch, rows: str
) -> None:
    """A stream has no limit of time and disk, and each row has all parameters."""
    settings.DIRECT_EXPORT_ROWS = 1000
    address = f"/explore/export.csv?project=default&rows={rows}"
    monkeypatch.setattr("dashboard.background.exports._DIRECT_BYTES", 1 << 20)
    assert page.get(address).status_code == 200
    for row in measured.configurations.all():
        row.parameters["text"] = "x" * (1 << 19)
        row.save()
    assert page.get(address).status_code == 302


@pytest.mark.parametrize("limit", ["disk", "time"])
def test_table_in_the_background_has_limits(
    person: User, measured: Experiment, settings: LazySettings, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """A table grew to gigabytes until the disk was full."""
    if limit == "disk":
        settings.DISK_RESERVE_BYTES = 1 << 60
    else:
        monkeypatch.setattr("experiments.selectors.quotas.EXPORT_CPU_S", 1e-6)
    task = exported(person)
    work()
    task.refresh_from_db()
    assert (task.state, task.file.exists()) == ("failed", False)
    assert ("a quarter of the free disk" if limit == "disk" else "of CPU time") in task.message


@pytest.mark.parametrize("trouble", ["closed", "wrong"])
def test_failed_export_has_a_reason(person: User, measured: Experiment, trouble: str) -> None:
    if trouble == "closed":
        User.objects.filter(pk=person.pk).update(is_active=False)
    task = exported(person, "where=hosts+%3C")
    work()
    task.refresh_from_db()
    assert task.state == "failed"
    assert ("account" if trouble == "closed" else "Conditions") in task.message


def test_old_and_surplus_exports_are_removed(
    person: User, measured: Experiment, django_capture_on_commit_callbacks: Any
) -> None:
    tasks = []
    with django_capture_on_commit_callbacks(execute=True):
        for _ in range(11):
            tasks.append(exported(person))
            work()
    assert not BackgroundTask.objects.filter(pk=tasks[0].pk).exists()
    assert (tasks[0].file.exists(), tasks[1].file.exists()) == (False, True)
    assert oct(tasks[1].file.stat().st_mode & 0o777) == "0o640"
    BackgroundTask.objects.exclude(pk=tasks[-1].pk).update(ended_at=timezone.now() - timedelta(days=4))
    with django_capture_on_commit_callbacks(execute=True):
        assert remove_old_exports() == 9
    assert [path.name for path in tasks[-1].file.parent.iterdir()] == [tasks[-1].file.name]
