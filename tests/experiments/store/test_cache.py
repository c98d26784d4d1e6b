"""The cache of a bucket: size limit and locks."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.errors import StoreUnavailable, Tampered
from experiments.store import StoredFile
from experiments.store.cache import Cache


def stored_file(letter: str, size: int = 40) -> StoredFile:
    return StoredFile(f"trials/1/{letter}", size, hashlib.sha256(letter.encode()).hexdigest(), letter)


def pieces(file: StoredFile) -> Iterator[bytes]:
    yield file.name.encode() * file.size_bytes


def nothing() -> Iterator[bytes]:
    raise AssertionError("it was fetched again")
    yield b""


def held(cache: Cache, letter: str, size: int = 40) -> None:
    with cache.held(stored_file(letter, size), pieces(stored_file(letter, size))):
        pass


def names(cache: Cache) -> set[str]:
    return {path.name for path in cache.directory.glob("*/*")}


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache", 100)


def test_what_was_fetched_is_not_fetched_again(cache: Cache) -> None:
    held(cache, "a")
    with cache.held(stored_file("a"), nothing()) as path:
        assert path.read_bytes() == b"a" * 40


def test_the_longest_unused_goes_first(cache: Cache) -> None:
    for age, letter in ((300, "a"), (200, "b")):
        held(cache, letter)
        os.utime(cache.directory / stored_file(letter).sha256, (age, age))
    held(cache, "a")
    held(cache, "c")
    assert names(cache) == {"a", "c"}


def test_copies_in_use_stay_and_a_full_cache_raises(cache: Cache) -> None:
    with (
        cache.held(stored_file("a"), pieces(stored_file("a"))) as first,
        cache.held(stored_file("b"), pieces(stored_file("b"))),
    ):
        with pytest.raises(StoreUnavailable, match="no room for c"):
            held(cache, "c")
        assert first.read_bytes() == b"a" * 40
    held(cache, "c")
    assert len(names(cache)) == 2


def test_a_file_longer_than_the_cache_is_refused_before_it_is_fetched(cache: Cache) -> None:
    with (
        pytest.raises(StoreUnavailable, match="RANKWIRE_STORE_CACHE_MIB"),
        cache.held(stored_file("a", 101), nothing()),
    ):
        pass


def test_what_is_being_fetched_counts_and_goes_when_it_fails(cache: Cache) -> None:
    def broken() -> Iterator[bytes]:
        yield b"a"
        with pytest.raises(StoreUnavailable):
            held(cache, "b", 70)
        raise Tampered("no")

    with pytest.raises(Tampered), cache.held(stored_file("a"), broken()):
        pass
    held(cache, "b", 70)
    assert names(cache) == {"b"}
    assert not list(cache.directory.glob(".part-*"))


def test_parts_of_processes_that_died_are_removed(cache: Cache) -> None:
    held(cache, "a", 10)
    (cache.directory / ".part-0").write_bytes(bytes(60))
    held(cache, "b", 80)
    assert names(cache) == {"a", "b"}
