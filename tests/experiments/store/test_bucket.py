"""Files in a bucket of a real server."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ConnectTimeoutError
from django.conf import settings
from django.core.exceptions import SuspiciousOperation

from config.environment import Environment
from config.store import artifacts
from experiments import store
from experiments.errors import StoreUnavailable, Tampered
from tests.s3_server import S3Server


def stored_file(path: str, content: bytes) -> store.StoredFile:
    return store.StoredFile(path, len(content), hashlib.sha256(content).hexdigest(), Path(path).name)


def sent(bucket: store.Bucket, name: str, content: bytes) -> store.StoredFile:
    file = Path(settings.VAR) / "file"
    file.write_bytes(content)
    path = f"{bucket.place_of(7)}/{name}"
    bucket.put(file, path)
    file.unlink()
    return stored_file(path, content)


@pytest.mark.parametrize("size", [0, 1, (8 << 20) - 1, 8 << 20, (20 << 20) + 3])
def test_a_file_comes_back_as_it_was_sent(bucket: store.Bucket, size: int) -> None:
    content = os.urandom(size)
    file = sent(bucket, "capture of a trial @1+2.pcapng.zst", content)
    assert bucket.size(file.path) == size
    assert b"".join(bucket.pieces(file.path)) == content
    with bucket.held(file) as path:
        assert path.read_bytes() == content
        assert path.name == "capture of a trial @1+2.pcapng.zst"
        assert path.is_relative_to(settings.VAR)


def test_parts_of_a_file_are_read_alone(bucket: store.Bucket) -> None:
    content = os.urandom(3 << 20)
    file = sent(bucket, "a", content)
    assert b"".join(bucket.pieces(file.path, 1_000_000, 10)) == content[1_000_000:1_000_010]
    assert b"".join(bucket.pieces(file.path, (3 << 20) - 5)) == content[-5:]


def test_files_of_one_trial_never_overwrite_each_other(bucket: store.Bucket) -> None:
    first, second = sent(bucket, "stdout.txt", b"one"), sent(bucket, "stdout.txt", b"two")
    assert b"".join(bucket.pieces(first.path)) == b"one"
    assert b"".join(bucket.pieces(second.path)) == b"two"
    assert {store.place_within(file.path, 7) for file in (first, second)} == {"stdout.txt"}


def test_a_missing_file_raises_file_not_found(bucket: store.Bucket) -> None:
    file = sent(bucket, "a", b"x")
    bucket.remove(file.path)
    bucket.remove(file.path)
    with pytest.raises(FileNotFoundError):
        bucket.size(file.path)
    with pytest.raises(FileNotFoundError), bucket.held(file):
        pass
    assert not any(Path(settings.VAR, "store-cache").glob("*/*"))


def test_a_file_of_another_content_is_not_used(bucket: store.Bucket, tmp_path: Path) -> None:
    file, other = sent(bucket, "a", b"right"), tmp_path / "other"
    for wrong in (b"wrong", b"shor", b"of another length", b""):
        other.write_bytes(wrong)
        bucket.put(other, file.path)
        with pytest.raises(Tampered), bucket.held(file):
            pass
    assert not any(Path(settings.VAR, "store-cache").glob("*/*"))


def test_a_copy_that_was_changed_here_is_not_used_and_fetched_anew(bucket: store.Bucket) -> None:
    file = sent(bucket, "a", b"right")
    with bucket.held(file) as path:
        pass
    path.write_bytes(b"wrong")
    with pytest.raises(Tampered), bucket.held(file):
        pass
    with bucket.held(file) as path:
        assert path.read_bytes() == b"right"


def test_all_files_of_a_trial_are_removed_and_no_others(bucket: store.Bucket) -> None:
    other = Path(settings.VAR) / "other"
    other.write_bytes(b"x")
    bucket.put(other, "trials/70/stdout.txt")
    for name in ("a", "kept/b"):
        sent(bucket, name, b"y")
    bucket.remove_trial(7)
    assert [path for path, _, _ in bucket.below("trials")] == ["trials/70/stdout.txt"]


def test_path_leads_out_of_no_prefix(s3_server: S3Server, settings: Any, tmp_path: Path) -> None:
    """Test two installations that share a bucket."""

    def store_of(prefix: str) -> Any:
        variables = {**s3_server.variables, "RANKWIRE_STORE_PREFIX": prefix}
        settings.STORAGES = {**settings.STORAGES, "artifacts": artifacts(Environment.of(variables), settings.VAR)}
        return store.current()

    file = tmp_path / "file"
    file.write_bytes(b"of another")
    theirs = store_of("labs/theirs")
    theirs.put(file, "trials/1/a")
    ours = store_of("labs/ours")
    for path in (
        "../theirs/trials/1/a",
        "trials/../../theirs/trials/1/a",
        "/labs/theirs/trials/1/a",
        "trials/1/../../../x",
    ):
        for attempt in (
            ours.size,
            ours.remove,
            lambda path: list(ours.pieces(path)),
            lambda path: ours.put(file, path),
        ):
            with pytest.raises(SuspiciousOperation):
                attempt(path)
    assert list(ours.below("trials")) == list(ours.below("../theirs")) == []
    ours.remove_trial(1)
    assert b"".join(theirs.pieces("trials/1/a")) == b"of another"


def test_files_are_listed_in_the_order_of_the_bytes_of_their_paths(bucket: store.Bucket) -> None:
    names = ["Z", "a b", "a", "a-b", "a.b", "é", "\N{GRINNING FACE}", "sub/x"]
    for name in names:
        sent(bucket, name, b"")
    listed = [store.place_within(path, 7) for path, _, _ in bucket.below("trials")]
    assert sorted(listed) == sorted(names)
    paths = [path for path, _, _ in bucket.below("trials")]
    assert paths == sorted(paths) == sorted(paths, key=str.encode)


def test_wrong_keys_a_missing_bucket_and_no_server_raise(
    bucket: store.Bucket, s3_server: S3Server, settings: Any
) -> None:
    wrong = (
        {"RANKWIRE_STORE_SECRET": "no"},
        {"RANKWIRE_STORE_BUCKET": "none"},
        {"RANKWIRE_STORE_ENDPOINT": "http://127.0.0.1:1"},
    )
    for changed in wrong:
        variables = {**s3_server.variables, **changed}
        settings.STORAGES = {**settings.STORAGES, "artifacts": artifacts(Environment.of(variables), settings.VAR)}
        current = store.current()
        with pytest.raises(StoreUnavailable, match="the store of files"):
            current.size("trials/1/a")
        with pytest.raises(StoreUnavailable), current.held(stored_file("trials/1/a", b"x")):
            pass


def test_requests_fail_fast_after_the_first_failure(
    bucket: store.Bucket, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, client, calls = sent(bucket, "a", b"x"), bucket._storage._client, []

    def away(**_: Any) -> None:
        calls.append(1)
        raise ConnectTimeoutError(endpoint_url="http://127.0.0.1:1")

    with monkeypatch.context() as patch:
        patch.setattr(client, "head_object", away)
        for _ in range(3):
            with pytest.raises(StoreUnavailable):
                bucket.size(file.path)
    assert len(calls) == 1
    with pytest.raises(StoreUnavailable):
        bucket.size(file.path)
    bucket._storage._away_until = 0.0  # some seconds later
    assert bucket.size(file.path) == 1
