"""Downloads from a bucket: whole and in parts, local or passed on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from dashboard.requests import ranges
from experiments.errors import Tampered
from experiments.models import Artifact
from experiments.store import Bucket
from tests.dashboard.api.clients import client_of
from tests.experiments import factories

pytestmark = pytest.mark.django_db
TEXT = bytes(range(256)) * 20_000


@pytest.fixture(params=["copied", "passed on"])
def artifact(request: pytest.FixtureRequest, bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> Artifact:
    if request.param == "passed on":
        monkeypatch.setattr(ranges, "_FETCHED_FIRST", 1000)
    factories.experiment()
    artifact = factories.stored_file(factories.finished(), "capture.bin", TEXT)
    artifact.save()
    return artifact


@pytest.fixture
def client() -> Client:
    return client_of(factories.person("ada", "viewer"))


def address(artifact: Artifact) -> str:
    return f"/api/v1/trials/{artifact.trial_id}/artifacts/{artifact.name}/"


def body(answer: Any) -> bytes:
    return b"".join(answer.streaming_content)


def test_the_whole_comes_as_the_trial_left_it(artifact: Artifact, client: Client) -> None:
    answer = client.get(address(artifact))
    assert answer.status_code == 200
    assert answer["Content-Length"] == str(len(TEXT))
    assert answer["ETag"] == f'"{artifact.sha256}"'
    assert answer["Content-Disposition"] == f'attachment; filename="trial-{artifact.trial_id}-capture.bin"'
    assert body(answer) == TEXT


def test_a_part_comes_as_it_was_asked_for(artifact: Artifact, client: Client) -> None:
    for asked, first, last in (
        ("bytes=0-0", 0, 0),
        ("bytes=2000000-4000000", 2_000_000, 4_000_000),
        ("bytes=-5", -5, None),
    ):
        answer = client.get(address(artifact), headers={"range": asked})
        assert answer.status_code == 206
        wanted = TEXT[first : None if last is None else last + 1]
        assert answer["Content-Length"] == str(len(wanted))
        assert body(answer) == wanted
    other = {"range": "bytes=0-9", "if-range": '"another"'}
    assert body(client.get(address(artifact), headers=other)) == TEXT
    assert client.get(address(artifact), headers={"range": f"bytes={len(TEXT)}-"}).status_code == 416


def test_missing_and_changed_artifacts_are_reported(
    artifact: Artifact, client: Client, bucket: Bucket, tmp_path: Path
) -> None:
    (tmp_path / "other").write_bytes(b"another length")
    bucket.put(tmp_path / "other", artifact.path)
    assert client.get(address(artifact)).status_code == 409
    bucket.remove(artifact.path)
    assert client.get(address(artifact)).status_code == 410


def test_a_changed_file_never_arrives_whole(artifact: Artifact, client: Client, bucket: Bucket, tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(TEXT[:-1] + b"X")
    bucket.put(tmp_path / "other", artifact.path)
    answer = client.get(address(artifact))
    if answer.status_code != 409:
        came: list[bytes] = []
        with pytest.raises(Tampered):
            came.extend(answer.streaming_content)  # type: ignore[attr-defined]
        assert sum(map(len, came)) < len(TEXT)


def test_an_unreachable_bucket_is_reported_with_retry_after(artifact: Artifact, client: Client, settings: Any) -> None:
    away = {**settings.STORAGES["artifacts"]["OPTIONS"], "endpoint_url": "http://127.0.0.1:1"}
    settings.STORAGES = {**settings.STORAGES, "artifacts": {**settings.STORAGES["artifacts"], "OPTIONS": away}}
    answer = client.get(address(artifact))
    assert answer.status_code == 503
    assert answer["Retry-After"]
