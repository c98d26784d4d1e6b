"""A server that speaks S3, as a process: checked signatures, real files."""

from __future__ import annotations

import signal
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from config.services.children import start

KEY, SECRET = "rankwire-tests", "a secret with / and +"
BUCKET: Final = "laboratory"


class S3Server:
    """One bucket below a directory; it keeps its address when it is started again."""

    def __init__(self, directory: Path, *, host: str = "127.0.0.1", environment: Mapping[str, str]) -> None:
        self.directory, self.host = directory, host
        self.environment = {**environment, "NANIO_ACCESS_KEY": KEY, "NANIO_SECRET_KEY": SECRET}
        (directory / BUCKET).mkdir(parents=True)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]

    @property
    def address(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def variables(self) -> dict[str, str]:
        """The settings of an installation that keeps its files here."""
        return {
            "RANKWIRE_STORE_BUCKET": BUCKET,
            "RANKWIRE_STORE_ENDPOINT": self.address,
            "RANKWIRE_STORE_REGION": "us-east-1",
            "RANKWIRE_STORE_KEY": KEY,
            "RANKWIRE_STORE_SECRET": SECRET,
        }

    def start(self) -> None:
        """Start it and wait until it answers."""
        argv = [sys.executable, "-m", "nanio", "serve", "--host", self.host, "--port", str(self.port)]
        argv += ["--data-dir", str(self.directory), "--no-access-log"]
        log = self.directory.with_suffix(".log")
        self.process = start(
            argv, log=log, death_signal=signal.SIGKILL, cwd=self.directory, environment=self.environment
        )
        deadline = time.monotonic() + 60
        while not self._answers():
            assert self.process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, f"no answer at {self.address}:\n{log.read_text()}"
            time.sleep(0.05)

    def kill(self) -> None:
        """SIGKILL, in the middle of whatever it does."""
        self.process.kill()
        self.process.wait()

    def pause(self) -> None:
        """Take connections and answer none, as behind a network that loses all."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def _answers(self) -> bool:
        try:
            with socket.create_connection((self.host, self.port), timeout=1):
                return True
        except OSError:
            return False
