"""Restores into the same and a new installation, by every password form."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from config.backup import backup
from config.management.commands import restore  # before the test becomes a user who cannot read Python
from tests.config.backup.conftest import Elsewhere
from tests.experiments import factories

COUNT = "import json; from experiments.models import Experiment; print(json.dumps(Experiment.objects.filter(slug='kept').count()))"
CREATE = (
    "from django.core.management import call_command; call_command('migrate', verbosity=0); "
    "from tests.experiments import factories; factories.experiment(slug='kept'); call_command('backup', {path!r})"
)
FORMS = ("address", "variable", "file")


@pytest.fixture
def backup_path(transactional_db: None, backups: Path) -> Path:
    """A backup with an experiment and a file."""
    factories.experiment(slug="kept")
    factories.stored_file(factories.finished()).save()
    User.objects.create_user("reader")
    return backup.make(backups, secrets=False, report=lambda _: None)


@pytest.fixture(params=FORMS)
def installation(request: pytest.FixtureRequest, elsewhere: Elsewhere, tmp_path: Path) -> Elsewhere:
    """An empty installation with the password in address, variable or file."""
    parts = urlsplit(elsewhere.url)
    bare = parts._replace(netloc=f"{parts.username}@{parts.hostname}:{parts.port}").geturl()
    file = tmp_path / "database-password"
    file.write_text(f"{parts.password}\n")
    elsewhere.variables = {
        "address": {},
        "variable": {"DATABASE_URL": bare, "RANKWIRE_DATABASE_PASSWORD": str(parts.password)},
        "file": {"DATABASE_URL": bare, "RANKWIRE_DATABASE_PASSWORD_FILE": str(file)},
    }[request.param]
    return elsewhere


def test_restore_into_a_new_installation_and_into_the_same_one(
    backup_path: Path, installation: Elsewhere, output_of: Callable[..., str]
) -> None:
    new = installation.manage("restore", str(backup_path))
    assert new.returncode == 0, output_of(new)
    assert installation.ask(COUNT) == 1
    if not installation.variables:
        again = installation.manage("restore", "--replace", str(backup_path))
        assert again.returncode == 0, output_of(again)
        assert installation.ask(COUNT) == 1
    assert len([path for path in (installation.var / "trials").rglob("*") if path.is_file()]) == 1


@pytest.mark.timeout(300)
def test_round_trip_of_an_installation_with_embedded_services(
    backups: Path, tmp_path: Path, output_of: Callable[..., str]
) -> None:
    def manage(var: Path, *arguments: str) -> str:
        variables = {k: v for k, v in os.environ.items() if k not in ("DATABASE_URL", "REDIS_URL")}
        done = subprocess.run(
            [settings.BASE_DIR / "script" / "manage", *arguments],
            env={**variables, "RANKWIRE_VAR": str(var)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, output_of(done)
        return done.stdout

    first, second = tmp_path / "first", tmp_path / "second"
    manage(first, "shell", "--no-imports", "-c", CREATE.format(path=str(backups)))
    manage(second, "restore", str(backups))  # docs/how-to/run-the-server.md replaces an installation
    assert manage(second, "shell", "--no-imports", "-c", COUNT).strip() == "1"


def test_check_shows_the_effect_and_changes_nothing(
    backup_path: Path, elsewhere: Elsewhere, output_of: Callable[..., str]
) -> None:
    done = elsewhere.manage("restore", "--check", str(backup_path))
    assert done.returncode == 0, output_of(done)
    assert "1 artifact" in done.stdout
    assert "would replace nothing" in done.stdout
    assert not (elsewhere.var / "trials").exists()
    assert elsewhere.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'", elsewhere.database) == [(0,)]
    (backup_path / "settings.env").write_text("changed\n")
    refused = elsewhere.manage("restore", "--check", str(backup_path))
    assert refused.returncode != 0
    assert "settings.env was changed" in output_of(refused)


def test_a_tar_archive_on_standard_input_is_restored(
    backup_path: Path, elsewhere: Elsewhere, output_of: Callable[..., str]
) -> None:
    archive = subprocess.run(["tar", "-C", str(backup_path), "-c", "."], capture_output=True, check=True).stdout
    done = elsewhere.manage("restore", "-", stdin=archive)
    assert done.returncode == 0, output_of(done)
    assert elsewhere.ask(COUNT) == 1
    assert not list(elsewhere.var.glob(".backup*"))
    refused = elsewhere.manage("restore", "--replace", "-", stdin=b"no archive")
    assert refused.returncode != 0
    assert "not a tar archive" in output_of(refused)
    assert elsewhere.ask(COUNT) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="root is needed to become another user")
def test_a_backup_of_another_user_is_refused_with_what_to_do(tmp_path: Path) -> None:
    closed = tmp_path / "backups"
    closed.mkdir(mode=0o700)
    os.seteuid(65534)
    try:
        with pytest.raises(CommandError, match="chown -R"):
            call_command(restore.Command(), str(closed / "rankwire-1"))
    finally:
        os.seteuid(0)
