"""Differences of rows and a bucket are found; only orphans are removed."""

from __future__ import annotations

import io
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from django.db.models.functions import Now

from experiments import deletion
from experiments.models import Artifact, Deleted, Experiment, Trial
from experiments.store import Bucket
from tests.experiments import factories
from workers import retention, store

pytestmark = pytest.mark.django_db


@pytest.fixture
def experiment(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> Experiment:
    """Four finished trials with an output each; every file is old enough to be judged."""
    monkeypatch.setattr(store, "SETTLED_S", -60.0)
    monkeypatch.setattr(store, "FORGOTTEN_S", -60.0)
    experiment = factories.experiment()
    for _ in range(experiment.trials.count()):
        trial = factories.finished()
        factories.stored_file(trial).save()
    return experiment


def there(bucket: Bucket) -> set[str]:
    return {path for path, _, _ in bucket.below("trials")}


def named() -> set[str]:
    return set(Artifact.objects.filter(removed_at=None).values_list("path", flat=True))


def put(bucket: Bucket, path: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content)
    bucket.put(tmp_path / "file", path)


def said(*options: str) -> str:
    out = io.StringIO()
    try:
        call_command("store", "check", *options, stdout=out)
    except CommandError as error:
        out.write(str(error))
    return out.getvalue()


def test_what_agrees_is_said_to_agree(experiment: Experiment) -> None:
    assert said("--hashes") == "files and database match\n"


def test_what_is_missing_changed_or_of_another_length_is_named(
    experiment: Experiment, bucket: Bucket, tmp_path: Path
) -> None:
    gone, changed, longer, _ = Artifact.objects.order_by("path")
    bucket.remove(gone.path)
    put(bucket, changed.path, b"HELLO\n", tmp_path)
    put(bucket, longer.path, b"longer than before", tmp_path)
    answer = said("--hashes").splitlines()
    assert answer[:-1] == [
        f"missing: {gone.path} (trial {gone.trial_id})",
        f"wrong size: {longer.path} (trial {longer.trial_id})",
        f"changed: {changed.path} (trial {changed.trial_id})",
    ]
    assert "files that differ from the database: 3" in answer[-1]


def test_only_orphans_are_removed(experiment: Experiment, bucket: Bucket, tmp_path: Path) -> None:
    again = Trial.objects.order_by("pk")[0].queue_attempt()
    finished = Artifact.objects.first().trial_id  # type: ignore[union-attr]
    nobodys = {"trials/999999/upload-000000000000/a", f"trials/{finished}/upload-000000000000/b", "trials/x"}
    for path in (*nobodys, f"trials/{again.pk}/upload-000000000000/on-its-way"):
        put(bucket, path, b"x", tmp_path)
    assert {str(path) for path in store.check().orphans} == nobodys
    answer = said("--delete-orphans").splitlines()
    assert sorted(answer[:-1]) == sorted(f"deleted: {path}" for path in nobodys)
    assert answer[-1] == "files and database match"
    assert there(bucket) == named() | {f"trials/{again.pk}/upload-000000000000/on-its-way"}


def test_young_files_are_left_alone(
    experiment: Experiment, bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(bucket, "trials/999999/a", b"x", tmp_path)
    monkeypatch.setattr(store, "FORGOTTEN_S", 60.0)
    assert "orphan: trials/999999/a" in said("--delete-orphans")
    monkeypatch.setattr(store, "SETTLED_S", 60.0)
    assert said() == "files and database match\n"


def test_an_upload_that_was_not_ended_is_found_and_its_parts_are_removed(
    experiment: Experiment, bucket: Bucket
) -> None:
    client, path = bucket._storage._client, "trials/999999/upload-000000000000/capture"
    key = f"{bucket._storage._root}{path}"
    begun = client.create_multipart_upload(Bucket=bucket._storage.bucket_name, Key=key)
    part = {"Bucket": bucket._storage.bucket_name, "Key": key, "UploadId": begun["UploadId"]}
    client.upload_part(**part, PartNumber=1, Body=bytes(5 << 20))
    assert f"unfinished upload: {path}" in said()
    assert f"deleted: {path}" in said("--delete-orphans")
    assert said() == "files and database match\n"
    assert not list(bucket.unfinished())


def test_old_captures_leave_the_bucket(experiment: Experiment, bucket: Bucket, settings: LazySettings) -> None:
    trial = Artifact.objects.first().trial  # type: ignore[union-attr]
    factories.stored_file(trial, "capture.pcapng.zst", b"packets", "capture").save()
    Artifact.objects.update(created_at=Now() - timedelta(days=10))
    settings.CAPTURE_RETENTION_DAYS = 9
    assert retention.remove_old_captures() == 1
    assert Artifact.objects.get(kind="capture").removed_at is not None
    assert there(bucket) == named()
    assert said("--hashes") == "files and database match\n"


def test_files_of_a_deleted_experiment_stay_until_it_is_forgotten(
    experiment: Experiment, bucket: Bucket, settings: LazySettings, django_capture_on_commit_callbacks: Any
) -> None:
    before = there(bucket)
    deletion.delete(experiment, by=None)
    assert said("--delete-orphans") == "files and database match\n"
    again = deletion.restore_deleted(Deleted.objects.get())
    assert there(bucket) == before == named()
    assert Artifact.objects.first().content() == b"hello\n"  # type: ignore[union-attr]
    deletion.delete(again, by=None)
    Deleted.objects.update(at=Now() - timedelta(days=10))
    settings.DELETED_DAYS = 7
    with django_capture_on_commit_callbacks(execute=True):
        assert deletion.forget_old() == 1
    assert there(bucket) == set()


def test_a_bucket_that_is_away_is_no_missing_file(experiment: Experiment, settings: LazySettings) -> None:
    away = {**settings.STORAGES["artifacts"]["OPTIONS"], "endpoint_url": "http://127.0.0.1:1"}
    settings.STORAGES = {**settings.STORAGES, "artifacts": {**settings.STORAGES["artifacts"], "OPTIONS": away}}
    assert "the store of files does not answer" in said("--hashes")
    settings.CAPTURE_RETENTION_DAYS = 1
    Artifact.objects.update(kind="capture", created_at=Now() - timedelta(days=10))
    assert retention.remove_old_captures() == 0
    assert not Artifact.objects.exclude(removed_at=None).exists()
