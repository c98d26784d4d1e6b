"""The token that a person keeps in a file: ``RANKWIRE_TOKEN_FILE``, otherwise ``~/.config/rankwire/token``."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def stored_token() -> str | None:
    """Return the token; None where there is no such file. Raises ValueError where others can read it, OSError where it is none."""
    named = os.environ.get("RANKWIRE_TOKEN_FILE")
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    path = Path(named) if named else Path(home) / "rankwire" / "token"
    if not named and not path.is_file():
        return None
    if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise ValueError(f"others can read the token in {path}: chmod 600 {path}")
    return path.read_text(encoding="utf-8").strip()
