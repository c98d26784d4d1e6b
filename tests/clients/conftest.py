"""A server and its client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from rankwire_client import Client

from experiments.models import ApiToken
from tests.experiments import factories


@pytest.fixture
def client(
    empty_redis: object, transactional_db: None, live_server: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Client]:
    _, key = ApiToken.issue(factories.person("ada", "submitter"), "test")
    monkeypatch.setenv("RANKWIRE_URL", live_server.url)
    monkeypatch.setenv("RANKWIRE_TOKEN", key)
    with Client() as made:
        yield made


class Cut(httpx.HTTPTransport):
    """Interrupts the first ``times`` downloads; ``ranges`` are the requested ones."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.remaining, self.ranges = times, list[str]()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = super().handle_request(request)
        if "Content-Disposition" not in answer.headers:
            return answer
        self.ranges.append(request.headers.get("Range", ""))
        if not self.remaining:
            return answer
        self.remaining -= 1
        return httpx.Response(answer.status_code, headers=answer.headers, stream=_Half(answer.read()))


class _Half(httpx.SyncByteStream):
    def __init__(self, content: bytes) -> None:
        self.content = content

    def __iter__(self) -> Iterator[bytes]:
        yield self.content[: len(self.content) // 2]
        raise httpx.ReadError("the connection was lost")


@pytest.fixture
def cut() -> type[Cut]:
    return Cut
