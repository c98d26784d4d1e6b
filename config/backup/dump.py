"""Dumps of the database by pg_dump and pg_restore."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from psycopg.conninfo import make_conninfo

from config.backup.errors import BackupError, ChangedBackup
from config.backup.layout import Stored
from config.services.errors import ServiceError
from config.services.postgres import find_binaries

ARTIFACTS: Final = "experiments_artifact"
_COLUMNS: Final = re.compile(rf"^COPY public\.{ARTIFACTS} \((.*)\) FROM stdin;$")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v"}


class Programs:
    """pg_dump and pg_restore for one database, an entry of Django's DATABASES.

    The newest installed version is used; it must not be older than the server.
    """

    def __init__(self, database: Mapping[str, Any], server_major: int) -> None:
        try:
            self._directory = find_binaries()
        except ServiceError as error:
            raise BackupError(str(error)) from None
        self._database = database
        answer = subprocess.run(
            [str(self._directory / "pg_dump"), "--version"], capture_output=True, text=True, check=True
        ).stdout
        major = int(re.search(r"\) (\d+)", answer)[1])  # type: ignore[index]
        if major < server_major:
            raise BackupError(
                f"pg_dump of PostgreSQL {major} cannot read a server of version {server_major}; "
                f"install the package postgresql-client-{server_major}"
            )

    def dump(self, file: Path, snapshot: str = "") -> None:
        """Write a dump of a snapshot, or of the current state."""
        seen = [f"--snapshot={snapshot}"] if snapshot else []
        self._run("pg_dump", "--format=custom", *seen, f"--file={file}", self._address(self._database["NAME"]))

    def load(self, file: Path, name: str) -> None:
        """Load a dump into the empty database `name` of the server."""
        options = ["--exit-on-error", "--no-owner", "--no-privileges", "--no-comments", "--jobs=2"]
        self._run("pg_restore", *options, f"--dbname={self._address(name)}", str(file))

    def read_through(self, file: Path) -> None:
        """Read the whole dump. Raise ChangedBackup if it is not readable."""
        try:
            self._run("pg_restore", "--file=/dev/null", str(file))
        except BackupError as error:
            raise ChangedBackup(f"{file} cannot be read: {error}") from None

    def stored_files(self, file: Path) -> Iterator[Stored]:
        """Yield the artifacts of a dump without those that retention removed."""
        argv = [str(self._directory / "pg_restore"), "--data-only", f"--table={ARTIFACTS}", "--file=-", str(file)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, encoding="utf-8", env=_environment({})) as process:
            assert process.stdout is not None  # noqa: S101 - stdout is a pipe
            columns: list[str] | None = None
            for line in process.stdout:
                if columns is None:
                    match = _COLUMNS.match(line.rstrip("\n"))
                    columns = match[1].split(", ") if match else None
                elif line == "\\.\n":
                    break
                else:
                    row = dict(zip(columns, line.rstrip("\n").split("\t"), strict=True))
                    if row["removed_at"] == r"\N":
                        yield Stored(unescaped(row["path"]), int(row["size_bytes"]), row["sha256"])
            for _ in process.stdout:
                pass
        if process.returncode != 0 or columns is None:
            raise ChangedBackup(f"{file} has no table of artifacts")

    def _address(self, name: str) -> str:
        entry = self._database
        values = {"host": entry["HOST"], "port": entry["PORT"], "user": entry["USER"], "dbname": name}
        options = {key: value for key, value in entry["OPTIONS"].items() if isinstance(value, str)}
        return make_conninfo(**{key: value for key, value in values.items() if value}, **options)

    def _run(self, program: str, *arguments: str) -> None:
        # The password is in the environment, so that the list of processes does not show it.
        argv: Sequence[str] = [str(self._directory / program), *arguments]
        done = subprocess.run(argv, env=_environment(self._database), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            lines = [line for line in done.stderr.splitlines() if line.strip()]
            errors = [line for line in lines if "error:" in line.lower()]
            raise BackupError((errors or lines or [f"{program} failed"])[0])


def _environment(database: Mapping[str, Any]) -> dict[str, str]:
    password = {"PGPASSWORD": str(database["PASSWORD"])} if database.get("PASSWORD") else {}
    return {**os.environ, "LC_ALL": "C.UTF-8", **password}


def unescaped(text: str) -> str:
    """Decode a value of COPY's text format (PostgreSQL's manual, COPY, "Text Format")."""
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), text)
