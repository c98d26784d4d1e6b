"""Leases: embedded services start with the first user and end with the last.

Three locks in var/locks, which the kernel releases when a process ends:

    `users`  shared by all users; the host ends the services once it holds the lock exclusively
    `start`  exclusive while a user checks for a host and starts one
    `keeper` held by the host process (config/services/host_process.py)
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from config.environment import Environment
from config.services.children import start
from config.services.errors import ServiceError

ROOT = Path(__file__).resolve().parent.parent.parent
FILE = "services.json"
HOST_LOCK = "keeper"  # as in earlier versions, which may still run
POLL_S = 0.05
STOP_DEADLINE_S = 45.0


@dataclass(frozen=True)
class Installation:
    """Settings that are needed before Django's settings can be loaded."""

    var: Path
    database_url: str
    redis_url: str

    @classmethod
    def of_environment(cls) -> Installation:
        """Read the environment. Raise ServiceError for a wrong value."""
        try:
            environment = Environment.load(ROOT / ".env")
            return cls(
                var=(ROOT / environment.RANKWIRE_VAR).resolve(),
                database_url=environment.DATABASE_URL,
                redis_url=environment.REDIS_URL,
            )
        except ImproperlyConfigured as error:
            raise ServiceError(str(error)) from None

    @property
    def embedded(self) -> list[str]:
        """Names of the services without an address in the environment."""
        addresses = {"postgres": self.database_url, "redis": self.redis_url}
        return [name for name, url in addresses.items() if not url]


class Lock:
    """An advisory file lock; released at the end of the process or by `release`."""

    def __init__(self, var: Path, name: str) -> None:
        directory = var / "locks"
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(directory / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except PermissionError:
            raise ServiceError(f"{directory} belongs to another user; start as that user or set RANKWIRE_VAR") from None
        except OSError as error:
            raise ServiceError(f"{directory} cannot be written: {error.strerror}") from None

    def share(self) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_SH)

    def take(self) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def try_to_take(self) -> bool:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


@dataclass(frozen=True)
class State:
    """Addresses of the services with passwords; empty without a running service."""

    database_url: str = ""
    redis_url: str = ""


def read_state(var: Path) -> State:
    """Return the addresses of the running services, or empty ones."""
    try:
        values = json.loads((var / FILE).read_text())
        return State(database_url=str(values["database_url"]), redis_url=str(values["redis_url"]))
    except (OSError, ValueError, KeyError, TypeError):
        return State()


def write_state(var: Path, state: State) -> None:
    """Replace the file atomically; only its owner can read it."""
    temporary = var / f".{FILE}-{os.getpid()}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(asdict(state), file)
    temporary.replace(var / FILE)


@dataclass(frozen=True)
class Lease:
    """A use of the services; `fresh` if they were started for it."""

    state: State
    fresh: bool


@contextmanager
def embedded_services(installation: Installation, *, meanwhile: Callable[[], None] = lambda: None) -> Iterator[Lease]:
    """Keep the embedded services running; wait for their end after the last user.

    `meanwhile` is called while they start.
    """
    if not installation.embedded:
        yield Lease(State(), fresh=False)
        return
    users = Lock(installation.var, "users")
    users.share()  # waits while a host ends its services
    try:
        yield join_or_start(installation, meanwhile)
    finally:
        last = users.try_to_take()
        users.release()
        if last:
            _await_end(installation.var)


def host_runs(var: Path) -> bool:
    lock = Lock(var, HOST_LOCK)
    try:
        return not lock.try_to_take()
    finally:
        lock.release()


def join_or_start(installation: Installation, meanwhile: Callable[[], None] = lambda: None) -> Lease:
    """Return the running services, or start them; concurrent programs wait."""
    lock = Lock(installation.var, "start")
    lock.take()
    try:
        deadline = time.monotonic() + STOP_DEADLINE_S
        while host_runs(installation.var):
            state = read_state(installation.var)
            if state.database_url or state.redis_url:
                return Lease(_checked(installation, state), fresh=False)
            if time.monotonic() > deadline:  # after a stop signal without effect
                raise ServiceError(f"the embedded services do not stop; see {installation.var}/log/services.log")
            time.sleep(POLL_S)
        _start_host(installation, meanwhile)
        return Lease(_checked(installation, read_state(installation.var)), fresh=True)
    finally:
        lock.release()


def _checked(installation: Installation, state: State) -> State:
    addresses = {"postgres": state.database_url, "redis": state.redis_url}
    if missing := [name for name in installation.embedded if not addresses[name]]:
        raise ServiceError(
            f"the running services lack {' and '.join(missing)}: they were started with another DATABASE_URL or REDIS_URL"
        )
    return state


def _start_host(installation: Installation, meanwhile: Callable[[], None]) -> None:
    (installation.var / "log").mkdir(exist_ok=True)
    reader, writer = os.pipe()
    try:
        arguments = [str(installation.var), str(writer), *installation.embedded]
        process = start(
            [sys.executable, "-m", "config.services.host_process", *arguments],
            log=installation.var / "log" / "services.log",
            death_signal=None,  # other users may keep the services running
            cwd=ROOT,
            pass_fds=[writer],
        )
    finally:
        os.close(writer)
    with os.fdopen(reader) as answer:
        meanwhile()
        text = answer.read().strip()
    if text != "ready":
        process.wait()
        raise ServiceError(text or f"the embedded services do not start; see {installation.var}/log/services.log")
    for earlier in _hosts:
        earlier.poll()  # reaps a killed one
    _hosts.append(process)


_hosts: list[subprocess.Popen[bytes]] = []
"""Hosts that this process started and has to reap."""


def _await_end(var: Path) -> None:
    """Wait until the host ends or another user holds its services."""
    deadline = time.monotonic() + STOP_DEADLINE_S
    patience = time.monotonic() + 2.0
    while host_runs(var):
        now = time.monotonic()
        if now > deadline or (now > patience and read_state(var) != State()):
            return
        time.sleep(POLL_S)
    for process in _hosts:
        process.wait()
    _hosts.clear()
