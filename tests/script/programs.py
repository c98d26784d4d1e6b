"""Starting the scripts as a person does, and looking what they leave."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from uuid import uuid4

from config.services.lease import ROOT
from tests.config.processes import wait_for

GIVEN = ("DATABASE_URL", "REDIS_URL", "RANKWIRE_ALLOWED_HOSTS")


class Script:
    """A running script on a var directory; all its output is in `log`."""

    def __init__(self, var: Path, *argv: str, cwd: Path = ROOT) -> None:
        self.var = var
        self.log = var.with_name(f"{argv[0]}-{uuid4().hex[:8]}.log")
        environment = {name: value for name, value in os.environ.items() if name not in GIVEN}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [str(ROOT / "script" / argv[0]), *argv[1:]],
                cwd=cwd,
                # Tests share their machine with whatever else runs on it, so no trial counts as disturbed.
                env={**environment, "RANKWIRE_VAR": str(var), "RANKWIRE_FOREIGN_CPU_PERCENT": "100"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def wait_for_output(self, text: str, *, timeout_s: float = 120.0) -> None:
        wait_for(lambda: text in self.output or self.process.poll() is not None, timeout_s=timeout_s)
        assert text in self.output, self.output

    def end(self, number: signal.Signals | None = None, *, timeout_s: float = 120.0) -> int:
        """The exit status, after a signal if one is given."""
        if number is not None:
            self.process.send_signal(number)
        return self.process.wait(timeout_s)
