"""Network between a worker and its services, which tests cut silently."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from urllib.parse import urlsplit

from django.db import connections

from tests.conftest import Services
from tests.s3_server import S3Server


def database_of(services: Services) -> str:
    """The address of the tests' database."""
    return f"{services.postgres.url.rpartition('/')[0]}/{connections['default'].settings_dict['NAME']}"


class Cables:
    """One to PostgreSQL, one to Redis and one to the bucket."""

    def __init__(self, services: Services, store: S3Server) -> None:
        self._whole = threading.Event()
        self._whole.set()
        self._cables = [
            _Cable(urlsplit(url).port or 0, self._whole)
            for url in (database_of(services), services.redis.url, store.address)
        ]
        database, redis, bucket = (cable.port for cable in self._cables)
        self.variables = {
            "DATABASE_URL": _with_port(database_of(services), database),
            "REDIS_URL": _with_port(services.redis.url, redis),
            "RANKWIRE_STORE_ENDPOINT": _with_port(store.address, bucket),
        }
        """Variables that a worker needs."""

    def cut(self) -> None:
        self._whole.clear()

    def mend(self) -> None:
        """Deliver data that was sent meanwhile, as retransmissions do."""
        self._whole.set()

    def close(self) -> None:
        self._whole.set()
        for cable in self._cables:
            cable.listener.close()


def _with_port(url: str, port: int) -> str:
    parts = urlsplit(url)
    who, at, _ = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{who}{at}127.0.0.1:{port}").geturl()


class _Cable:
    def __init__(self, target: int, whole: threading.Event) -> None:
        self._target, self._whole = target, whole
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                coming, _ = self.listener.accept()
                threading.Thread(target=self._connect, args=(coming,), daemon=True).start()

    def _connect(self, coming: socket.socket) -> None:
        self._whole.wait()
        try:
            going = socket.create_connection(("127.0.0.1", self._target), timeout=10)
        except OSError:
            coming.close()
            return
        going.settimeout(None)
        threading.Thread(target=self._hand_on, args=(going, coming), daemon=True).start()
        self._hand_on(coming, going)

    def _hand_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                self._whole.wait()
                target.sendall(data)
        self._whole.wait()
        for item in (source, target):
            with suppress(OSError):
                item.shutdown(socket.SHUT_RDWR)
        source.close()
