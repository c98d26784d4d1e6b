"""Framing of requests: no bytes of one are the next; broken ones are 400."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import ssl
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from http.client import HTTPSConnection
from pathlib import Path

import pytest

from tests.browser.proxies import caddy, nginx
from tests.conftest import SESSION, Services
from tests.dashboard.people.directory_server import make_certificate
from tests.web_process import Site, running_site

pytestmark = [pytest.mark.django_db, pytest.mark.timeout(240)]
HOST = b"Host: localhost\r\n"
NEXT = b"GET /healthz?next HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
POST = b"POST /healthz HTTP/1.1\r\n" + HOST
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n"
MIB = 1 << 20
LARGE = (NEXT * (1 + 9 * MIB // len(NEXT)))[: 9 * MIB]


@pytest.fixture(scope="module")
def site(services: Services, django_db_setup: None) -> Iterator[Site]:
    with running_site(services) as running:
        yield running


@pytest.fixture
def web_log() -> Iterator[list[bytes]]:
    """Yield a list that gets the bytes of the web server's log at the end."""
    place = SESSION / "web.log"
    before = place.stat().st_size if place.exists() else 0
    yield (lines := [])
    lines.append(place.read_bytes()[before:])
    assert b"Traceback" not in lines[0]
    assert b"uncaptured" not in lines[0]


def statuses(site: Site, sent: bytes) -> list[int]:
    """Return the status of each answer until the server closes a connection."""
    received = b""
    with site.connection() as connection:
        connection.sendall(sent)
        connection.settimeout(20)
        while part := connection.recv(1 << 16):
            received += part
    return [int(each) for each in re.findall(rb"HTTP/1\.[01] (\d{3}) ", received)]


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        pytest.param(POST + b"Content-Length: 5\r\n\r\nhello" + NEXT, [403, 200], id="a body of known length"),
        pytest.param(CHUNKED + b"\r\n5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n" + NEXT, [403, 200], id="chunks"),
        pytest.param(POST + b"Content-Length: %d\r\n\r\n" % len(NEXT) + NEXT * 2, [403, 200], id="a request as a body"),
        pytest.param(
            b"POST /api/v1/imports/ HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n" % (9 * MIB) + LARGE + NEXT,
            [401, 200],
            id="an import full of requests",
        ),
        pytest.param(NEXT.replace(b"Connection: close\r\n", b"") + NEXT, [200, 200], id="pipelined"),
        pytest.param(b"GET /healthz HTTP/1.0\r\n\r\n" + NEXT, [200], id="HTTP/1.0 closes"),
    ],
)
def test_body_ends_where_its_framing_says(site: Site, web_log: list[bytes], sent: bytes, expected: list[int]) -> None:
    assert statuses(site, sent) == expected


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(
            b"POST /api/v1/imports/ HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n" % (300 * MIB), id="import"
        ),
        pytest.param(
            b"POST /api/v1/experiments/ HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n" % (9 * MIB), id="rest"
        ),
        pytest.param(b"POST /imports/ HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n" % (300 * MIB), id="page"),
        pytest.param(
            b"POST /api/v1/imports/ HTTP/1.0\r\n"
            + HOST
            + b"Connection: keep-alive\r\nContent-Length: %d\r\n\r\n" % (300 * MIB),
            id="HTTP/1.0",
        ),
    ],
)
def test_body_beyond_the_limit_ends_the_connection(site: Site, web_log: list[bytes], head: bytes) -> None:
    assert statuses(site, head + NEXT * 3) == [413]


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(POST + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", id="length twice"),
        pytest.param(POST + b"Content-Length: 0\r\nContent-Length: %d\r\n\r\n" % len(NEXT), id="two lengths"),
        pytest.param(POST + b"Content-Length: 5, 5\r\n\r\nhello", id="length as list"),
        pytest.param(POST + b"Content-Length: +5\r\n\r\nhello", id="length with sign"),
        pytest.param(POST + b"Content-Length: \xb2\r\n\r\nhello", id="length in other digits"),
        pytest.param(POST + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n", id="length of 5000 digits"),
        pytest.param(CHUNKED + b"Content-Length: 5\r\n\r\n0\r\n\r\n", id="length and chunks"),
        pytest.param(
            POST.replace(b"1.1", b"1.0") + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", id="chunks in HTTP/1.0"
        ),
        pytest.param(POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", id="space before the colon"),
        pytest.param(POST + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", id="folded encoding"),
        pytest.param(POST + b"X: a\r\n\tb\r\nContent-Length: 5\r\n\r\nhello", id="folded header"),
        pytest.param(POST + b"X: a\nContent-Length: 5\r\n\r\nhello", id="bare LF"),
        pytest.param(POST + b"X: a\rContent-Length: 5\r\n\r\nhello", id="bare CR"),
        pytest.param(CHUNKED + b"\r\n5;a\nx\r\nhello\r\n0\r\n\r\n", id="LF in a chunk extension"),
        pytest.param(CHUNKED + b"\r\n-5\r\nhello\r\n0\r\n\r\n", id="negative chunk"),
        pytest.param(CHUNKED + b"\r\n0x5\r\nhello\r\n0\r\n\r\n", id="chunk size with prefix"),
        pytest.param(CHUNKED + b"\r\n1_0\r\nhellohellohelloh\r\n0\r\n\r\n", id="chunk size with underscore"),
        pytest.param(CHUNKED + b"\r\n5\r\nhelloXX0\r\n\r\n", id="chunk without end"),
        pytest.param(b"GET http://[::1/ HTTP/1.1\r\n" + HOST + b"\r\n", id="address of half an IPv6"),
        pytest.param("GET http://a\u2100b/ HTTP/1.1\r\n".encode() + HOST + b"\r\n", id="address beyond ASCII"),
        pytest.param(b"get /healthz HTTP/1.1\r\n" + HOST + b"\r\n", id="method in small letters"),
        pytest.param(b"GET /healthz HTTP/1.1\r\n" + HOST + b"X: a\0b\r\n\r\n", id="NUL in a header"),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", id="HTTP/2"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", id="TLS"),
    ],
)
def test_unreadable_request_is_answered_400_and_ends_the_connection(
    site: Site, web_log: list[bytes], sent: bytes
) -> None:
    assert statuses(site, sent + NEXT) == [400]


@pytest.mark.parametrize("encoding", [b"xchunked", b"identity", b"chunked\r\nTransfer-Encoding: identity"])
def test_unknown_encoding_is_answered_501_and_ends_the_connection(
    site: Site, web_log: list[bytes], encoding: bytes
) -> None:
    assert statuses(site, POST + b"Transfer-Encoding: " + encoding + b"\r\n\r\n0\r\n\r\n" + NEXT) == [501]


@pytest.mark.parametrize("framing", ["length", "chunks"])
def test_import_above_the_limit_of_other_requests_reaches_the_application(site: Site, framing: str) -> None:
    head = b"POST /api/v1/imports/ HTTP/1.1\r\n" + HOST + b"Connection: close\r\nContent-Type: application/zip\r\n"
    body = b"x" * (9 * MIB)
    if framing == "length":
        sent = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
    else:
        sent = head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n"
    assert statuses(site, sent) == [401]


@pytest.mark.parametrize("proxy", [caddy, nginx])
def test_connections_that_a_proxy_shares_carry_no_smuggled_requests(
    services: Services, django_db_setup: None, tmp_path: Path, proxy: Callable[..., AbstractContextManager[int]]
) -> None:
    """Bodies full of requests beside another client of the same proxy."""
    make_certificate(tmp_path)
    trust = ssl.create_default_context(cafile=str(tmp_path / "certificate.pem"))
    smuggled = b"GET /rankwire/sign-in/?smuggled HTTP/1.1\r\n" + HOST + b"\r\n"
    head = b"POST /rankwire/api/v1/imports/ HTTP/1.1\r\n" + HOST
    with (
        running_site(services, RANKWIRE_PREFIX="/rankwire", RANKWIRE_BEHIND_TLS="1") as behind,
        proxy(tmp_path, behind.port) as port,
        ThreadPoolExecutor(4) as pool,
    ):

        def smuggle(length: int, sent: int) -> None:
            plain = socket.create_connection(("127.0.0.1", port), timeout=2)
            with trust.wrap_socket(plain, server_hostname="localhost") as connection, contextlib.suppress(OSError):
                connection.sendall(
                    head + b"Content-Length: %d\r\n\r\n" % length + (smuggled * (1 + sent // len(smuggled)))[:sent]
                )
                connection.recv(1 << 16)

        attacks = [pool.submit(smuggle, *sizes) for sizes in ((9 * MIB, 9 * MIB), (300 * MIB, 1 << 16)) * 18]
        answers = []
        while not all(each.done() for each in attacks) or len(answers) < 36:
            client = HTTPSConnection("localhost", port, context=trust, timeout=20)
            client.request("GET", "/rankwire/healthz")
            answers.append(client.getresponse().read())
            client.close()
        assert [each.result() for each in attacks] == [None] * 36
    assert {json.loads(each)["ready"] for each in answers} == {True}
