"""Values of the cache: only this installation writes what it unpickles."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
import redis
from django.core.cache import caches

from config.cache import ForgedValue
from tests.conftest import Services


class Program:
    """A pickle that touches a file when it is read."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.file,)


@pytest.fixture
def client(services: Services) -> redis.Redis:
    return redis.Redis.from_url(services.redis.url)


@pytest.mark.parametrize("beginning", [b"", bytes(32)], ids=["unsigned", "forged"])
def test_cache_runs_no_code_of_values_that_others_wrote(client: redis.Redis, beginning: bytes, tmp_path: Path) -> None:
    cache = caches["default"]
    cache.set("mine", ("a", 1))
    client.set(cache.make_key("mine"), beginning + pickle.dumps(Program(tmp_path / "run")))
    with pytest.raises(ForgedValue):
        cache.get("mine")
    with pytest.raises(ForgedValue):
        cache.get_many(["mine"])
    assert list(tmp_path.iterdir()) == []


def test_cache_returns_values_and_counts(client: redis.Redis) -> None:
    cache = caches["default"]
    for value in (("a", 1), 0, 7, -1, True, None, "text", {"a": [1.5]}):
        cache.set("value", value)
        assert cache.get("value", "missing") == value
    cache.set("count", 7)
    assert cache.incr("count") == 8
    assert client.get(cache.make_key("count")) == b"8"
    assert cache.make_key("count").startswith("rankwire:")  # a restore deletes these
