"""Limits per address behind the documented proxies."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from contextlib import AbstractContextManager
from http.client import HTTPSConnection
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

import pytest

from config.front import logged
from tests.browser.proxies import caddy, nginx
from tests.conftest import Services
from tests.dashboard.people.directory_server import make_certificate
from tests.web_process import running_site

pytestmark = [pytest.mark.django_db, pytest.mark.timeout(240)]
_CSRF = "a" * 32


@pytest.mark.parametrize(
    ("proxy", "first", "second"), [(caddy, "127.0.0.3", "127.0.0.4"), (nginx, "127.0.0.5", "127.0.0.6")]
)
def test_one_client_uses_up_no_limit_of_another(
    services: Services,
    django_db_setup: None,
    tmp_path: Path,
    proxy: Callable[..., AbstractContextManager[int]],
    first: str,
    second: str,
) -> None:
    make_certificate(tmp_path)
    trust = ssl.create_default_context(cafile=str(tmp_path / "certificate.pem"))
    variables = {"RANKWIRE_PREFIX": "/rankwire", "RANKWIRE_BEHIND_TLS": "1", "RANKWIRE_FORWARDED_FOR": "1"}
    with running_site(services, **variables) as behind, proxy(tmp_path, behind.port) as port:

        def open_reset_link(client: str, forged: str) -> int:
            connection = HTTPSConnection("localhost", port, context=trust, timeout=20, source_address=(client, 0))
            headers = {
                "Cookie": f"csrftoken={_CSRF}",
                "Referer": f"https://localhost:{port}/",
                "Content-Type": "application/x-www-form-urlencoded",
                "X-Forwarded-For": forged,
            }
            body = urlencode({"csrfmiddlewaretoken": _CSRF})
            connection.request("POST", "/rankwire/account/password/reset/1-abc-def/", body, headers)
            status = connection.getresponse().status
            connection.close()
            return status

        attacks = [open_reset_link(first, f"192.0.2.{number}") for number in range(21)]
        assert attacks == [200] * 20 + [429]
        assert open_reset_link(second, first) == 200


@pytest.mark.parametrize(
    ("forwarded", "client"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("192.0.2.1, 203.0.113.7:52110", "203.0.113.7"),
        ("2001:db8::1", "2001:db8::1"),
        ("[2001:db8::1]:443", "2001:db8::1"),
        ("fe80::1%eth0", "fe80::1"),
        ("a:b", "198.51.100.9"),
        ("unknown", "198.51.100.9"),
        ("", "198.51.100.9"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
    ],
)
def test_the_address_of_the_client_has_no_port_and_is_one(settings: Any, forwarded: str, client: str) -> None:
    settings.FORWARDED_FOR = True
    # As a socket of IPv6 states one of IPv4.
    environ = {"HTTP_X_FORWARDED_FOR": forwarded, "REMOTE_ADDR": "::ffff:198.51.100.9", "REQUEST_URI": "/"}
    serve = logged(lambda environ, start: [], SimpleNamespace(access=lambda *_: None))
    serve(environ, lambda *_: None)
    assert environ["REMOTE_ADDR"] == client
