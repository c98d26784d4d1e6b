"""Backups of artifacts in a bucket, restored into another path of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings

from config.backup import backup
from config.backup.errors import BackupError
from config.environment import Environment
from config.store import artifacts
from experiments.models import Artifact, State, Trial
from experiments.store import Bucket, current
from tests.config.backup.conftest import Elsewhere
from tests.experiments import factories
from tests.s3_server import S3Server

CONTENT = bytes(range(256)) * 40_000
LOOK = """
import json
from experiments.models import Artifact
from experiments.store import current
print(json.dumps({
    "files": {a.path: len(a.content()) for a in Artifact.objects.all()},
    "here": current().is_here,
}))
"""


@pytest.fixture
def place(transactional_db: None, bucket: Bucket, backups: Path) -> Path:
    """A backup of two artifacts in the bucket."""
    factories.experiment()
    trial = factories.finished()
    factories.stored_file(trial).save()
    factories.stored_file(trial, "capture.pcapng.zst", CONTENT, kind="capture").save()
    Trial.objects.filter(state=State.QUEUED).cancel()
    return backup.make(backups, report=lambda _: None)


@pytest.mark.timeout(180)
def test_it_is_put_back_into_another_part_of_the_bucket_and_overwrites_nothing(
    place: Path,
    elsewhere: Elsewhere,
    s3_server: S3Server,
    output_of: Callable[..., str],
    settings: LazySettings,
    tmp_path: Path,
) -> None:
    files = dict(Artifact.objects.values_list("path", "size_bytes"))
    elsewhere.variables = {**s3_server.variables, "RANKWIRE_STORE_PREFIX": f"{tmp_path.name}-other"}
    other = at(elsewhere.variables, settings)
    occupied = Artifact.objects.get(kind="capture").path
    (tmp_path / "another").write_bytes(b"of another user")
    other.put(tmp_path / "another", occupied)
    done = elsewhere.manage("restore", str(place))
    assert done.returncode != 0
    assert f"the bucket has a different file at {occupied}" in output_of(done)
    assert [path for path, _, _ in other.below("trials")] == [occupied], "nothing else was put there"
    (tmp_path / "another").write_bytes(CONTENT)
    other.put(tmp_path / "another", occupied)  # now it is the same
    done = elsewhere.manage("restore", str(place))
    assert done.returncode == 0, output_of(done)
    assert elsewhere.ask(LOOK) == {"files": files, "here": False}


def at(variables: dict[str, str], settings: LazySettings) -> Any:
    settings.STORAGES = {**settings.STORAGES, "artifacts": artifacts(Environment.of(variables), settings.VAR)}
    return current()


def test_no_backup_is_made_while_the_bucket_is_away(place: Path, backups: Path, settings: LazySettings) -> None:
    for file in backups.rglob("files/**/*"):  # so that they cannot be hard links
        if file.is_file():
            file.unlink()
    at(
        {
            "RANKWIRE_STORE_BUCKET": "b",
            "RANKWIRE_STORE_ENDPOINT": "http://127.0.0.1:1",
            "RANKWIRE_STORE_KEY": "k",
            "RANKWIRE_STORE_SECRET": "s",
        },
        settings,
    )
    with pytest.raises(BackupError, match="the store of files does not answer"):
        backup.make(backups, report=lambda _: None)
    assert len(list(backups.glob("rankwire-*"))) == 1
    assert json.loads((place / "backup.json").read_text())["files"] == 2
