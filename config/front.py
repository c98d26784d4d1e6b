"""Web worker: waitress in a gunicorn worker; slow clients occupy no thread.

One loop reads the requests and writes the answers of all connections. A thread gets a complete request and is free again
when its answer is in the buffer.
"""

from __future__ import annotations

import copy
import os
import re
import resource
import socket
import sys
import threading
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import ip_address
from types import SimpleNamespace
from typing import Any, Final

from django.conf import settings
from django.db.backends.signals import connection_created
from gunicorn.workers.base import Worker
from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.buffers import OverflowableBuffer
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.server import TcpWSGIServer, UnixWSGIServer
from waitress.task import ThreadedTaskDispatcher
from waitress.utilities import BadRequest, Error, RequestEntityTooLarge

from dashboard.middleware.front import limit_bytes

HEALTH: Final = "/healthz"
POLL_S: Final = 0.5
HEAD_S: Final = 15.0
"""Time limit of the first line and the headers of a request, from the connection or the answer before."""
BODY_S: Final = 120.0
IDLE_S: Final = 60
SWITCH_S: Final = 0.001
"""Interval after which a computing thread yields: the loop and the thread of health checks run often."""
STATEMENT_MS: Final = 30_000
MOST_OF_ONE: Final = 2
"""Requests of one sender that a process serves at once: slow ones leave threads to others."""
USER: Final = "rankwire.user"
"""Key of the environment of WSGI: the application states the user, or None."""
_MOST_CREDENTIALS: Final = 10_000
ACCEPTED_AT_ONCE: Final = 100
MOST_CONNECTIONS: Final = 1000
"""Connections of one process. Beyond it, those that have sent or read nothing for the longest time are closed."""
MOST_BUFFERED_BYTES: Final = 1 << 30
"""Buffer of one answer, on disk, before its thread waits for a slow client."""
MOST_BUFFERED_TOGETHER: Final = 2 << 30
"""Buffers of one process. Beyond it, connections that have read nothing for the longest time are closed."""
MOST_UNREAD_BYTES: Final = 256 << 10
"""Answers of a connection, in memory. A larger one is on disk, and further requests sent before it is read are dropped."""
MOST_CHUNK_HEAD_BYTES: Final = 16 << 10
"""The line before a chunk, or the trailer: waitress copies all of it for each packet."""

MOST_UPLOADS: Final = 4
"""Bodies above the usual limit that one process receives at once: they are on disk before their sender is known."""
SLOWEST_UPLOAD: Final = settings.MAX_BODY_BYTES / BODY_S
"""Bytes per second. A slower one leaves its place: it cannot end in time."""
_FOLDED: Final = re.compile(rb"\r\n[ \t]")
_SESSION: Final = re.compile(rf"\b{settings.SESSION_COOKIE_NAME}=([^;]*)")
_uploads: weakref.WeakSet[Request] = weakref.WeakSet()
_users: dict[int, int] = {}
"""Hash of the credentials of answered requests -> user."""


class TooManyUploads(Error):  # type: ignore[misc]
    """Answer to a large body while others are received."""

    code = 503
    reason = "Service Unavailable"


class Request(HTTPRequestParser):  # type: ignore[misc]
    """Request that reaches the application without a body beyond its limit.

    The application refuses it. Its connection is closed after the answer: what follows is the rest of the body and must
    never be read as a request.
    """

    adj: Any
    error: Any
    completed: bool
    path = ""
    is_upload = False
    began = 0.0

    def parse_header(self, header_plus: bytes) -> None:
        """Refuse framings that servers read differently (RFC 9112, 5.2 and 6.1)."""
        if _FOLDED.search(header_plus):
            raise ParsingError("a header continues on a second line")
        try:
            super().parse_header(header_plus)
        except ValueError as error:  # of an address or a number
            raise ParsingError("the request line or a number cannot be read") from error
        if self.version not in ("1.0", "1.1"):
            raise ParsingError("the version of HTTP is neither 1.0 nor 1.1")
        has_length, is_encoded = "CONTENT_LENGTH" in self.headers, "TRANSFER_ENCODING" in self.headers
        if (self.chunked and has_length) or (self.version == "1.0" and is_encoded):
            raise ParsingError("the length of the body is given twice or by an encoding that HTTP/1.0 does not have")
        if self.chunked or self.content_length > settings.MAX_BODY_BYTES:
            self.adj = copy.copy(self.adj)
            self.adj.max_request_body_size = limit_bytes(self.path.removeprefix(settings.PREFIX)) + 1
            self.is_upload = self.adj.max_request_body_size > settings.MAX_BODY_BYTES + 1
            self.began = time.monotonic()

    def received(self, data: bytes) -> int:
        consumed: int = super().received(data)
        if isinstance(self.error, RequestEntityTooLarge):
            self.error = None
            self.headers["CONNECTION"] = "close"
            self.headers["CONTENT_LENGTH"] = str(max(self.content_length, self.body_bytes_received))
        body = self.body_rcv
        if self.chunked and body is not None and len(body.control_line + body.trailer) > MOST_CHUNK_HEAD_BYTES:
            self.error, self.completed = BadRequest("the line before a chunk or the trailer is too long"), True
        if self.is_upload and not self.completed and self not in _uploads:
            if len(_uploads) >= MOST_UPLOADS:
                slowest = min(_uploads, key=Request.bytes_per_second)
                (slowest if slowest.bytes_per_second() < SLOWEST_UPLOAD else self).refuse_upload()
            if not self.completed:
                _uploads.add(self)
        return consumed

    def bytes_per_second(self) -> float:
        return self.body_bytes_received / (time.monotonic() - self.began + 1)  # type: ignore[no-any-return]

    def refuse_upload(self) -> None:
        """Answer the next byte with an error."""
        _uploads.discard(self)
        self.error, self.completed = TooManyUploads("Other files are being imported. Try again in a minute."), True

    def close(self) -> None:
        _uploads.discard(self)
        super().close()


class Channel(HTTPChannel):  # type: ignore[misc]
    """A connection, with the time since which the rest of its request is due."""

    parser_class = Request
    requests: list[Request]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.waits_since = time.monotonic()

    def received(self, data: bytes) -> bool:
        if self.request is None:
            self.waits_since = time.monotonic()
        return bool(super().received(data))

    def write_soon(self, data: Any) -> int:
        if not self.total_outbufs_len:
            self.last_activity = time.time()  # from now on the client has something to read
        return int(super().write_soon(data))

    def drop_requests(self) -> None:
        """Close the connection when its answers are read."""
        for request in self.requests:
            request.close()
        self.requests, self.close_when_flushed = [], True

    def waited_s(self, now: float) -> float:
        """Return how long the client has sent or read nothing; 0 while it is served."""
        if self.total_outbufs_len:
            return time.time() - float(self.last_activity)
        return now - self.waits_since if self.owes else 0.0

    @property
    def sender(self) -> object:
        headers = self.requests[0].headers
        user = _users.get(_credentials(headers.get("AUTHORIZATION", ""), headers.get("COOKIE", "")))
        return client_address(self.addr[0], headers.get("X_FORWARDED_FOR", "")) if user is None else user

    @property
    def buffered_bytes(self) -> int:
        return sum(len(buffer) for buffer in list(self.outbufs) if isinstance(buffer, OverflowableBuffer))

    @property
    def owes(self) -> bool:
        """Return whether the server waits for the client."""
        return not self.requests and not self.total_outbufs_len

    def is_late(self, now: float) -> bool:
        """Return whether the client exceeded the time limit of a request or answer."""
        if self.total_outbufs_len:
            return self.waited_s(now) > IDLE_S  # waitress would wait until it can write
        began_nothing = self.request is None and self.last_activity > self.creation_time
        if not self.owes or began_nothing:
            return False  # waitress ends connections that are idle between two requests
        in_body = self.request is not None and self.request.headers_finished
        return now - self.waits_since > (BODY_S if in_body else HEAD_S)


class FairDispatcher(ThreadedTaskDispatcher):  # type: ignore[misc]
    """Threads of which one sender occupies a few.

    Its further requests wait without a thread.
    A sender is a user, or the address of requests whose credentials no answer has shown to be a user's.
    """

    def __init__(self) -> None:
        super().__init__()
        self._senders = threading.Lock()
        self._running: Counter[object] = Counter()
        self._waiting: dict[object, deque[Channel]] = {}

    def add_task(self, channel: Channel) -> None:
        sender = channel.sender
        with self._senders:
            if self._running[sender] >= MOST_OF_ONE:
                self._waiting.setdefault(sender, deque()).append(channel)
                return
            self._running[sender] += 1
        super().add_task(_Turn(self, channel, sender))

    def release(self, sender: object) -> None:
        """Serve the next request of the sender."""
        with self._senders:
            line = self._waiting.get(sender)
            channel = line.popleft() if line else None
            if not line:
                self._waiting.pop(sender, None)
            if channel is None:
                self._running[sender] -= 1
                self._running += Counter()  # without senders that run nothing
        if channel is not None:
            super().add_task(_Turn(self, channel, sender))


@dataclass
class _Turn:
    dispatcher: FairDispatcher
    channel: Channel
    sender: object

    def service(self) -> None:
        try:
            self.channel.service()
        finally:
            self.dispatcher.release(self.sender)

    def cancel(self) -> None:
        self.channel.cancel()


class _Server:
    """Server whose own thread answers health checks while all others are busy."""

    channel_class = Channel

    def handle_accept(self) -> None:
        """Accept all waiting connections: a crowd must not delay later clients."""
        for _ in range(ACCEPTED_AT_ONCE):
            before = len(self.active_channels)  # type: ignore[attr-defined]
            super().handle_accept()  # type: ignore[misc]
            if len(self.active_channels) == before:  # type: ignore[attr-defined]
                return

    def add_task(self, channel: Channel) -> None:
        if channel.total_outbufs_len > MOST_UNREAD_BYTES:
            channel.drop_requests()
            return
        asks_for_health = channel.requests[0].path in (HEALTH, settings.PREFIX + HEALTH)
        dispatcher = self.health if asks_for_health else self.task_dispatcher  # type: ignore[attr-defined]
        dispatcher.add_task(channel)


class TcpServer(_Server, TcpWSGIServer):  # type: ignore[misc]
    """Server of an address."""


class UnixServer(_Server, UnixWSGIServer):  # type: ignore[misc]
    """Server of a socket of the file system."""


class BufferedWorker(Worker):  # type: ignore[misc]
    """Worker of gunicorn: gets listening sockets, sends a heartbeat, and ends."""

    def run(self) -> None:
        connection_created.connect(limit_statements)
        sys.setswitchinterval(SWITCH_S)
        connections: dict[int, Any] = {}
        threads = FairDispatcher()
        threads.set_thread_count(self.cfg.threads)
        health = ThreadedTaskDispatcher()
        health.set_thread_count(1)
        servers = [self._server(listener.sock, connections, threads, health) for listener in self.sockets]
        while self.alive and os.getppid() == self.ppid:
            self.notify()
            self._turn(connections, until=time.monotonic() + POLL_S)
            for server in servers:
                drop_late(list(server.active_channels.values()))
        self._finish(servers, connections)
        threads.shutdown(timeout=1)
        health.shutdown(timeout=1)

    def _server(
        self, listener: socket.socket, connections: dict[int, Any], threads: Any, health: Any
    ) -> TcpServer | UnixServer:
        limits = Adjustments(
            sockets=[listener],
            ident=None,
            server_name="localhost",
            backlog=2048,
            connection_limit=_connection_limit(),
            channel_timeout=IDLE_S,
            cleanup_interval=5,
            url_prefix=settings.PREFIX,
            max_request_body_size=settings.MAX_BODY_BYTES + 1,
            max_request_header_size=64 << 10,
            outbuf_overflow=MOST_UNREAD_BYTES,
            outbuf_high_watermark=MOST_BUFFERED_BYTES,
            # Django trusts X-Forwarded-Proto only if the administrator configured a proxy.
            clear_untrusted_proxy_headers=False,
        )
        kind = UnixServer if listener.family == socket.AF_UNIX else TcpServer
        address = (listener.family, listener.type, listener.proto, listener.getsockname())
        application = logged(self.wsgi, self.log)
        server = kind(
            application,
            connections,
            _sock=listener,
            dispatcher=threads,
            adj=limits,
            bind_socket=False,
            sockinfo=address,
        )
        server.health = health
        return server

    def _turn(self, connections: dict[int, Any], *, until: float) -> None:
        while (left_s := until - time.monotonic()) > 0 and self.alive:
            wasyncore.poll2(left_s, connections)

    def _finish(self, servers: Iterable[Any], connections: dict[int, Any]) -> None:
        """Accept no more connections, and send the answers in progress."""
        deadline = time.monotonic() + self.cfg.graceful_timeout
        for server in servers:
            server.accepting = False
            server.del_channel()
        while time.monotonic() < deadline:
            if all(channel.owes for server in servers for channel in server.active_channels.values()):
                break
            self.notify()
            wasyncore.poll2(0.05, connections)


def limit_statements(connection: Any, **_: Any) -> None:
    """Set the time limit of statements: no page waits longer for the database."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('statement_timeout', %s, false)", [str(STATEMENT_MS)])


def drop_late(channels: list[Channel]) -> None:
    """Close late connections, and beyond the maxima those with the longest waits."""
    now = time.monotonic()
    surplus = len(channels) - MOST_CONNECTIONS
    excess_bytes = sum(channel.buffered_bytes for channel in channels) - MOST_BUFFERED_TOGETHER
    for channel in sorted(channels, key=lambda channel: channel.waited_s(now), reverse=True):
        held, waits = channel.buffered_bytes, channel.waited_s(now) > 0
        if channel.is_late(now) or (waits and (surplus > 0 or (held and excess_bytes > 0))):
            surplus, excess_bytes = surplus - 1, excess_bytes - held
            channel.will_close = True
            if channel.total_outbufs_len:
                channel.handle_close()  # nothing can be written


def logged(application: Callable[..., Any], log: Any) -> Callable[..., Any]:
    """Return ``application`` behind a proxy's addresses, with a log of its answers."""

    def serve(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        began, answer = time.monotonic(), SimpleNamespace(status="-", headers=[], sent=None)
        environ["REMOTE_ADDR"] = client_address(environ["REMOTE_ADDR"], environ.get("HTTP_X_FORWARDED_FOR", ""))

        def start(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            answer.status, answer.headers = status, headers
            answer.sent = dict(headers).get("Content-Length")
            return start_response(status, headers, *rest)

        body = application(environ, start)
        if (user := environ.get(USER)) is not None:
            if len(_users) >= _MOST_CREDENTIALS:
                _users.clear()
            _users[_credentials(environ.get("HTTP_AUTHORIZATION", ""), environ.get("HTTP_COOKIE", ""))] = user
        environ["RAW_URI"] = environ["REQUEST_URI"]  # as gunicorn calls it
        # Letters beyond ASCII may be control characters of a terminal.
        plain = {
            k: v.encode("ascii", "backslashreplace").decode() if isinstance(v, str) else v for k, v in environ.items()
        }
        log.access(answer, SimpleNamespace(headers=[]), plain, timedelta(seconds=time.monotonic() - began))
        return body

    return serve


def _credentials(authorization: str, cookies: str) -> int:
    """Return a number that senders cannot predict, instead of secrets."""
    return hash((authorization, *_SESSION.findall(cookies)[-1:]))


def client_address(peer: str, forwarded: str) -> str:
    """Return the address of a client, or of the proxy's last forwarded entry if set.

    Waitress would cut an address of IPv6; entries before the last are the client's.
    """
    return (_address(forwarded.rpartition(",")[2].strip()) if settings.FORWARDED_FOR else "") or _address(peer) or peer


def _address(text: str) -> str:
    """Return the address in a forwarded one with brackets or a port, or "".

    A socket of IPv6 has clients of IPv4 too, which limits by network would take for one.
    """
    host = (text[1:].partition("]")[0] if text.startswith("[") else text).partition("%")[0]
    with suppress(ValueError):
        address = ip_address(host.partition(":")[0] if host.count(":") == 1 else host)
        return str(getattr(address, "ipv4_mapped", None) or address)
    return ""


def _connection_limit() -> int:
    """Raise the limit of open files, and return the share of connections."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = 8192 if most == resource.RLIM_INFINITY else min(most, 8192)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, most))
    return max((allowed - 256) // 3, 64)  # each may hold a file that is sent, and a buffer
