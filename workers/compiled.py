"""Libraries compiled from C when first needed.

They are stored next to the sources or in the user's cache. The compiler is a Python package with the C libraries of old
systems, so that one library loads on hosts with glibc 2.17 or newer.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Final

TARGETS: Final = {"x86_64": "x86_64-linux-gnu.2.17", "aarch64": "aarch64-linux-gnu.2.17"}
"""Architectures by the name that the kernel gives them."""
BUILD_LIMIT_S: Final = 300.0
COMPILER_MISSING: Final = "the compiler is missing: install the Python package ziglang"
_MODE: Final = 0o755
"""Programs of trials load it as a user of their own."""


class NotCompiled(Exception):
    """A library is not there and cannot be made; the message is the reason."""


@dataclass(frozen=True)
class Library:
    """Shared library made of C texts.

    `texts`: the compiled files by name; `main` includes the others. `home`: directory of the sources; `flags` go to the linker.
    """

    name: str
    home: Path
    main: str
    texts: Mapping[str, str]
    flags: tuple[str, ...] = ()

    @cached_property
    def fingerprint(self) -> str:
        """Return a short hash of the texts."""
        digest = hashlib.sha256()
        for name, text in self.texts.items():
            digest.update(f"{name}\n{text}".encode())
        return digest.hexdigest()[:16]

    def path(self, machine: str = platform.machine()) -> Path:
        """Return the path of the library for an architecture, whether it exists or not."""
        name = f"{self.name}-{self.fingerprint}-{machine}.so"
        with_sources = self.home / "__pycache__" / name
        return with_sources if with_sources.is_file() else next(self._places()) / name

    def obstacle(self, machine: str = platform.machine()) -> str:
        """Return why the library is missing and cannot be made; empty if it probably can."""
        if machine not in TARGETS:
            return f"the library {self.name} is not made for the architecture {machine}"
        return "" if self.path(machine).is_file() or find_spec("ziglang") else COMPILER_MISSING

    def built(self, machine: str = platform.machine()) -> Path:
        """Return the library; build it if missing. Raise NotCompiled with the reason."""
        if obstacle := self.obstacle(machine):
            raise NotCompiled(obstacle)
        made = self.path(machine)
        if made.is_file():
            return made
        try:
            made.parent.mkdir(parents=True, exist_ok=True)
            with (made.parent / f"{self.name}.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not made.is_file():
                    self._make(made, TARGETS[machine])
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NotCompiled(f"the library {self.name} could not be built: {error}") from error
        return made

    def _places(self) -> Iterator[Path]:
        """Yield directories that no other user can write and so choose the code."""
        if os.access(self.home, os.W_OK):
            yield self.home / "__pycache__"
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / f"rankwire-{self.name}"

    def _make(self, target: Path, architecture: str) -> None:
        """Compile in a temporary directory and move the result into place."""
        with tempfile.TemporaryDirectory(dir=target.parent) as directory:
            for name, text in self.texts.items():
                Path(directory, name).write_text(text)
            made = subprocess.run(
                [
                    *(sys.executable, "-m", "ziglang", "cc", "-target", architecture, "-shared", "-fPIC", "-O2", "-s"),
                    *("-Wall", "-Wextra", "-o", "made.so", self.main, *self.flags),
                ],
                cwd=directory, env={**os.environ, "ZIG_LOCAL_CACHE_DIR": directory, "ZIG_GLOBAL_CACHE_DIR": directory},
                capture_output=True, text=True, errors="replace", timeout=BUILD_LIMIT_S, check=False,
            )  # fmt: skip
            if made.returncode:
                said = made.stderr.strip().splitlines() or ["no output"]
                why = next((line for line in said if "error" in line), said[0])
                raise NotCompiled(f"the library {self.name} could not be built: {why}")
            Path(directory, "made.so").chmod(_MODE)
            Path(directory, "made.so").replace(target)
