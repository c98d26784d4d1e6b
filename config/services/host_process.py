"""Host process of the embedded services: arguments VAR READY_FD SERVICE...

It starts the servers, writes their addresses to services.json, restarts servers that die, and ends with its last user
(config/services/lease.py). The servers end with it, also if it is killed.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from config.secrets import read_or_create_secret
from config.services.errors import ServiceError
from config.services.lease import FILE, HOST_LOCK, Lock, State, read_state, write_state
from config.services.postgres import Postgres
from config.services.redis import Redis
from config.services.service import Service

POLL_S = 0.2
STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
MAX_RESTARTS, RESTART_WINDOW_S = 5, 60.0


class ServiceHost:
    """The services of one var directory."""

    def __init__(self, var: Path, names: list[str]) -> None:
        self.var = var
        kinds: dict[str, type[Postgres] | type[Redis]] = {"postgres": Postgres, "redis": Redis}
        self.services: dict[str, Service] = {
            name: kinds[name](
                var / name, password=read_or_create_secret(var / f"{name}-password"), log=var / "log" / f"{name}.log"
            )
            for name in names
        }
        # After a killed host process: the same ports, so that running programs find the services again.
        previous = read_state(var)
        for name, url in (("postgres", previous.database_url), ("redis", previous.redis_url)):
            if name in self.services and url:
                self.services[name].port = urlsplit(url).port or 0
        self.restarts: list[float] = []

    def start(self) -> None:
        for service in self.services.values():
            service.start()
        urls = {name: service.url for name, service in self.services.items()}
        write_state(self.var, State(database_url=urls.get("postgres", ""), redis_url=urls.get("redis", "")))

    def watch(self, users: Lock) -> None:
        """Restart servers until the last user is gone or a stop signal arrives."""
        while not users.try_to_take():
            if signal.sigtimedwait(STOP_SIGNALS, POLL_S):
                return
            for service in self.services.values():
                if not service.running:
                    self._restart(service)

    def stop(self) -> None:
        (self.var / FILE).unlink(missing_ok=True)
        for service in reversed(self.services.values()):
            service.stop()

    def _restart(self, service: Service) -> None:
        now = time.monotonic()
        self.restarts = [moment for moment in self.restarts if now - moment < RESTART_WINDOW_S] + [now]
        if len(self.restarts) > MAX_RESTARTS:
            raise ServiceError(f"{service.name} died {MAX_RESTARTS} times within a minute")
        print(f"{service.name} died; restarting it", flush=True)
        service.start()


def main(arguments: list[str]) -> int:
    # Blocked, and polled by `watch`: no step is interrupted. Children start with an empty mask.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    var, ready_fd, names = Path(arguments[0]), int(arguments[1]), arguments[2:]
    lock, users = Lock(var, HOST_LOCK), Lock(var, "users")
    lock.take()  # another program holds it only for a moment, to check for a host
    host = ServiceHost(var, names)
    try:
        host.start()
        _answer(ready_fd, "ready")
        host.watch(users)
    except ServiceError as error:
        print(error, file=sys.stderr, flush=True)
        _answer(ready_fd, str(error))
        return 1
    finally:
        host.stop()
    return 0


def _answer(descriptor: int, text: str) -> None:
    """Answer the program that started this one, unless it ended or has an answer."""
    with suppress(OSError):
        os.write(descriptor, text.encode())
        os.close(descriptor)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
