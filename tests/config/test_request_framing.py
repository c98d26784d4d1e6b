"""Framing of requests: no bytes of one are the next; broken ones are 400."""

from __future__ import annotations

import contextlib
import json
import random
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
    path = SESSION / "web.log"
    before = path.stat().st_size if path.exists() else 0
    yield (lines := [])
    lines.append(path.read_bytes()[before:])
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
    return [int(status) for status in re.findall(rb"HTTP/1\.[01] (\d{3}) ", received)]


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
        pytest.param(CHUNKED + b"\r\n1;" + b"a" * (20 << 10), [400], id="a long line before a chunk"),
        pytest.param(CHUNKED + b"\r\n0\r\nX: " + b"a" * (20 << 10), [400], id="a long trailer"),
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


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        pytest.param(b"GET //[ HTTP/1.1\r\n" + HOST + b"\r\n", 404, id="half an IPv6 without scheme"),
        pytest.param(b"GET http://a:x/ HTTP/1.1\r\n" + HOST + b"\r\n", 302, id="port in letters"),
        pytest.param(b"GET http://a:99999/ HTTP/1.1\r\n" + HOST + b"\r\n", 302, id="port too large"),
        pytest.param(b"GET /\xff\xfe HTTP/1.1\r\n" + HOST + b"\r\n", 400, id="path of no text"),
        pytest.param(b"GET /%ff%00%2e%2e/ HTTP/1.1\r\n" + HOST + b"\r\n", 404, id="path of odd escapes"),
        pytest.param(b"GET /\0 HTTP/1.1\r\n" + HOST + b"\r\n", 404, id="NUL in the path"),
        pytest.param(b"GET / HTTP/9.9\r\n" + HOST + b"\r\n", 400, id="HTTP/9.9"),
        pytest.param(b"GET / HTTP/1.1 x\r\n" + HOST + b"\r\n", 400, id="four words"),
        pytest.param(b"GET\r\n" + HOST + b"\r\n", 400, id="one word"),
        pytest.param(b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400, id="header without a colon"),
        pytest.param(b"GET / HTTP/1.1\r\n: x\r\n\r\n", 400, id="header without a name"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400, id="host with a space"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, id="two hosts"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", 400, id="host of half an IPv6"),
        pytest.param(
            b"GET /sign-in/ HTTP/1.1\r\n" + HOST + b"Cookie: \xff;=;rankwire_session=\xe9\r\n\r\n", 200, id="odd cookie"
        ),
        pytest.param(b"CONNECT a:1 HTTP/1.1\r\n" + HOST + b"\r\n", 404, id="CONNECT"),
        pytest.param(b"OPTIONS * HTTP/1.1\r\n" + HOST + b"\r\n", 404, id="OPTIONS *"),
        pytest.param(
            b"GET /api/v1/trials/ HTTP/1.1\r\n" + HOST + b"Authorization: Bearer \xff\xfe\r\n\r\n",
            401,
            id="token of no text",
        ),
        pytest.param(
            b"GET /api/v1/trials/ HTTP/1.1\r\n" + HOST + b"Authorization: Bearer a b c\r\n\r\n",
            401,
            id="token of three words",
        ),
        pytest.param(
            b"POST /sign-in/ HTTP/1.1\r\n" + HOST + b"Content-Type: multipart/form-data\r\nContent-Length: 2\r\n\r\nab",
            403,
            id="form without a boundary",
        ),
        pytest.param(
            b"POST /sign-in/ HTTP/1.1\r\n"
            + HOST
            + b"Content-Type: text/plain; charset=\xff\r\nContent-Length: 2\r\n\r\nab",
            403,
            id="charset of no text",
        ),
    ],
)
def test_odd_request_is_answered_once(site: Site, web_log: list[bytes], sent: bytes, status: int) -> None:
    assert statuses(site, sent.replace(HOST, HOST + b"Connection: close\r\n"))[:1] == [status]


@pytest.mark.timeout(240)
def test_spoiled_requests_are_answered_without_a_traceback(site: Site, web_log: list[bytes]) -> None:
    """Test requests with some bytes changed, removed or added."""
    chance = random.Random(38)
    whole = (
        b"POST /sign-in/?a=b HTTP/1.1\r\n" + HOST + b"Cookie: a=b\r\nContent-Type: a/b\r\nContent-Length: 3\r\n\r\nabc"
    )
    answered = 0
    for _ in range(300):
        spoiled = bytearray(whole)
        for _ in range(chance.randrange(1, 6)):
            at = chance.randrange(len(spoiled) - 8)
            change = chance.randrange(3)
            if change == 0:
                spoiled[at] = chance.randrange(256)
            elif change == 1:
                del spoiled[at : at + chance.randrange(1, 8)]
            else:
                spoiled[at:at] = chance.choice((b"\r\n", b"\0", b"\xff", b":", b" ", b"%", b"[", b"9" * 30))
        with site.connection() as connection:
            connection.sendall(bytes(spoiled) + b"\r\n\r\n")
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(20)
            received = b""
            while part := connection.recv(1 << 16):
                received += part
            codes = re.findall(rb"^HTTP/1\.[01] (\d{3}) ", received)
            answered += bool(codes)
            assert not codes or codes[0] < b"500" or codes[0] == b"501", (spoiled, codes)
    assert answered > 200


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
        while not all(attack.done() for attack in attacks) or len(answers) < 36:
            client = HTTPSConnection("localhost", port, context=trust, timeout=20)
            client.request("GET", "/rankwire/healthz")
            answers.append(client.getresponse().read())
            client.close()
        assert [attack.result() for attack in attacks] == [None] * 36
    assert {json.loads(answer)["ready"] for answer in answers} == {True}
