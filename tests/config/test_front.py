"""The web server under load answers other clients within a second."""

from __future__ import annotations

import math
import runpy
import socket
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from django.conf import settings
from django.db import connection, transaction
from waitress.adjustments import Adjustments

from config import front
from experiments.models import ApiToken
from tests.config.processes import wait_for
from tests.conftest import SESSION, Services
from tests.experiments import factories
from tests.web_process import Site, running_site

# The server's own connections need the tables; on a busy machine it takes a while to start.
pytestmark = [pytest.mark.django_db, pytest.mark.timeout(240)]
SLOW = 500


def quick(waits: list[float]) -> bool:
    """Return whether the median is below a second; one answer may be late."""
    return sorted(waits)[len(waits) // 2] < 1.0 and max(waits) < 5.0


@pytest.fixture(scope="module")
def site(services: Services, django_db_setup: None) -> Iterator[Site]:
    with running_site(services) as running:
        assert running.answer("GET", "/sign-in/")[0] == 200
        yield running


@pytest.fixture
def slow_clients(site: Site) -> Iterator[list[socket.socket]]:
    """Open connections without a byte, or with part of the headers or body."""
    texts = (
        b"",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
        b"POST /sign-in/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000000\r\n\r\nusername=",
    )
    people = [site.connection() for _ in range(SLOW)]
    for number, person in enumerate(people):
        person.sendall(texts[number % 3])
    yield people
    for person in people:
        person.close()


def test_500_slow_clients_delay_no_other(site: Site, slow_clients: list[socket.socket]) -> None:
    waits = []
    for _ in range(5):
        for person in slow_clients:
            if person.fileno() % 3:
                person.sendall(b"a")
        waits.append(site.health_s())
        assert site.answer("GET", "/sign-in/")[0] == 200
    assert quick(waits)


def test_no_socket_on_disk_controls_it(site: Site) -> None:
    web = psutil.Process(site.process.pid)
    held = [row.laddr for process in (web, *web.children()) for row in process.net_connections("unix")]
    assert [address for address in held if address] == []


def test_slow_readers_hold_no_thread(site: Site) -> None:
    readers = [site.connection() for _ in range(30)]
    for reader in readers:
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.sendall(b"GET /sign-in/ HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20)
    assert quick([site.health_s() for _ in range(5)])
    for reader in readers:
        reader.close()


def test_50_sign_ins_at_once_delay_no_other(site: Site, empty_redis: object) -> None:
    token = "a" * 32

    def try_to(number: int) -> int:
        form = f"username=nobody{number}&password=wrong&csrfmiddlewaretoken={token}"
        kind = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": f"csrftoken={token}"}
        return site.answer("POST", "/sign-in/", form, **kind)[0]

    with ThreadPoolExecutor(50) as pool:
        statuses = [pool.submit(try_to, number) for number in range(50)]
        waits = [site.health_s() for _ in range(5)]
    assert quick(waits)
    assert {status.result() for status in statuses} == {200}  # two at a time for one address, in a line


@pytest.mark.django_db(transaction=True)
def test_many_slow_requests_of_one_user_delay_no_other(site: Site) -> None:
    keys = [ApiToken.issue(factories.person(name), "laptop")[1] for name in ("eve", "vera")]
    slow, other = ({"Authorization": f"Bearer {key}"} for key in keys)
    assert [site.answer("GET", "/api/v1/metrics/", **sender)[0] for sender in (slow, other)] == [200, 200]
    with ThreadPoolExecutor(20) as pool:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("LOCK TABLE experiments_report")
            blocked = [pool.submit(site.answer, "GET", "/api/v1/reports/", **slow) for _ in range(20)]
            wait_for(lambda: _blocked() >= front.MOST_OF_ONE)
            assert site.answer("GET", "/api/v1/metrics/", patience_s=20, **other)[0] == 200
            assert _blocked() == front.MOST_OF_ONE
        assert {answer.result()[0] for answer in blocked} == {200}


def _blocked() -> int:
    """Return how many requests wait for the table of reports."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'experiments_report'::regclass")
        return int(cursor.fetchone()[0])


@pytest.mark.parametrize("framing", ["Content-Length: 400000000", "Transfer-Encoding: chunked"])
def test_a_body_beyond_the_limit_is_refused_in_our_words_before_it_is_there(site: Site, framing: str) -> None:
    with site.connection() as person:
        person.sendall(f"POST /api/v1/experiments/ HTTP/1.1\r\nHost: localhost\r\n{framing}\r\n\r\n".encode())
        if "chunked" in framing:
            block = b"100000\r\n" + b"x" * (1 << 20) + b"\r\n"
            for _ in range(settings.MAX_BODY_BYTES // (1 << 20)):
                person.sendall(block)
            person.sendall(b"10\r\n" + b"x" * 16)
        said = b""
        while b"errors" not in said and (part := person.recv(65536)):
            said += part
    assert said.startswith(b"HTTP/1.1 413 ")
    assert b"larger than 8 MiB" in said


def test_few_large_bodies_are_received_at_once(site: Site) -> None:
    """They are on disk before their sender is known."""
    head = b"POST /imports/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n"
    people = [site.connection() for _ in range(front.MOST_UPLOADS + 1)]
    for person in people:
        person.sendall(head + b"x" * (4 << 20 if person is not people[-1] else 1000))
        time.sleep(0.1)
    assert people[-1].recv(65536).startswith(b"HTTP/1.1 503 ")
    for person in people:
        person.close()

    def is_received() -> bool:
        with site.connection() as person:
            person.settimeout(1)
            person.sendall(head)
            try:
                return not person.recv(10)
            except TimeoutError:
                return True

    wait_for(is_received)


def test_large_bodies_that_trickle_keep_none_of_another_user_out(site: Site) -> None:
    people = [site.connection() for _ in range(front.MOST_UPLOADS)]
    for person in people:
        person.sendall(b"POST /imports/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n" + b"x" * 1000)
        site.health_s()
    body = b"x" * (settings.MAX_BODY_BYTES + 1)
    assert site.answer("POST", "/api/v1/imports/", body, **{"Content-Type": "application/zip"})[0] == 401
    for person in people:
        person.close()


def test_what_it_answered_is_in_the_log(site: Site) -> None:
    assert site.answer("GET", "/sign-in/?asked=here")[0] == 200
    assert site.answer("GET", "/sign-in/?controls", Referer="\x9b31m")[0] == 200
    wait_for(lambda: b'"GET /sign-in/?controls HTTP/1.1" 200' in (SESSION / "web.log").read_bytes())
    log = (SESSION / "web.log").read_bytes()
    assert b'"GET /sign-in/?asked=here HTTP/1.1" 200' in log
    assert b"\\x9b31m" in log
    assert "\x9b".encode() not in log


def test_process_with_slow_clients_ends_and_another_replaces_it(site: Site, slow_clients: list[socket.socket]) -> None:
    [worker] = psutil.Process(site.process.pid).children()
    worker.terminate()
    assert psutil.wait_procs([worker], timeout=20)[0] == [worker]
    assert site.answer("GET", "/healthz")[0] == 200


def channel(**changes: Any) -> Any:
    """A connection that owes its headers since half a minute, with ``changes``."""
    now = time.monotonic()
    state = {
        "requests": [],
        "total_outbufs_len": 0,
        "outbufs": [],
        "request": SimpleNamespace(headers_finished=False),
        "last_activity": 5.0,
        "creation_time": 5.0,
        "waits_since": now - 30,
        "will_close": False,
        **changes,
    }
    made = front.Channel.__new__(front.Channel)
    vars(made).update(state)
    return made


@pytest.mark.parametrize(
    ("changes", "late"),
    [
        ({}, True),
        ({"request": None}, True),
        ({"request": None, "last_activity": 6.0}, False),
        ({"request": SimpleNamespace(headers_finished=True)}, False),
        ({"request": SimpleNamespace(headers_finished=True), "waits_since": time.monotonic() - 300}, True),
        ({"requests": ["one that is served"]}, False),
        ({"total_outbufs_len": 9, "last_activity": math.inf}, False),
    ],
)
def test_connection_beyond_its_time_limit_is_closed(changes: dict[str, Any], late: bool) -> None:
    made = channel(**changes)
    front.drop_late([made])
    assert made.will_close is late


def test_beyond_the_maximum_the_longest_waiting_connections_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front, "MOST_CONNECTIONS", 2)
    now = time.monotonic()
    oldest, newest = channel(waits_since=now - 9), channel(waits_since=now)
    served = channel(waits_since=now - 60, requests=["one that is served"])
    front.drop_late([newest, served, oldest])
    assert [item.will_close for item in (oldest, newest, served)] == [True, False, False]


@pytest.fixture
def unread() -> Iterator[Callable[[float], tuple[front.Channel, socket.socket]]]:
    """Make connections whose client has read nothing of 8 MB for some seconds."""
    server = SimpleNamespace(active_channels={}, pull_trigger=lambda: None)
    clients: list[socket.socket] = []

    def make(waited_s: float) -> tuple[front.Channel, socket.socket]:
        ours, client = socket.socketpair()
        clients.append(client)
        made = front.Channel(server, ours, ("127.0.0.1", 1), Adjustments(), map={})
        made.write_soon(b"x" * 8_000_000)
        made.last_activity = time.time() - waited_s
        return made, client

    yield make
    for client in clients:
        client.close()


def is_open(client: socket.socket) -> bool:
    client.setblocking(False)
    try:
        while client.recv(1 << 20):
            pass
    except BlockingIOError:
        return True
    return False


def test_connection_that_reads_no_answer_is_closed(
    unread: Callable[[float], tuple[front.Channel, socket.socket]],
) -> None:
    (late, late_client), (slow, slow_client) = unread(front.IDLE_S + 1), unread(front.IDLE_S / 2)
    front.drop_late([late, slow])
    assert [is_open(late_client), is_open(slow_client)] == [False, True]


@pytest.mark.parametrize(("limit", "most"), [("MOST_CONNECTIONS", 1), ("MOST_BUFFERED_TOGETHER", 10_000_000)])
def test_beyond_a_maximum_the_connection_that_read_nothing_for_longest_is_closed(
    unread: Callable[[float], tuple[front.Channel, socket.socket]],
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
    most: int,
) -> None:
    monkeypatch.setattr(front, limit, most)
    (newest, newest_client), (oldest, oldest_client) = unread(1), unread(2)
    front.drop_late([newest, oldest])
    assert [is_open(newest_client), is_open(oldest_client)] == [True, False]


def test_requests_of_a_client_that_reads_no_answer_are_dropped(
    unread: Callable[[float], tuple[front.Channel, socket.socket]],
) -> None:
    served: list[front.Channel] = []
    dispatcher = SimpleNamespace(add_task=served.append)
    server = SimpleNamespace(task_dispatcher=dispatcher, health=dispatcher)
    made, _ = unread(0)
    made.requests = [front.Request(Adjustments()), front.Request(Adjustments())]
    front.TcpServer.add_task(server, made)
    assert (served, made.requests, made.close_when_flushed) == ([], [], True)


def test_what_is_loaded_once_is_not_looked_through_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full collection would hold up requests for a third of a second."""
    loaded: list[bool] = []
    monkeypatch.setattr("config.settings.require_services", bool)  # the test's own stand in no environment
    monkeypatch.setattr("gc.freeze", lambda: loaded.append("dashboard.urls" in sys.modules))
    runpy.run_module("config.wsgi")
    assert loaded == [True], "once, and when every page is loaded"
