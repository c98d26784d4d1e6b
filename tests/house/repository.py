"""The files of the repository, for tests of what holds in all of them."""

from __future__ import annotations

import subprocess
from pathlib import Path

from config.services.lease import ROOT


def tracked(*patterns: str) -> list[Path]:
    """Return the files of the repository, relative to it, new ones included."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for name in listing.splitlines() if (path := Path(name)) and (ROOT / path).exists()]
