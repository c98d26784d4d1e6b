"""Byte ranges of downloads (RFC 9110)."""

from __future__ import annotations

import pytest
from django.test import Client

from experiments.models import Artifact
from tests.dashboard.api.clients import client_of
from tests.experiments import factories

pytestmark = pytest.mark.django_db
TEXT = bytes(range(256)) * 1000


@pytest.fixture
def artifact() -> Artifact:
    factories.experiment()
    trial = factories.finished()
    artifact = factories.stored_file(trial, "capture.bin", TEXT)
    artifact.save()
    return artifact


@pytest.fixture
def client() -> Client:
    return client_of(factories.person("ada", "viewer"))


def address(artifact: Artifact) -> str:
    return f"/api/v1/trials/{artifact.trial_id}/artifacts/{artifact.name}/"


@pytest.mark.parametrize(
    ("range_header", "first", "last"),
    [
        ("bytes=0-0", 0, 0),
        ("bytes=1000-200999", 1000, 200_999),
        ("bytes=255000-", 255_000, 255_999),
        ("bytes=255000-999999999", 255_000, 255_999),
        ("bytes=-6", 255_994, 255_999),
        ("bytes=-999999999", 0, 255_999),
        ("Bytes = 5-9", 5, 9),
    ],
)
def test_it_gives_the_part_that_is_asked_for(
    client: Client, artifact: Artifact, range_header: str, first: int, last: int
) -> None:
    answer = client.get(address(artifact), headers={"Range": range_header})
    assert answer.status_code == 206
    assert b"".join(answer.streaming_content) == TEXT[first : last + 1]
    assert answer["Content-Range"] == f"bytes {first}-{last}/256000"
    assert answer["Content-Length"] == str(last + 1 - first)
    assert (answer["ETag"], answer["Accept-Ranges"]) == (f'"{artifact.sha256}"', "bytes")
    answer.close()


@pytest.mark.parametrize("range_header", ["", "bytes=0-1,4-5", "lines=1-2", "bytes=a-b", "bytes=-", "bytes=\u0661-2"])
def test_unsupported_ranges_get_the_whole_file(client: Client, artifact: Artifact, range_header: str) -> None:
    answer = client.get(address(artifact), headers={"Range": range_header})
    assert (answer.status_code, b"".join(answer.streaming_content)) == (200, TEXT)


@pytest.mark.parametrize("range_header", ["bytes=256000-", "bytes=9-8", "bytes=-0"])
def test_invalid_ranges_answer_416_with_the_size(client: Client, artifact: Artifact, range_header: str) -> None:
    answer = client.get(address(artifact), headers={"Range": range_header})
    assert (answer.status_code, answer["Content-Range"]) == (416, "bytes */256000")
    assert answer.json()["errors"] == [{"path": "", "message": "the file has 256000 bytes"}]


def test_range_of_another_version_gets_the_whole_file(client: Client, artifact: Artifact) -> None:
    same = client.get(address(artifact), headers={"Range": "bytes=1-", "If-Range": f'"{artifact.sha256}"'})
    other = client.get(address(artifact), headers={"Range": "bytes=1-", "If-Range": '"another"'})
    assert (same.status_code, other.status_code) == (206, 200)
    assert b"".join(other.streaming_content) == TEXT
    same.close()


def test_pages_give_parts_too(client: Client, artifact: Artifact) -> None:
    client.force_login(factories.person("vera", "viewer"))
    answer = client.get(f"/trials/{artifact.trial_id}/files/{artifact.name}", headers={"Range": "bytes=-3"})
    assert (answer.status_code, b"".join(answer.streaming_content)) == (206, TEXT[-3:])
