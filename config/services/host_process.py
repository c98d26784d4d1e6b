"""The process that the embedded services belong to: `python -m config.services.host_process VAR READY_FD SERVICE...`.

It starts them, writes their addresses to services.json, starts again what dies, and ends with its last user (see
config/services/lease.py). The servers die with it, even when it is killed.
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
from config.services.lease import FILE, Lock, State, read_state, write_state
from config.services.postgres import Postgres
from config.services.redis import Redis
from config.services.service import Service

POLL_S = 0.2
STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
MAX_RESTARTS, RESTART_WINDOW_S = 5, 60.0


class Keeper:
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
        # The addresses of a keeper that was killed: programs that use them find the services again.
        former = read_state(var)
        for name, url in (("postgres", former.database_url), ("redis", former.redis_url)):
            if name in self.services and url:
                self.services[name].port = urlsplit(url).port or 0
        self.restarts: list[float] = []

    def start(self) -> None:
        for service in self.services.values():
            service.start()
        urls = {name: service.url for name, service in self.services.items()}
        write_state(self.var, State(database_url=urls.get("postgres", ""), redis_url=urls.get("redis", "")))

    def watch(self, users: Lock) -> None:
        """Until the last user is gone or a signal says to end."""
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
        print(f"{service.name} died; starting it again", flush=True)
        service.start()


def main(arguments: list[str]) -> int:
    # Waited for, not handled: nothing is interrupted half-way. Children start with a clean mask.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    var, ready_fd, names = Path(arguments[0]), int(arguments[1]), arguments[2:]
    lock, users = Lock(var, "keeper"), Lock(var, "users")
    lock.take()  # at most for the instant in which someone looks whether a keeper runs
    keeper = Keeper(var, names)
    try:
        keeper.start()
        _tell(ready_fd, "ready")
        keeper.watch(users)
    except ServiceError as error:
        print(error, file=sys.stderr, flush=True)
        _tell(ready_fd, str(error))
        return 1
    finally:
        keeper.stop()
    return 0


def _tell(descriptor: int, text: str) -> None:
    """Answer whoever started us; they may be gone, or have had their answer."""
    with suppress(OSError):
        os.write(descriptor, text.encode())
        os.close(descriptor)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
