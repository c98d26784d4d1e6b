"""Refusals of a restore, and its atomicity when interrupted."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command

from config.backup import places as changing
from config.backup import restore, settings_file
from config.backup.errors import BackupError
from config.services.lease import Lock
from tests.config.backup.conftest import Elsewhere
from tests.experiments import factories


@pytest.fixture
def places(elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch) -> changing.Places:
    """A restore before the exchange; data are labelled old or new."""
    places = changing.Places(elsewhere.var, elsewhere.database)
    elsewhere.execute(f"CREATE DATABASE {places.new_database}")
    for name, text in ((places.database, "old"), (places.new_database, "new")):
        elsewhere.execute(f"CREATE TABLE it_is_the_{text} ()", name)
    for directory, text in ((places.trials, "old"), (places.new_files, "new")):
        directory.mkdir(parents=True)
        (directory / text).write_text("")

    @contextmanager
    def server() -> Iterator[psycopg.Connection[Any]]:
        with psycopg.connect(f"{elsewhere._server}/postgres", autocommit=True) as connection:
            yield connection

    monkeypatch.setattr(changing.Places, "here", lambda: places)
    monkeypatch.setattr(changing, "maintenance", server)
    monkeypatch.setattr(settings, "VAR", elsewhere.var)
    return places


def which(elsewhere: Elsewhere, places: changing.Places) -> tuple[str, str]:
    """Return the labels of the current database and files."""
    [table] = elsewhere.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'", places.database)
    [file] = places.trials.iterdir()
    return table[0].removeprefix("it_is_the_"), file.name


def change(places: changing.Places) -> None:
    with changing.maintenance() as server:
        changing.change_places(places, server)


def test_old_and_new_change_places_and_the_old_goes(elsewhere: Elsewhere, places: changing.Places) -> None:
    change(places)
    assert which(elsewhere, places) == ("new", "new")
    changing.heal()
    assert which(elsewhere, places) == ("new", "new")
    assert elsewhere.databases() == [elsewhere.database]
    assert list(elsewhere.var.glob("trials*")) == [places.trials]


@pytest.mark.parametrize("moved", [0, 1, 2])
def test_the_next_start_takes_back_what_was_not_committed(
    moved: int, elsewhere: Elsewhere, places: changing.Places
) -> None:
    """Interrupted after `moved` of the two directories were renamed."""
    if moved > 0:
        places.trials.rename(places.old_files)
    if moved > 1:
        places.new_files.rename(places.trials)
    changing.heal()
    assert which(elsewhere, places) == ("old", "old")
    assert elsewhere.databases() == [elsewhere.database]
    assert list(elsewhere.var.glob("trials*")) == [places.trials]


def test_who_still_uses_the_database_keeps_everything_as_it_was(elsewhere: Elsewhere, places: changing.Places) -> None:
    with (
        psycopg.connect(f"{elsewhere._server}/{places.new_database}"),
        pytest.raises(psycopg.errors.ObjectInUse),
    ):
        change(places)
    assert which(elsewhere, places) == ("old", "old")


def test_a_directory_that_cannot_be_moved_takes_the_databases_back(
    elsewhere: Elsewhere, places: changing.Places
) -> None:
    (places.new_files / "new").unlink()
    places.new_files.rmdir()
    with pytest.raises(FileNotFoundError):
        change(places)
    assert which(elsewhere, places) == ("old", "old")
    assert not places.old_files.exists()


def test_nothing_starts_while_one_is_put_back(places: changing.Places) -> None:
    lock = Lock(places.var, "restore")
    assert lock.try_to_take()
    try:
        with pytest.raises(CommandError, match="a restore is running"):
            call_command("set_up", "--no-demo")
    finally:
        lock.release()
    assert places.new_files.is_dir()


@pytest.mark.django_db
def test_what_people_made_is_not_replaced_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "VAR", tmp_path)
    call_command("load_library", stdout=io.StringIO())  # as a first start does
    assert restore.existing_contents() == []
    get_user_model().objects.create_superuser("admin")
    assert restore.existing_contents() == []
    factories.experiment()
    factories.person("reader")
    (tmp_path / "trials" / "7").mkdir(parents=True)
    assert restore.existing_contents() == ["1 experiment", "1 account", f"files in {tmp_path / 'trials'}"]


@pytest.mark.django_db
def test_it_refuses_while_a_worker_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_redis: object) -> None:
    monkeypatch.setattr(settings, "VAR", tmp_path)
    seat = Lock(tmp_path, "worker")
    assert seat.try_to_take()
    with pytest.raises(BackupError, match="a worker is running; stop script/server"), restore._exclusive_use():
        pass
    seat.release()


@pytest.mark.django_db
def test_an_outdated_first_password_is_removed(tmp_path: Path) -> None:
    get_user_model().objects.create_superuser("admin", password="of the backup")
    file = tmp_path / "var" / settings_file.PASSWORD_FILE
    file.parent.mkdir()
    file.write_text("of the backup\n")
    [note] = restore._put_secrets(tmp_path, file.parent)
    assert "the backup has no secret key" in note
    assert file.exists()
    file.write_text("of the one before\n")
    restore._put_secrets(tmp_path, file.parent)
    assert not file.exists()


def test_settings_travel_without_secrets_and_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKWIRE_TIME_ZONE", "Europe/Vienna")
    monkeypatch.setenv("RANKWIRE_LDAP_PASSWORD", "of the directory")
    monkeypatch.setenv("RANKWIRE_STORE_SECRET", "of the bucket")
    monkeypatch.setenv("RANKWIRE_VAR", "/srv/here")
    settings_file.store(tmp_path / "without", secrets=False)
    text = (tmp_path / "without" / "settings.env").read_text()
    assert 'RANKWIRE_TIME_ZONE="Europe/Vienna"' in text
    assert "of the directory" not in text
    assert "of the bucket" not in text
    assert "/srv/here" not in text
    settings_file.store(tmp_path / "with", secrets=True)
    assert (tmp_path / "with" / "settings.env").read_text() == text
    held = (tmp_path / "with" / "secrets" / "secrets.env").read_text()
    assert 'RANKWIRE_LDAP_PASSWORD="of the directory"' in held
    assert 'RANKWIRE_STORE_SECRET="of the bucket"' in held
    assert settings_file.differing(tmp_path / "with") == []
    monkeypatch.setenv("RANKWIRE_TIME_ZONE", "UTC")
    assert settings_file.differing(tmp_path / "with") == ["RANKWIRE_TIME_ZONE=Europe/Vienna"]


def test_no_setting_that_is_a_secret_by_its_name_travels_as_another() -> None:
    by_name = {
        name for name in type(settings.ENVIRONMENT).model_fields if {"KEY", "PASSWORD", "SECRET"} & set(name.split("_"))
    }
    assert "RANKWIRE_STORE_SECRET" in by_name
    assert by_name <= settings_file.SECRET | settings_file.ADDRESSES
