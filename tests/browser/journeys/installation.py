"""An installation in a directory of its own, started as by script/server."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from config.services.lease import ROOT

_GIVEN: Final = ("DATABASE_URL", "REDIS_URL", "RANKWIRE_ALLOWED_HOSTS", "RANKWIRE_PREFIX")
_READY_S: Final = 180.0
_OVER: Final = ("finished", "failed", "errored", "cancelled", "lost")


class Installation:
    """Run an installation for the block; its results stay in `var` for the next one."""

    def __init__(self, var: Path, variables: Mapping[str, str] | None = None) -> None:
        self.var = var
        self.log = var / "log" / "server.log"
        environment = {name: value for name, value in os.environ.items() if name not in _GIVEN}
        self.environment = {
            **environment,
            "RANKWIRE_VAR": str(var),
            **(variables or {}),
        }

    def __enter__(self) -> Installation:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "config.server", "--port", "0", "--no-demo"],
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            self.address = self._wait_for_address()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end()

    @property
    def password(self) -> str:
        """Of the user `admin`."""
        return (self.var / "admin-password").read_text().strip()

    @property
    def key(self) -> str:
        """Return a token of `admin`, stored next to the password."""
        file = self.var / "admin-token"
        if not file.exists():
            key = self.manage("api_token", "admin", "laptop").split()[-1]
            file.touch(mode=0o600)
            file.write_text(key)
        return file.read_text()

    def manage(self, *arguments: str) -> str:
        """Return the output of a Django command, run like script/manage."""
        return subprocess.run(
            [sys.executable, "-m", "config.run", "manage", *arguments],
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            check=True,
            text=True,
            timeout=_READY_S,
        ).stdout

    def ask(self, path: str, body: Any = None, method: str = "") -> Any:
        """Return the answer of REST; a body is sent with POST by default."""
        request = urllib.request.Request(  # noqa: S310 (our own address)
            f"{self.address}/api/v1/{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"},
            method=method or None,
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
                return json.load(answer)
        except urllib.error.HTTPError as refused:
            raise AssertionError(f"{path}: {refused.code} {refused.read().decode()[:2000]}") from None

    def submit(self, specification: Mapping[str, Any]) -> str:
        """Queue an experiment; its slug."""
        return str(self.ask("experiments/", dict(specification))["slug"])

    def wait_for(self, slugs: Sequence[str], *, timeout_s: float) -> None:
        """Wait until all trials of these experiments have finished; fail if one failed."""
        deadline = time.monotonic() + timeout_s
        for slug in slugs:
            while True:
                trials = self.ask(f"trials/?experiment={slug}&superseded=false&limit=500&fields=id,state,message")[
                    "results"
                ]
                if all(trial["state"] in _OVER for trial in trials):
                    break
                assert time.monotonic() < deadline, f"{slug}: {trials}"
                time.sleep(0.5)
            assert all(trial["state"] == "finished" for trial in trials), f"{slug}: {trials}"

    def _wait_for_address(self) -> str:
        deadline = time.monotonic() + _READY_S
        while time.monotonic() < deadline:
            said = self.log.read_text(errors="replace")
            if match := re.search(r"Rankwire runs at (http://\S+)", said):
                return match[1]
            if self._process.poll() is not None:
                break
            time.sleep(0.1)
        raise AssertionError(f"the server did not start:\n{said}")

    def _end(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(90)
        except subprocess.TimeoutExpired:
            self._process.kill()  # its child processes die with it
            self._process.wait()
