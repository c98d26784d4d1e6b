"""One signed message to a webhook: checked address, no redirects, seconds."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import http.client
import socket
import ssl
import threading
import time
from collections.abc import Iterable
from typing import Any, Final

from workers.notifications.address import checked, reachable

_SILENT_S: Final = 5.0
"""Time limit without a byte."""
_WHOLE_S: Final = 10.0
"""Time limit of an attempt after the name was resolved, however slowly bytes come."""


class Undelivered(Exception):
    """The message did not arrive, with the reason in a sentence."""


def signature(secret: str, moment_s: int, body: bytes) -> str:
    """Return `Rankwire-Signature`: HMAC-SHA256 over time stamp, dot and body."""
    digest = hmac.new(secret.encode(), f"{moment_s}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={moment_s},v1={digest}"


def post(url: str, body: bytes, *, secret: str, headers: dict[str, str], allowed: Iterable[Any]) -> str:
    """Send ``body`` (JSON), return the answer. Raise Refused or Undelivered."""
    scheme, host, port, path = checked(url)
    try:
        address = reachable(host, port, allowed)
    except (OSError, UnicodeError) as error:
        raise Undelivered(f"{host} has no address: {_reason(error)}.") from None
    connection = _Pinned(scheme, host, port, address)
    watch = threading.Timer(_WHOLE_S, connection.cut)
    watch.daemon = True
    watch.start()
    try:
        stamped = {"Rankwire-Signature": signature(secret, int(time.time()), body)}
        connection.request("POST", path, body, {"Content-Type": "application/json", **headers, **stamped})
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException, ValueError) as error:
        if connection.was_cut or isinstance(error, TimeoutError):
            raise Undelivered(f"{host} did not answer in time.") from None
        raise Undelivered(f"{host} could not be reached: {_reason(error)}.") from None
    finally:
        watch.cancel()
        connection.close()
    if 300 <= status < 400:
        raise Undelivered(f"{host} answered {status}: redirects are not followed.")
    if not 200 <= status < 300:
        raise Undelivered(f"{host} answered {status}.")
    return f"{host} answered {status}."


def _reason(error: Exception) -> str:
    # Its text is what the receiver sent. RemoteDisconnected is an error of the connection too.
    if isinstance(error, http.client.HTTPException) and not isinstance(error, OSError):
        return "its answer is not HTTP"
    return str(getattr(error, "strerror", None) or error or type(error).__name__)


class _Pinned(http.client.HTTPConnection):
    """Connection to the checked ``address``; the certificate must match the name."""

    def __init__(self, scheme: str, host: str, port: int, address: str) -> None:
        super().__init__(host, port, timeout=_SILENT_S)
        self.default_port = 443 if scheme == "https" else 80  # leaves it out of the header Host
        self._secure, self._address, self.was_cut = scheme == "https", address, False

    def connect(self) -> None:
        self.sock = socket.create_connection((self._address, self.port), self.timeout)
        if self._secure:
            self.sock = ssl.create_default_context().wrap_socket(self.sock, server_hostname=self.host)
            if self.was_cut:  # `cut` found no socket: the handshake took it out of the plain one
                raise TimeoutError

    def cut(self) -> None:
        """End the connection from another thread."""
        self.was_cut = True
        with contextlib.suppress(OSError, AttributeError):
            self.sock.shutdown(socket.SHUT_RDWR)
