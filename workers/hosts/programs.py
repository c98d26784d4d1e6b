"""Programs of this machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping


def find_program(program: str) -> str | None:
    """Return the path of a program; also searches sbin, which PATH of users lacks."""
    return shutil.which(program, path=search_path())


def missing_programs(needed: Mapping[str, str]) -> list[str]:
    """Return a sentence for every missing program; `needed` maps programs to packages."""
    return [
        f"The program {program} is missing: install the package {package}."
        for program, package in needed.items()
        if find_program(program) is None
    ]


def search_path() -> str:
    """Return PATH of all workers, or of this process, and the system's."""
    parts = (os.environ.get("RANKWIRE_PATH") or os.environ.get("PATH", "")).split(":")
    return ":".join(dict.fromkeys([part for part in parts if part] + ["/usr/sbin", "/usr/bin", "/sbin", "/bin"]))
