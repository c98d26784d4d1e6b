"""A machine that lacks what script/bootstrap installs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from config.services.lease import ROOT

REAL = (
    "sh",
    "sed",
    "cat",
    "cut",
    "tr",
    "dirname",
    "mkdir",
    "flock",
    "sha256sum",
    "grep",
    "mktemp",
    "rm",
    "tail",
    "env",
    "tee",
    "find",
    "sort",
    "setsid",
)


class Machine:
    """A copy of the scripts and a PATH that holds only what is put there."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.clone = directory / "clone"
        (self.clone / "script").mkdir(parents=True)
        for name in ("bootstrap", "packages.txt"):
            shutil.copy(ROOT / "script" / name, self.clone / "script" / name)
        self.programs = directory / "bin"
        self.programs.mkdir()
        for name in REAL:
            program = shutil.which(name)
            assert program, name
            (self.programs / name).symlink_to(program)
        self.install("id", 'echo "${FAKE_UID:-0}"')
        self.lack()

    def lack(self, *patterns: str) -> None:
        """Report all packages but those of these shell patterns as installed."""
        unknown = "|".join(("-*", "*'${'*", *patterns))
        self.install(
            "dpkg-query",
            f"""for name; do case "$name" in {unknown}) ;; *) printf '|installed %s|' "$name" ;; esac; done""",
        )

    def install(self, name: str, body: str) -> None:
        file = self.programs / name
        file.write_text(f"#!{shutil.which('sh')}\n{body}\n")
        file.chmod(0o755)

    def bootstrap(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.clone / "script" / "bootstrap"), *arguments]
        variables = {"PATH": str(self.programs), "HOME": str(self.directory), **environment}
        return subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=30)
