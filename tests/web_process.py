"""The web server, gunicorn and waitress, on the session's test database."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connections

from config.services.lease import ROOT
from tests.conftest import SESSION, Services

READY_S = 120


class Site:
    """A running web server with its address."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self.process, self.port = process, port

    def connection(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)

    def answer(
        self, method: str, path: str, body: Any = None, *, patience_s: float = 30, **headers: str
    ) -> tuple[int, str]:
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=patience_s)
        try:
            client.request(method, path, body, headers)
            answer = client.getresponse()
            return answer.status, answer.read().decode()
        finally:
            client.close()

    def health_s(self) -> float:
        """Seconds until it says that it is well."""
        began = time.monotonic()
        assert self.answer("GET", "/healthz")[0] == 200
        return time.monotonic() - began


@contextmanager
def running_site(services: Services, **variables: str) -> Iterator[Site]:
    """Run one process of it, with ``variables``; it logs to web.log."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port, number = listener.getsockname()[1], listener.fileno()
        argv = [sys.executable, "-m", "gunicorn", "--config", "python:config.gunicorn", "config.wsgi:application"]
        database = connections["default"].settings_dict["NAME"]
        environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "RANKWIRE_VAR": str(SESSION),
            "RANKWIRE_WEB_PROCESSES": "1",
            "RANKWIRE_DEBUG": "1",  # style sheets as they lie in the sources, not as they were gathered last
            "DATABASE_URL": services.postgres.url.rpartition("/")[0] + f"/{database}",
            "REDIS_URL": services.redis.url,
            **variables,
        }
        with (SESSION / "web.log").open("ab") as log:
            process = subprocess.Popen(
                [*argv, "--bind", f"fd://{number}"],
                env=environment,
                cwd=ROOT,
                pass_fds=[number],
                stdout=log,
                stderr=log,
            )
    running = Site(process, port)
    try:
        assert running.answer("GET", "/healthz", patience_s=READY_S)[0] == 200
        yield running
    finally:
        process.kill()
        process.wait()
