"""Base class of PostgreSQL and Redis: data, port, process, readiness."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path

import psutil

from config.services.children import Account, stop
from config.services.errors import ServiceError

START_DEADLINE_S = 90.0  # includes replaying the log after a power cut
POLL_S = 0.02


class Service(ABC):
    """A private server with its data in `directory`.

    The server gets the directory as an open descriptor (`/proc/self/fd/N`): its user may be unable to reach the path, such
    as a clone below /root.
    """

    name: str
    pid_file: str
    death_signal: signal.Signals
    stop_ladder: tuple[tuple[signal.Signals, float], ...]

    def __init__(self, directory: Path, *, log: Path, durable: bool = True) -> None:
        self.directory = directory
        self.log = log
        self.durable = durable
        self.port = 0
        self.process: subprocess.Popen[bytes] | None = None

    @property
    @abstractmethod
    def url(self) -> str:
        """Address with the password."""

    @abstractmethod
    def prepare(self) -> None:
        """Prepare the existing data directory, owned by `account`, for `launch`."""

    @abstractmethod
    def launch(self, directory_fd: int) -> subprocess.Popen[bytes]:
        """Start the server on `self.port`."""

    @abstractmethod
    def answers(self) -> bool:
        """Return True if the server accepts commands."""

    @property
    def account(self) -> Account | None:
        return Account.of_directory(self.directory)

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        """Start and wait for an answer; a restart keeps the port."""
        self._make_directory()
        self._await_predecessor()
        self.prepare()
        deadline = time.monotonic() + START_DEADLINE_S
        port = self.port if self.process is not None or is_free(self.port) else 0
        while True:
            self.port = port or free_port()
            log_position = self.log.stat().st_size if self.log.exists() else 0
            if self._launch_and_wait(deadline):
                return
            # It ended: another program took the port, or children of a killed server still hold its memory.
            if time.monotonic() > deadline - START_DEADLINE_S + 15:
                raise ServiceError(f"{self.name} does not start: {self._last_error(log_position)}")
            time.sleep(0.25)

    def stop(self) -> None:
        if self.process is not None:
            stop(self.process, self.stop_ladder)
            self.process = None

    def _launch_and_wait(self, deadline: float) -> bool:
        descriptor = os.open(self.directory, os.O_PATH | os.O_DIRECTORY)
        try:
            self.process = self.launch(descriptor)
        finally:
            os.close(descriptor)
        while self.running:
            if self.answers():
                return True
            if time.monotonic() > deadline:
                self.stop()
                raise ServiceError(f"{self.name} does not answer; see {self.log}")
            time.sleep(POLL_S)
        return False

    def _make_directory(self) -> None:
        account = self.account
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            if account:
                os.chown(self.directory, account.uid, account.gid)
            elif self.directory.stat().st_uid != os.geteuid():
                raise PermissionError
        except PermissionError:
            raise ServiceError(
                f"{self.directory} belongs to another user; start as that user or set RANKWIRE_VAR"
            ) from None

    def _await_predecessor(self) -> None:
        """Wait for a server whose host was just killed; remove a stale pid file.

        After a power cut the process ID in the file may belong to another program.
        """
        file = self.directory / self.pid_file
        try:
            process = psutil.Process(int(file.read_text().split()[0]))
            is_server = os.path.samestat(Path(f"/proc/{process.pid}/cwd").stat(), self.directory.stat())
        except (OSError, ValueError, IndexError, psutil.Error):
            is_server = False
        if is_server:
            try:
                process.wait(20)
            except psutil.TimeoutExpired:
                process.kill()
                process.wait(5)
        file.unlink(missing_ok=True)

    def _last_error(self, position: int) -> str:
        lines = self.log.read_bytes()[position:].decode(errors="replace").strip().splitlines()
        errors = [line for line in lines if "FATAL" in line or "error" in line.lower() or "Can't" in line]
        return (errors or lines or ["no message"])[-1].strip()


def is_free(port: int) -> bool:
    """Return True if no program listens on a loopback TCP port."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return True
    return False


def free_port() -> int:
    """Return a free loopback TCP port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
