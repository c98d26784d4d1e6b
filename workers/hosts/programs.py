"""Where programs of this machine lie."""

from __future__ import annotations

import os
import shutil


def find_program(program: str) -> str | None:
    """Where a program lies; the sbin directories are searched too, an ordinary user's PATH lacks them."""
    return shutil.which(program, path=search_path())


def search_path() -> str:
    """PATH with the system's own directories at its end."""
    parts = os.environ.get("PATH", "").split(":")
    return ":".join(dict.fromkeys([part for part in parts if part] + ["/usr/sbin", "/usr/bin", "/sbin", "/bin"]))
