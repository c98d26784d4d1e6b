"""Private PostgreSQL server in memory, filled with numbered pages of text.

It serves the concurrent readers, and lives as long as its context. It runs as an ordinary user, because PostgreSQL refuses to run as
root, as ranks of the virtual test-bed do. Needs psycopg2, and ``places.py`` in its directory.
"""

from __future__ import annotations

import contextlib
import glob
import os
import random
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg2  # type: ignore[import-untyped]  # the system's Python has it, this project's has not
from places import address, memory_directory  # type: ignore[import-not-found]  # the file beside this one

BINARIES = "/usr/lib/postgresql/*/bin"
ORDINARY_ID = 65534
"""The user without rights of every Linux."""
ALPHABET = bytes(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[i % 64] for i in range(256))
START_LIMIT_S = 60.0
STOP_LIMIT_S = 20.0
ROOM = 2.5
"""Bytes of memory per byte of pages: the table, its index, and the server's own files."""
SERVER_BYTES = 150_000_000
BUFFER_LIMIT_BYTES = 1 << 30
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class DatabaseError(Exception):
    """The server cannot be started; the text says why."""


class Database:
    """A server of pages of characters for a number of connections."""

    def __init__(self, *, pages: int, page_bytes: int, clients: int) -> None:
        self.pages, self.page_bytes, self.clients = pages, page_bytes, clients
        self.host = address()
        self.password = secrets.token_urlsafe(16)
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Database:
        with self._stack:
            self._directory = self._make_directory()
            self._initialise()
            self._start()
            self._stack.callback(self._stop)
            self._fill()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def settings(self) -> dict[str, str | int]:
        """Return the arguments of ``psycopg2.connect`` for a client."""
        return {
            "host": self.host,
            "port": self.port,
            "user": "readers",
            "password": self.password,
            "dbname": "postgres",
            "connect_timeout": 30,
        }

    def cpu_s(self) -> tuple[float, float]:
        """Return user and system CPU seconds of all processes of the server so far."""
        return tree_cpu_s(self._server.pid)

    def _make_directory(self) -> Path:
        needed = int(ROOM * self.pages * self.page_bytes) + SERVER_BYTES
        directory = Path(tempfile.mkdtemp(prefix="rankwire-readers-", dir=memory_directory(needed)))
        self._stack.callback(shutil.rmtree, directory, ignore_errors=True)  # noqa: TID251 - a tree of its own
        password = directory / "password"
        password.write_text(self.password)
        if may_change_user():
            for path in (directory, password):
                os.chown(path, ORDINARY_ID, ORDINARY_ID)
        return directory

    def _initialise(self) -> None:
        command = [
            *("initdb", "--pgdata=data", "--pwfile=password", "--username=readers", "--auth=scram-sha-256"),
            *("--encoding=SQL_ASCII", "--no-locale", "--no-sync", "--no-instructions"),
        ]
        made = subprocess.run(self._as_ordinary_user(command), cwd=self._directory, capture_output=True, text=True)
        if made.returncode != 0:
            raise DatabaseError(f"initdb failed: {made.stderr.strip()}")
        with (self._directory / "data" / "pg_hba.conf").open("a") as rules:
            rules.write("host all all all scram-sha-256\n")

    def _start(self) -> None:
        self.port = free_port(self.host)
        buffers = min(int(1.3 * self.pages * self.page_bytes) + (32 << 20), BUFFER_LIMIT_BYTES)
        settings = {
            "listen_addresses": self.host,
            "port": self.port,
            "unix_socket_directories": "",
            "max_connections": self.clients + 10,
            "shared_buffers": f"{buffers // 8192}",
            # Nothing has to survive the trial, and background work would count as the server's processor time.
            "fsync": "off",
            "full_page_writes": "off",
            "wal_level": "minimal",
            "max_wal_senders": 0,
            "autovacuum": "off",
            "jit": "off",
        }
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        log = (self._directory / "log").open("wb")
        with log:
            self._server = subprocess.Popen(
                self._as_ordinary_user(["postgres", "-D", "data", *options]),
                cwd=self._directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def _as_ordinary_user(self, command: list[str]) -> list[str]:
        program, *arguments = command
        newest = max(glob.glob(f"{BINARIES}/{program}"), key=_major, default=None)  # noqa: PTH207 (an absolute pattern)
        if newest is None:
            raise DatabaseError(f"{program} is not installed: install the package postgresql")
        return [*ordinary_user(), newest, *arguments]

    def _fill(self) -> None:
        with contextlib.closing(self._connect()) as connection:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute("CREATE UNLOGGED TABLE pages (number integer NOT NULL, content text NOT NULL)")
                # Uncompressed: what a client reads is as many bytes as what was written.
                cursor.execute("ALTER TABLE pages ALTER content SET STORAGE EXTERNAL")
                cursor.copy_expert("COPY pages FROM STDIN", _Rows(self.pages, self.page_bytes))
                cursor.execute("ALTER TABLE pages ADD PRIMARY KEY (number)")
                cursor.execute("VACUUM ANALYZE pages")

    def _connect(self) -> psycopg2.extensions.connection:
        deadline = time.monotonic() + START_LIMIT_S
        while True:
            try:
                return psycopg2.connect(**self.settings())
            except psycopg2.OperationalError as error:
                refused = "no pg_hba.conf entry" in str(error) or "authentication failed" in str(error)
                if refused or self._server.poll() is not None or time.monotonic() > deadline:
                    log = (self._directory / "log").read_text(errors="replace").strip().splitlines()
                    raise DatabaseError(f"PostgreSQL does not start: {' '.join(log[-3:]) or error}") from None
                time.sleep(0.05)

    def _stop(self) -> None:
        self._server.send_signal(signal.SIGINT)  # "fast": sessions are ended, not waited for
        try:
            self._server.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._server.send_signal(signal.SIGQUIT)
            self._server.wait()


class _Rows:
    """The lines of COPY as a file: page numbers and random text, equal in all trials."""

    def __init__(self, pages: int, page_bytes: int) -> None:
        self._lines = self._all(pages, page_bytes)
        self._left = b""

    @staticmethod
    def _all(pages: int, page_bytes: int) -> Iterator[bytes]:
        random_bytes = random.Random(1999).randbytes  # noqa: S311 (contents, no secret)
        for number in range(pages):
            yield b"%d\t%s\n" % (number, random_bytes(page_bytes).translate(ALPHABET))

    def read(self, size: int) -> bytes:
        while len(self._left) < size:
            line = next(self._lines, None)
            if line is None:
                break
            self._left += line
        part, self._left = self._left[:size], self._left[size:]
        return part


def ordinary_user() -> list[str]:
    """Return the command that runs a program as an ordinary user."""
    dies_with_us = ["setpriv", "--pdeathsig", "QUIT"]
    if os.geteuid() != 0:
        return dies_with_us
    if may_change_user():
        return [*dies_with_us, f"--reuid={ORDINARY_ID}", f"--regid={ORDINARY_ID}", "--clear-groups"]
    # Root of a user namespace without other users can change its user only in a namespace below it.
    return ["unshare", "--user", f"--map-user={ORDINARY_ID}", f"--map-group={ORDINARY_ID}", *dies_with_us]


def may_change_user() -> bool:
    """Return whether this is a root that can change its user."""
    if os.geteuid() != 0:
        return False
    mapped = [[int(word) for word in line.split()] for line in Path("/proc/self/uid_map").read_text().splitlines()]
    return any(first <= ORDINARY_ID < first + count for first, _, count in mapped)


def free_port(host: str) -> int:
    """Return a free port."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def tree_cpu_s(pid: int) -> tuple[float, float]:
    """Return user and system CPU seconds of a process and its children."""
    user = system = 0
    for process in (pid, *_children(pid)):
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended, and its parent counts it now
        user += int(fields[11]) + int(fields[13])
        system += int(fields[12]) + int(fields[14])
    return user / TICKS_PER_SECOND, system / TICKS_PER_SECOND


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _major(program: str) -> int:
    return int(Path(program).parts[-3])
