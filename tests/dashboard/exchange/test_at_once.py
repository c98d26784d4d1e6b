"""Requests that make the same thing at once: one makes it, none is an error."""

from __future__ import annotations

import json
import threading

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard.people.people import AccountForm
from experiments import deletion
from experiments.errors import AccountUnchanged, BadBundle, StaleTrial
from experiments.exchange.external_results import import_description
from experiments.library import load_defaults
from experiments.models import Experiment, Program, Project, Report, ShareLink
from tests.dashboard.api.clients import client_of
from tests.experiments import factories
from tests.experiments.races import at_once
from tests.experiments.specifications import specification

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("session_directory")]
RUNS = {"name": "Weather", "workload": "wrf", "cluster": "Hawk", "trials": [{"figures": {"elapsed_s": 2}}]}


@pytest.mark.parametrize("same", [True, False])
def test_imports_at_once(tmp_path, same):
    project = load_defaults()

    def bring(number):
        path = tmp_path / f"{number}.yaml"
        path.write_text(json.dumps(RUNS if same else RUNS | {"source": str(number)}))
        try:
            return bool(import_description(path, project=project).trials)
        except BadBundle as error:
            return "at the same time" not in str(error)

    results = at_once(bring, 6)
    assert sum(results) == Experiment.objects.filter(published=False).count() == (1 if same else 6)


def test_import_that_waits_for_another_longer_than_a_statement_may_is_refused(tmp_path):
    project = load_defaults()
    (tmp_path / "a.yaml").write_text(json.dumps(RUNS))
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(hashtextextended(%s, 38))", [f"import:{project.pk}"])
        with connection.cursor() as cursor:
            cursor.execute("SET statement_timeout = 200")
        with pytest.raises(BadBundle, match="take long"):
            import_description(tmp_path / "a.yaml", project=project)
    finally:
        other.close()
        connection.close()


def test_versions_of_a_program_at_once():
    extract = [{"name": "time_s", "unit": "s", "regex": "(.*) s"}]
    programs = [{"name": "ice", "program": ["/bin/true", str(number)], "extract": extract} for number in range(6)]
    at_once(lambda number: Program.register(programs[number]), 6)
    assert sorted(Program.objects.values_list("version", flat=True)) == [1, 2, 3, 4, 5, 6]


@pytest.mark.usefixtures("empty_redis")
def test_sign_ups_of_a_name_or_address_at_once(settings, monkeypatch):
    """One account is created for each; the other requests get the form or status 409."""
    monkeypatch.setattr("dashboard.middleware.front.SIGN_INS_AT_ONCE", 8)
    settings.SIGN_UP = True
    load_defaults()
    passwords = {"password1": "battery staple", "password2": "battery staple"}
    same = [
        ("ada", ""),
        ("Ada", ""),
        ("ada", ""),
        ("bo", "b@example.org"),
        ("cy", "B@example.org"),
        ("di", "b@example.org"),
    ]

    def sign_up(number):
        name, email = same[number]
        fields = {"username": name, "email": email, **passwords}
        return Client(raise_request_exception=False).post("/sign-up/", fields).status_code

    statuses = at_once(sign_up, len(same))
    assert statuses.count(302) == User.objects.count() == 2
    assert set(statuses) <= {200, 302, 409}


def test_projects_are_renamed_one_at_a_time():
    """Names are compared under a lock, so that no two projects have the same."""
    load_defaults()
    client = Client()
    client.force_login(factories.person("root", is_superuser=True))
    with CaptureQueriesContext(connection) as queries:
        client.post("/projects/default/settings/", {"settings-name": "Other"})
    statements = [query["sql"] for query in queries]
    (lock,) = [number for number, sql in enumerate(statements) if "pg_advisory_xact_lock" in sql]
    (check,) = [number for number, sql in enumerate(statements) if "UPPER(" in sql]
    assert lock < check
    assert Project.objects.get(slug="default").name == "Other"


@pytest.mark.parametrize("same", ["name", "address"])
def test_accounts_of_a_name_or_address_at_once(same):
    load_defaults()
    factories.person("root", is_superuser=True)

    def make(number):
        fields = {"username": "ada"} if same == "name" else {"username": f"ada{number}", "email": "a@example.org"}
        form = AccountForm(fields)
        if not form.is_valid():
            return False
        try:
            return bool(form.make())
        except AccountUnchanged:
            return False

    assert sum(at_once(make, 6)) == 1


def sent_at_once(user, path, fields, count=8):
    """Return the statuses of equal forms that a user sends at once."""
    clients = [Client(raise_request_exception=False) for _ in range(count)]
    for client in clients:
        client.force_login(user)
    return sorted(at_once(lambda number: clients[number].post(path, fields).status_code, count))


@pytest.mark.usefixtures("empty_redis")
def test_equal_forms_at_once_are_no_errors():
    load_defaults()
    root = factories.person("root", is_superuser=True)
    made = sent_at_once(root, "/clusters/new/", {"kind": "local", "name": "Hall"})
    assert (made.count(302), set(made) <= {302, 409, 422}) == (1, True)
    assert set(sent_at_once(root, "/networks/", {"name": "hall", "delay": "1 ms", "rate": "1 Gbit/s"})) <= {302, 409}
    experiment = factories.experiment(owner=root)
    experiment.cancel()
    assert set(sent_at_once(root, "/experiments/chosen/delete/", {"of": f"e:{experiment.slug}"})) == {302}


def test_what_is_added_during_a_deletion_waits_and_is_refused(monkeypatch):
    """It referred to an experiment whose rows were stored in the trash without it."""
    author = factories.person("root", is_superuser=True)
    experiment = factories.experiment(owner=author)
    experiment.cancel()
    store, refused = deletion._store, []

    def share():
        try:
            ShareLink.issue([experiment], by=author, days=7)
        except IntegrityError as error:
            refused.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=share)

    def store_beside_it(*args):
        rows = store(*args)
        thread.start()
        thread.join(0.5)
        return rows

    monkeypatch.setattr(deletion, "_store", store_beside_it)
    deleted = deletion.delete(experiment, by=author)
    thread.join(10)
    assert (len(refused), ShareLink.objects.count()) == (1, 0)
    assert deletion.restore_deleted(deleted).slug == experiment.slug


@pytest.mark.usefixtures("empty_redis")
def test_a_report_that_is_deleted_during_its_edit_is_a_conflict(monkeypatch):
    root = factories.person("root", is_superuser=True)
    report = Report.write(load_defaults(), "Water", "", {}, by=root)
    monkeypatch.setattr("dashboard.reports.writing.check_text", lambda *_: Report.objects.all().delete())
    monkeypatch.setattr("dashboard.api.reports.check_text", lambda *_: Report.objects.all().delete())
    client = Client(raise_request_exception=False)
    client.force_login(root)
    assert client.post(f"/reports/{report.pk}/edit/", {"title": "Ice", "text": "", "base": 1}).status_code == 409
    report = Report.write(load_defaults(), "Water", "", {}, by=root)
    answer = client_of(root).put(f"/api/v1/reports/{report.pk}/", {"version": 1, "text": ""}, "application/json")
    assert answer.status_code == 409


@pytest.mark.usefixtures("empty_redis")
def test_an_edit_of_a_deleted_experiment_is_a_conflict():
    load_defaults()
    experiment, author = factories.experiment(), factories.person("root", is_superuser=True)
    experiment.cancel()
    read_before = Experiment.objects.get(pk=experiment.pk)
    deletion.delete(experiment, by=author)
    with pytest.raises(StaleTrial, match="was deleted"):
        read_before.add_repetitions(1)
    with pytest.raises(StaleTrial, match="was deleted"):
        read_before.revise(specification(repetitions=7))
