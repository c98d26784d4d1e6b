"""The shim as a library for the hosts' architecture: built when it is first needed, kept beside the sources or in the user's cache.

The compiler comes as a Python package and brings the C libraries of old systems with it, so that one library loads on hosts with
glibc 2.17 or newer. Where it is missing, trials run as ever and say why they have no profile.
"""

from __future__ import annotations

import fcntl
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from workers.errors import ProfileUnavailable
from workers.profile import source

TARGETS: Final = {"x86_64": "x86_64-linux-gnu.2.17", "aarch64": "aarch64-linux-gnu.2.17"}
"""Architectures by the name that the kernel gives them."""
BUILD_LIMIT_S: Final = 300.0
_MODE: Final = 0o755
"""Programs of trials load it as a user of their own."""


def library_path(machine: str = platform.machine()) -> Path:
    """Return where the library for an architecture lies, or will. Raise ProfileUnavailable for an unknown one."""
    if machine not in TARGETS:
        raise ProfileUnavailable(
            f"there is no profile for hosts of the architecture {machine or 'that they do not tell'}"
        )
    return next(_places()) / f"mpi-profile-{source.fingerprint()}-{machine}.so"


def library(machine: str = platform.machine()) -> Path:
    """Return the library, built if it is not there. Raise ProfileUnavailable with the reason."""
    built = library_path(machine)
    if built.is_file():
        return built
    if find_spec("ziglang") is None:
        raise ProfileUnavailable("the compiler is missing: install the Python package ziglang")
    try:
        built.parent.mkdir(parents=True, exist_ok=True)
        with (built.parent / "mpi-profile.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not built.is_file():
                _build(built, TARGETS[machine])
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProfileUnavailable(f"the library that counts could not be built: {error}") from error
    return built


def _places() -> Iterator[Path]:
    """A directory that others can write would let them choose the code that trials run."""
    sources = Path(__file__).resolve().parent
    if os.access(sources, os.W_OK):
        yield sources / "__pycache__"
    yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rankwire-mpi-profile"


def _build(target: Path, architecture: str) -> None:
    """Compile into a directory of its own, and move what came out into its place at once."""
    with tempfile.TemporaryDirectory(dir=target.parent) as place:
        for name, text in source.texts().items():
            Path(place, name).write_text(text)
        made = subprocess.run(
            [
                *(sys.executable, "-m", "ziglang", "cc", "-target", architecture, "-shared", "-fPIC", "-O2", "-s"),
                *("-Wall", "-Wextra", "-o", "made.so", source.SHIM.name, "-ldl"),
            ],
            cwd=place, env={**os.environ, "ZIG_LOCAL_CACHE_DIR": place, "ZIG_GLOBAL_CACHE_DIR": place},
            capture_output=True, text=True, errors="replace", timeout=BUILD_LIMIT_S, check=False,
        )  # fmt: skip
        if made.returncode:
            said = made.stderr.strip().splitlines() or ["nothing was said"]
            why = next((line for line in said if "error" in line), said[0])
            raise ProfileUnavailable(f"the library that counts could not be built: {why}")
        Path(place, "made.so").chmod(_MODE)
        Path(place, "made.so").replace(target)


if __name__ == "__main__":
    print(library())
