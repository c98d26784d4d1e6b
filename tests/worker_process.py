"""A real Celery worker in a process of its own, for the tests."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from config.celery import app
from config.services.children import start

ROOT = Path(__file__).resolve().parent.parent


class CeleryWorker:
    """One worker; `environment` says which database and Redis it works on."""

    def __init__(self, *, log: Path, environment: Mapping[str, str], inside: Sequence[str] = ()) -> None:
        """``inside``: the command line that its own is put behind."""
        self.log = log
        self.inside = inside
        self.environment = environment

    def start(self, *, concurrency: int = 2, queues: str | None = None, beat: bool = False) -> None:
        """Start it and wait until it takes tasks."""
        self.name = f"test-{self.log.stem}@localhost"
        argv = [sys.executable, "-m", "celery", "-A", "config", "worker", "--loglevel=INFO", f"--hostname={self.name}"]
        argv += [f"--concurrency={concurrency}", "--without-mingle", "--without-gossip"]
        argv += [f"--queues={queues}"] if queues else []
        argv += ["--beat"] if beat else []
        argv = [*self.inside, *argv]
        self.process = start(argv, log=self.log, death_signal=signal.SIGKILL, cwd=ROOT, environment=self.environment)
        try:
            self._wait_until_it_replies()
        except BaseException:  # or an unknown worker would run tasks of other tests
            self.kill()
            raise

    def _wait_until_it_replies(self) -> None:
        deadline = time.monotonic() + 100
        patience_s = 0.2
        while not self._replies_to_ping(patience_s):
            patience_s = min(1.2 * patience_s, 2.0)  # a machine with other load answers later than a free one
            if not self.alive or time.monotonic() > deadline:
                raise AssertionError(f"the Celery worker did not start:\n{self.output()[-3000:]}")

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def output(self) -> str:
        """Return its output so far."""
        return self.log.read_text(errors="replace")

    def wait_until_idle(self, *, timeout_s: float) -> bool:
        """Return True if it ends its tasks in time; a worker without an answer is busy."""
        deadline = time.monotonic() + timeout_s
        while self.alive and time.monotonic() < deadline:
            answers = app.control.inspect(destination=[self.name], timeout=1.0).active()
            if answers and not answers.get(self.name):
                return True
        return False

    def kill(self) -> None:
        """Send SIGKILL to the worker; wait for its pool, which dies with it."""
        if not self.alive:  # its number may be another process's by now
            return
        family = psutil.Process(self.pid).children(recursive=True)
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        _, left = psutil.wait_procs(family, timeout=30)
        assert not left, f"outlived their worker: {left}"

    def _replies_to_ping(self, patience_s: float) -> bool:
        try:
            return bool(app.control.ping(destination=[self.name], timeout=patience_s))
        except (OperationalError, RedisError):  # an earlier test's Redis closed the connection: the next one is new
            return False
