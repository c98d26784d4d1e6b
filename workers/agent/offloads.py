"""Switching segmentation offloads of an interface off, and on again at the end.

A guard process waits on a pipe whose other end only the agent holds: the kernel closes that end however the agent ends.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess

FEATURES = {
    "tcp-segmentation-offload": "tso",
    "generic-segmentation-offload": "gso",
    "generic-receive-offload": "gro",
    "large-receive-offload": "lro",
}
LIMIT_S = 10.0
MOST_DESCRIPTORS = 4096


class Offloads:
    """Offloads that were switched off on one interface."""

    def __init__(self, command: list[str], interface: str, environment: dict[str, str]) -> None:
        self.command = command
        self.interface = interface
        self.environment = environment
        self.off: list[str] = []
        self.held = -1

    def switch_off(self) -> str:
        """Switch offloads off; return '' or ethtool's reason, with all changes restored."""
        answer = self._run("-k", self.interface)
        if answer.returncode != 0:
            return _words(answer)
        self.off = [
            short
            for name, short in FEATURES.items()
            if re.search(rf"^\s*{name}: on(?! \[fixed\])", answer.stdout, re.MULTILINE)
        ]
        if not self.off:
            return ""
        self._guard()
        changed = self._run("-K", self.interface, *self._arguments("off"))
        if changed.returncode != 0:
            self.restore()
            return _words(changed)
        return ""

    def restore(self) -> None:
        """Switch on again what was on. Idempotent."""
        if self.off:
            self._run("-K", self.interface, *self._arguments("on"))
        self.off = []
        if self.held >= 0:
            os.write(self.held, b"-")  # the guard need not do it again
            os.close(self.held)
            self.held = -1

    def _arguments(self, state: str) -> list[str]:
        return [word for feature in self.off for word in (feature, state)]

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        argv = [*self.command, *words]
        try:
            return subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=LIMIT_S,
                env=self.environment,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return subprocess.CompletedProcess(argv, 1, "", str(error))

    def _guard(self) -> None:
        reading, self.held = os.pipe2(os.O_CLOEXEC)
        if os.fork() > 0:
            os.close(reading)
            return
        try:
            os.setsid()
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            signal.set_wakeup_fd(-1)
            os.closerange(0, reading)  # the connection must see the agent's end at once
            os.closerange(reading + 1, MOST_DESCRIPTORS)
            nothing = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(nothing, descriptor)
            self.held = -1
            if os.read(reading, 1) == b"":
                self.restore()
        finally:
            os._exit(0)  # never back into the agent's loop


def _words(answer: subprocess.CompletedProcess[str]) -> str:
    lines = [line.strip() for line in (answer.stderr or answer.stdout).splitlines() if line.strip()]
    return lines[-1] if lines else f"{answer.args[0]} ended with status {answer.returncode}"
