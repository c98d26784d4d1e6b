"""Trials with files in a bucket: stored, read, and kept in an outage."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import OperationalError
from django.test import Client

from config.environment import Environment
from config.store import artifacts
from experiments import files
from experiments.files import read_analysis
from experiments.models import Artifact, Lease, State, Trial
from experiments.reparse import candidates, reparse
from experiments.store import Bucket, current
from tests.experiments import factories
from tests.s3_server import S3Server
from workers import store
from workers.trial import delivery

WATER = {"workload": "water", "parameters": {"molecules": 64, "steps": 20}, "sweep": {"hosts": [2]}}
GOOD = {"workload": "script", "sweep": {"script": ["print('answer 42')"]}, "capture": {"enabled": False}}


def there(bucket: Bucket) -> list[str]:
    return [path for path, _, _ in bucket.below("trials")]


@pytest.fixture
def own_server(settings: Any, tmp_path: Path) -> Iterator[S3Server]:
    """A server of the test's own, which may be ended."""
    settings.VAR = tmp_path / "var"
    settings.VAR.mkdir()
    server = S3Server(tmp_path / "s3", environment=os.environ)
    server.start()
    entry = artifacts(Environment.of(server.variables), settings.VAR)
    settings.STORAGES = {**settings.STORAGES, "artifacts": entry}
    yield server
    server.kill()


def test_a_trial_is_stored_by_its_worker_and_read_by_a_machine_with_another_directory(
    bucket: Bucket, run_all: Callable[..., list[Trial]], settings: Any, tmp_path: Path
) -> None:
    (trial,) = run_all(**WATER)
    assert trial.state == State.FINISHED, trial.message + trial.traceback
    assert list(Path(settings.VAR, "trials").iterdir()) == [], "the worker keeps nothing"
    assert sorted(there(bucket)) == sorted(trial.artifacts.values_list("path", flat=True))
    settings.VAR = tmp_path / "web"
    browser = Client()
    browser.force_login(factories.person("ada", "viewer"))
    it_is_downloaded_whole_and_in_parts(browser, trial)
    it_is_seen_on_the_pages(browser, trial)
    assert not len(store.check(hashes=True))
    assert reparse(candidates().filter(pk=trial.pk)).unchanged == 1


def it_is_downloaded_whole_and_in_parts(browser: Client, trial: Trial) -> None:
    capture = trial.artifacts.get(kind=Artifact.Kind.CAPTURE)
    address = f"/trials/{trial.pk}/files/{capture.name}"
    whole = b"".join(browser.get(address).streaming_content)  # type: ignore[attr-defined]
    assert len(whole) == capture.size_bytes > 1000
    part = browser.get(address, headers={"range": "bytes=100-199"})
    assert (part.status_code, b"".join(part.streaming_content)) == (206, whole[100:200])  # type: ignore[attr-defined]


def it_is_seen_on_the_pages(browser: Client, trial: Trial) -> None:
    page = browser.get(f"/trials/{trial.pk}/").content.decode()
    assert "Loop time" in page, "what it printed"
    assert read_analysis(trial)
    assert "Show packet 1" in browser.get(f"/trials/{trial.pk}/packets/").content.decode()
    assert browser.get(f"/trials/{trial.pk}/hosts/").status_code == 200


def test_what_a_failed_trial_printed_is_stored_too(
    bucket: Bucket, run_all: Callable[..., list[Trial]], script_workload: object
) -> None:
    scripts = ["import sys; print('before the end'); sys.exit('no')", "print('nothing of use')"]
    for trial in run_all(**{**GOOD, "sweep": {"script": scripts}}):
        assert trial.state == State.FAILED
        assert trial.artifacts.get(name="stdout.txt").content() in (b"before the end\n", b"nothing of use\n")
    assert not list(Path(settings.VAR, "trials").iterdir())
    assert not len(store.check(hashes=True))


def test_a_trial_waits_for_a_bucket_that_comes_back(
    own_server: S3Server, run_all: Callable[..., list[Trial]], script_workload: object
) -> None:
    real, tries = files.deliver, 0

    def deliver(*arguments: Any) -> None:
        nonlocal tries
        tries += 1
        if tries == 2:
            own_server.start()
        real(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "deliver", deliver)
        (trial,) = run_all(meanwhile=own_server.kill, **GOOD)
    assert trial.state == State.FINISHED, trial.message
    assert tries > 1
    assert trial.artifacts.get(name="stdout.txt").content() == b"answer 42\n"
    assert not len(store.check(hashes=True))


def test_a_trial_whose_bucket_stays_away_fails_in_a_sentence_and_the_next_one_runs(
    own_server: S3Server, run_all: Callable[..., list[Trial]], script_workload: object, settings: Any
) -> None:
    settings.STORE_PATIENCE_SECONDS = 1
    (trial,) = run_all(meanwhile=own_server.kill, **GOOD)
    assert trial.state == State.FAILED
    assert "The results could not be stored: the store of files does not answer" in trial.message
    assert not trial.artifacts.exists()
    assert not trial.measurements.exists()
    assert not Lease.objects.exists()
    assert (files.trial_directory(trial) / "stdout.txt").read_text() == "answer 42\n", "where the message says"
    own_server.start()
    current()._storage._away_until = 0.0  # type: ignore[attr-defined]  # some seconds later
    assert there(current()) == [], "nothing of it counts"  # type: ignore[arg-type]
    (trial,) = run_all(**GOOD, name="next")
    assert trial.state == State.FINISHED, trial.message


def test_files_of_a_trial_that_was_given_up_meanwhile_are_taken_back(
    bucket: Bucket, run_all: Callable[..., list[Trial]], script_workload: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = files.deliver

    def deliver(trial: Trial, rows: Any) -> None:
        real(trial, rows)
        Trial.objects.get(pk=trial.pk).mark_lost("Its worker stopped reporting.")
        assert there(bucket)

    monkeypatch.setattr(files, "deliver", deliver)
    (lost, *_) = run_all(**GOOD, retries=0)
    assert lost.state == State.LOST
    assert there(bucket) == []


def test_files_stay_where_only_the_answer_of_the_database_was_lost(
    bucket: Bucket, run_all: Callable[..., list[Trial]], script_workload: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, lost = Trial.finish, []

    def finish(self: Trial, result: Any, *, may_repeat: bool) -> Trial | None:
        repeat = real(self, result, may_repeat=may_repeat)
        if not lost:
            lost.append(self.pk)
            raise OperationalError("the connection broke")
        return repeat

    monkeypatch.setattr(Trial, "finish", finish)
    (trial,) = run_all(**GOOD)
    trial.refresh_from_db()
    assert trial.state == State.FINISHED
    assert lost == [trial.pk]
    assert trial.artifacts.get(name="stdout.txt").content() == b"answer 42\n"


def test_what_was_not_delivered_is_forgotten_after_a_day(bucket: Bucket, db: None) -> None:
    old, young = (Path(settings.VAR, "trials", name) for name in ("999998", "999999"))
    for directory in (old, young):
        directory.mkdir(parents=True)
    os.utime(old, (1e9, 1e9))
    delivery.forget_undelivered()
    assert [item.name for item in Path(settings.VAR, "trials").iterdir()] == ["999999"]
