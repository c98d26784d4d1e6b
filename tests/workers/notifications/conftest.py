"""A receiver of webhooks, people who want mail, an ending experiment."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network
from typing import Any

import pytest

from experiments.models import Experiment, NoticeChoices
from tests.experiments import factories


class Receiver(ThreadingHTTPServer):
    """Keeps requests; answers with the next of `statuses`, then 200."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.messages: list[tuple[dict[str, str], bytes]] = []
        self.statuses: list[int] = []
        self.url = f"http://127.0.0.1:{self.server_port}/hook"


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.messages.append((dict(self.headers), body))
        self.send_response(self.server.statuses.pop(0) if self.server.statuses else 200)
        self.send_header("Location", "http://127.0.0.1:1/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    settings.WEBHOOK_NETWORKS = [ip_network("127.0.0.0/8")]
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def mails(settings: Any, mailoutbox: list[Any]) -> list[Any]:
    """Sent mails of an installation that can send."""
    settings.SENDS_MAIL, settings.PUBLIC_ADDRESS = True, "https://lab.example.org"
    settings.DEFAULT_FROM_EMAIL = "rankwire@example.org"
    return mailoutbox


@pytest.fixture
def person(db: None) -> Any:
    return factories.person("okafor", "submitter", email="okafor@example.org")


@pytest.fixture
def wants() -> Callable[..., NoticeChoices]:
    def wants(user: Any, of: str = "all", **events: bool) -> NoticeChoices:
        chosen = events or {"ended": True, "failed": True, "stepped": True}
        return NoticeChoices.objects.create(user=user, of=of, **chosen)

    return wants


@pytest.fixture
def experiment(person: Any, empty_redis: Any) -> Experiment:
    """Four trials, all waiting."""
    return factories.experiment(owner=person)


def run(experiment: Experiment, *, failing: int = 0) -> None:
    """Take all its trials through their life; the first ``failing`` ones fail."""
    for number in range(experiment.trials.filter(state="queued").count()):
        if number < failing:
            factories.running().fail(f"mpirun ended with status {number + 1}\nsecond line")
        else:
            factories.finished()
