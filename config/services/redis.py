"""Embedded Redis."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path

import redis

from config.services.children import start
from config.services.errors import MissingProgram
from config.services.service import Service


class Redis(Service):
    """A Redis server on loopback with a password; messages survive a restart."""

    name = "Redis"
    pid_file = "redis.pid"
    death_signal = signal.SIGTERM
    stop_ladder = ((signal.SIGTERM, 10.0),)

    def __init__(self, directory: Path, *, password: str, log: Path, durable: bool = True) -> None:
        super().__init__(directory, log=log, durable=durable)
        self.password = password

    @property
    def url(self) -> str:
        return f"redis://:{self.password}@127.0.0.1:{self.port}/0"

    def prepare(self) -> None:
        self.executable = find_server()

    def launch(self, directory_fd: int) -> subprocess.Popen[bytes]:
        process = start(
            ["redis-server", "-"],
            executable=self.executable,
            log=self.log,
            death_signal=self.death_signal,
            account=self.account,
            stdin=subprocess.PIPE,  # hides the password from the process list
            pass_fds=[directory_fd],
        )
        assert process.stdin is not None  # noqa: S101 - stdin is a pipe
        process.stdin.write(self._configuration(directory_fd).encode())
        process.stdin.close()
        return process

    def _configuration(self, directory_fd: int) -> str:
        lines = [
            "bind 127.0.0.1",
            f"port {self.port}",
            f"requirepass {self.password}",
            f"dir /proc/self/fd/{directory_fd}",
            f"pidfile {self.pid_file}",
            'save ""',
            f"appendonly {'yes' if self.durable else 'no'}",
        ]
        return "\n".join(lines) + "\n"

    def flush(self) -> None:
        with redis.Redis.from_url(self.url, socket_timeout=5) as client:
            client.flushall()

    def answers(self) -> bool:
        try:
            with redis.Redis.from_url(self.url, socket_timeout=5) as client:
                return bool(client.ping())
        except (redis.ConnectionError, redis.TimeoutError):  # also while it loads its file
            return False


def find_server() -> str:
    """Return the path of the server. Raise MissingProgram.

    `redis-check-rdb` of Debian's redis-tools is the same program, and acts by the name it is called with. The package
    redis-server would set up a system service.
    """
    for program in ("redis-server", "valkey-server", "redis-check-rdb"):
        if path := shutil.which(program, path="/usr/bin:/usr/local/bin:/usr/sbin:/opt/bin") or shutil.which(program):
            return path
    raise MissingProgram("redis-server", "redis-tools")
