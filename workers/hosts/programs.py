"""Where programs of this machine lie."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping


def find_program(program: str) -> str | None:
    """Where a program lies; the sbin directories are searched too, an ordinary user's PATH lacks them."""
    return shutil.which(program, path=search_path())


def missing_programs(needed: Mapping[str, str]) -> list[str]:
    """A sentence for every program that is not here; `needed` has the package of each."""
    return [
        f"The program {program} is missing: install the package {package}."
        for program, package in needed.items()
        if find_program(program) is None
    ]


def search_path() -> str:
    """PATH with the system's own directories at its end: the one that all workers were given, or this process's own."""
    parts = (os.environ.get("RANKWIRE_PATH") or os.environ.get("PATH", "")).split(":")
    return ":".join(dict.fromkeys([part for part in parts if part] + ["/usr/sbin", "/usr/bin", "/sbin", "/bin"]))
