"""Version of Rankwire: that of the package, and the commit of a clone."""

from __future__ import annotations

import subprocess
import tomllib
from functools import cache
from pathlib import Path
from typing import Final

from django.conf import settings

ROOT: Final = Path(settings.BASE_DIR)


@cache
def version() -> str:
    """Return the version, with the commit if this is a clone: ``0.1.0 (1a2b3c4d)``."""
    package = str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])
    if not (ROOT / ".git").exists():
        return package
    try:
        command = ["git", "-C", str(ROOT), "rev-parse", "--short=8", "HEAD"]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):  # no git, or a clone of another user
        return package
    return f"{package} ({answer.stdout.strip()})"
