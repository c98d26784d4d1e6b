"""Deletion of experiments: trash, restore, and removal after some days."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from auditlog.models import LogEntry
from django.contrib.auth.models import User
from django.core import serializers
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from experiments import deletion
from experiments.errors import CannotRestore, ReadOnly, StaleTrial
from experiments.models import (
    Artifact,
    BackgroundTask,
    Configuration,
    Deleted,
    DeletedRows,
    Event,
    ExpectedChange,
    Experiment,
    ExperimentVersion,
    IdempotencyKey,
    Measurement,
    Project,
    ShareLink,
    Summary,
    Trial,
    TrialValues,
)
from experiments.selectors.history import expect
from tests.dashboard.texts import text_of, undo_of
from tests.experiments import factories
from workers import retention

DELETE, UNDELETE, DELETED = (f"/experiments/chosen/{change}/" for change in ("delete", "undelete", "deleted"))
ROWS = (
    Configuration,
    ExperimentVersion,
    Trial,
    TrialValues,
    Measurement,
    Artifact,
    Event,
    ExpectedChange,
    ShareLink.experiments.through,
)
"""Models with rows of an experiment."""


@pytest.fixture
def measured(submit: Any, run: Any, person: User) -> Experiment:
    experiment: Experiment = submit()
    run()
    expect(experiment.trials.first(), "elapsed_s", "New\tkernel \\N on\nall", person)
    ShareLink.issue([experiment], by=person, days=7)
    experiment.note_end()
    factories.prediction(experiment)
    connection.check_constraints()
    return experiment


def fail(**_: Any) -> None:
    """Raise the error of a lost connection."""
    raise OperationalError("connection lost")


def everything(experiment: Experiment) -> str:
    """All rows that refer to an experiment, as text."""
    rows: list[Any] = [Experiment.objects.get(pk=experiment.pk)]
    for model in (*ROWS, Summary):
        for path in ("experiment", "trial__experiment", "configuration__experiment"):
            names = path.split("__")
            if names[0] in {field.name for field in model._meta.fields}:
                rows += model._default_manager.filter(**{path: experiment.pk}).order_by("pk")
                break
    text: str = serializers.serialize("json", [row for row in rows if not isinstance(row, Summary)])
    summaries = [
        list(
            Summary.objects.filter(configuration__experiment=experiment.pk)
            .order_by("configuration", "metric", "scope")
            .values_list("configuration", "metric", "scope", "median", "samples")
        )
    ]
    return f"{text} {summaries}"


def test_deleted_experiment_is_restored_unchanged(measured: Experiment, page: Client, person: User) -> None:
    before = everything(measured)
    counts = {model: model._default_manager.count() for model in ROWS}
    query = {"of": f"e:{measured.slug}", "back": "q=water"}
    data = text_of(page.get(DELETE, query))
    assert "6 trials" in data
    assert Experiment.objects.filter(pk=measured.pk).exists()
    response = page.post(DELETE, query)
    assert response.url == "/experiments/?q=water"
    text = text_of(page.get(response.url))
    undo, fields = undo_of(text)
    assert (undo, fields["of"], fields["back"]) == (UNDELETE, f"e:{measured.slug}", "q=water")
    assert "1 in trash</a>" in text
    assert page.get(measured.get_absolute_url()).status_code == 404
    assert not Trial.objects.filter(experiment=measured.pk).exists()
    assert not Summary.objects.filter(configuration__experiment=measured.pk).exists()
    assert LogEntry.objects.filter(action=LogEntry.Action.DELETE, object_pk=str(measured.pk)).exists()
    deleted = Deleted.objects.get()
    assert (deleted.by, deleted.project, len(deleted.trials)) == (person, measured.project, 6)
    listed = text_of(page.get(DELETED))
    assert measured.name in listed
    page.post(undo, fields)
    connection.check_constraints()
    assert everything(measured) == before
    assert {model: model._default_manager.count() for model in ROWS} == counts
    assert not Deleted.objects.exists()
    assert not DeletedRows.objects.exists()
    assert page.get(measured.get_absolute_url()).status_code == 200


def test_further_trials_get_numbers_that_no_deleted_one_has(measured: Experiment, person: User, submit: Any) -> None:
    deleted = deletion.delete(measured, by=person)
    again = submit()
    assert again.slug == f"{measured.slug}-2"
    assert not {*deleted.trials} & {*again.trials.values_list("pk", flat=True)}
    assert deletion.restore_deleted(deleted).slug == measured.slug
    assert (TrialValues.objects.exists(), TrialValues.wrong()) == (True, [])


def test_unfinished_and_published_experiments_cannot_be_deleted(submit: Any, page: Client, person: User) -> None:
    waiting, published = submit(), Experiment.objects.filter(published=True).first()
    assert published is not None
    data = text_of(page.get(DELETE, {"of": f"e:{waiting.slug},e:{published.slug}"}))
    for words in ("cancel them first", "holds published results", "Delete: not possible for these"):
        assert words in data
    page.post(DELETE, {"of": f"e:{waiting.slug},e:{published.slug}"})
    for experiment, error in ((waiting, StaleTrial), (published, ReadOnly)):
        with pytest.raises(error):
            deletion.delete(experiment, by=person)
    waiting.cancel()
    BackgroundTask.ask(person, BackgroundTask.Kind.EXPORT, {}, title="Table", experiment=waiting)
    with pytest.raises(StaleTrial, match="background"):
        deletion.delete(waiting, by=person)
    assert Experiment.objects.filter(pk__in=[waiting.pk, published.pk]).count() == 2


def test_only_owner_and_maintainers_delete_and_restore(measured: Experiment, client: Client, page: Client) -> None:
    query = {"of": f"e:{measured.slug}"}
    others = [factories.person("vera", "viewer"), factories.person("sam", "submitter"), factories.person("eve")]
    for other in others:
        client.force_login(other)
        client.post(DELETE, query)
    assert Experiment.objects.filter(pk=measured.pk).exists()
    client.force_login(factories.person("mia", "maintainer"))
    assert "Delete experiment</a>" in text_of(client.get(measured.get_absolute_url()))
    client.post(DELETE, query)
    for other in others:
        client.force_login(other)
        assert measured.name not in text_of(client.get(DELETED))
        client.post(UNDELETE, query)
    assert Deleted.objects.exists()


def test_it_is_forgotten_with_its_files_after_some_days(
    measured: Experiment,
    person: User,
    settings: Any,
    tmp_path: Path,
    django_capture_on_commit_callbacks: Any,
) -> None:
    settings.VAR = tmp_path
    files = [tmp_path / "trials" / str(trial.pk) / "stdout.txt" for trial in measured.trials.all()]
    other = tmp_path / "trials" / "0" / "stdout.txt"
    for file in (*files, other):
        file.parent.mkdir(parents=True)
        file.write_text("done")
    deleted = deletion.delete(measured, by=person)
    assert retention.forget_deleted() == 0
    Deleted.objects.update(at=timezone.now() - timedelta(days=8))
    settings.DELETED_DAYS = 0
    assert retention.forget_deleted() == 0
    settings.DELETED_DAYS = 7
    assert all(file.exists() for file in files)
    with django_capture_on_commit_callbacks(execute=True):
        assert retention.forget_deleted() == 1
    assert [file for file in (*files, other) if file.exists()] == [other]
    with pytest.raises(CannotRestore, match="removed"):
        deletion.restore_deleted(deleted)


def test_maintainers_remove_it_from_the_trash_at_once(
    measured: Experiment,
    person: User,
    page: Client,
    client: Client,
    settings: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Any,
) -> None:
    settings.VAR = tmp_path
    file = tmp_path / "trials" / str(measured.trials.latest("pk").pk) / "stdout.txt"
    file.parent.mkdir(parents=True)
    file.write_text("done")
    deletion.delete(measured, by=person)
    remove, query = "/experiments/chosen/remove/", {"of": f"e:{measured.slug}"}
    assert remove not in text_of(page.get(DELETED))
    page.post(remove, query)
    assert Deleted.objects.exists()
    client.force_login(factories.person("mia", "maintainer"))
    assert f"{remove}?of=e:{measured.slug}" in text_of(client.get(DELETED))
    assert "It cannot be undone." in text_of(client.get(remove, query))
    assert Deleted.objects.exists()
    with monkeypatch.context() as patch, django_capture_on_commit_callbacks(execute=True):
        patch.setattr(IdempotencyKey.objects, "create", fail)
        with pytest.raises(OperationalError):
            client.post(remove, {**query, "once": "first"})
    assert Deleted.objects.exists()
    assert file.exists()
    with django_capture_on_commit_callbacks(execute=True):
        client.post(remove, {**query, "once": "second"})
    assert not Deleted.objects.exists()
    assert not DeletedRows.objects.exists()
    assert not file.exists()


def test_failed_restore_keeps_the_deleted_experiment(measured: Experiment, person: User, page: Client) -> None:
    deleted = deletion.delete(measured, by=person)
    DeletedRows.objects.filter(table="experiments_configuration").delete()
    with pytest.raises(CannotRestore, match="cannot be restored"), transaction.atomic():
        deletion.restore_deleted(deleted)
    assert Deleted.objects.exists()
    assert not Experiment.objects.filter(uid=measured.uid).exists()
    page.post(UNDELETE, {"of": f"e:{deleted.slug}"})


def test_a_large_one_is_deleted_on_the_command_line(
    measured: Experiment, page: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.pages.lists.experiments.MOST_DELETED", 5)
    assert f"script/manage delete {measured.slug}" in text_of(page.get(DELETE, {"of": f"e:{measured.slug}"}))
    before, text = everything(measured), StringIO()
    call_command("delete", measured.slug, stdout=text)
    assert "is deleted, with 6 trials; --undo restores it until" in text.getvalue()
    with pytest.raises(CommandError, match="No experiment is called"):
        call_command("delete", measured.slug)
    call_command("delete", measured.slug, undo=True, stdout=text)
    assert f"{measured.slug} is restored, with 6 trials." in text.getvalue()
    connection.check_constraints()
    assert everything(measured) == before
    with pytest.raises(CommandError, match="No deleted experiment"):
        call_command("delete", measured.slug, undo=True)


def test_the_address_of_a_deleted_experiment_offers_its_restoration(page: Client, measured: Experiment) -> None:
    address, slug, pk = measured.get_absolute_url(), measured.slug, measured.trials.latest("pk").pk
    page.post(DELETE, {"of": f"e:{slug}"})
    for gone in (address, f"/trials/{pk}/"):
        response = page.get(gone)
        words = response.content.decode()
        assert response.status_code == 404
        assert f"{UNDELETE}?of=e:{slug}" in words
        assert "is in the trash" in words
    assert "is in the trash" not in page.get("/experiments/never-was/").content.decode()


def test_pages_of_deleted_experiments_query_roles_once_for_all_rows(client: Client, submit: Any, person: User) -> None:
    """Of one project or of several: 1 row and 5 rows take the same number of queries."""
    maintainer = factories.person("mia", "maintainer")
    client.force_login(maintainer)
    other = Project.objects.create(name="Other", slug="other")
    other.memberships.create(user=maintainer, role="maintainer")
    experiments = [submit(name=f"Row {n}", repetitions=1) for n in range(5)]
    for experiment in experiments:
        experiment.cancel()
    Experiment.objects.filter(pk__in=[e.pk for e in experiments[::2]]).update(project=other)
    for experiment in experiments[:1]:
        deletion.delete(Experiment.objects.get(pk=experiment.pk), by=person)
    counts = {}
    for step in ("one", "five"):
        of = {"of": [f"e:{e.slug}" for e in experiments]}
        for address in (DELETED, UNDELETE, "/experiments/chosen/remove/"):
            with CaptureQueriesContext(connection) as queries:
                html = text_of(client.get(address, of))
            assert html.count("Row ") >= (1 if step == "one" else 5)
            counts.setdefault(address, []).append(len(queries))
        if step == "one":
            for experiment in experiments[1:]:
                deletion.delete(Experiment.objects.get(pk=experiment.pk), by=person)
    assert {address: later - first for address, (first, later) in counts.items()} == dict.fromkeys(counts, 0)


def test_restored_experiment_outlives_rows_that_it_refers_to(
    measured: Experiment, person: User, submit: Any, run: Any
) -> None:
    """The original of a clone and the account of its owner may be deleted by then."""
    clone = submit()
    run()
    clone.cloned_from = measured
    clone.owner = User.objects.create_user("former")
    clone.save()
    former, slug = clone.owner, clone.slug
    for experiment in (clone, measured):
        deletion.delete(experiment, by=person)
    former.delete()
    restored = deletion.restore_deleted(Deleted.objects.get(uid=clone.uid))
    connection.check_constraints()
    assert (restored.slug, restored.cloned_from, restored.owner) == (slug, None, None)
    assert deletion.restore_deleted(Deleted.objects.get(uid=measured.uid)).trials.count() == 6
    connection.check_constraints()
