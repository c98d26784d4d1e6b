"""Atomic exchange of old and restored data, and recovery of an interruption."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection, connections
from psycopg import sql

from config.backup.errors import BackupError
from config.services.lease import Lock
from experiments.common import plain_files

OLD, NEW = "before_restore", "restored"


@dataclass(frozen=True, slots=True)
class Places:
    """Paths and database names during a restore."""

    var: Path
    database: str

    @property
    def trials(self) -> Path:
        return self.var / "trials"

    @property
    def new_files(self) -> Path:
        return self.var / f"trials.{NEW}"

    @property
    def old_files(self) -> Path:
        return self.var / f"trials.{OLD}"

    @property
    def new_database(self) -> str:
        return f"{self.database}_{NEW}"

    @property
    def old_database(self) -> str:
        return f"{self.database}_{OLD}"

    @classmethod
    def here(cls) -> Places:
        return cls(Path(settings.VAR), str(connection.settings_dict["NAME"]))


def heal() -> None:
    """Complete or undo an interrupted restore. Raise BackupError while one runs."""
    places = Places.here()
    if places.new_files.exists() or places.old_files.exists():
        with lock():
            put_in_order()


@contextmanager
def lock() -> Iterator[None]:
    """Hold the lock of restores. Raise BackupError if another restore is running."""
    file_lock = Lock(Path(settings.VAR), "restore")
    try:
        if not file_lock.try_to_take():
            raise BackupError("a restore is running; start again after its end")
        yield
    finally:
        file_lock.release()


def put_in_order() -> None:
    """Complete or undo an interrupted restore; the caller holds the lock."""
    places = Places.here()
    if not places.new_files.exists() and not places.old_files.exists():
        return
    with maintenance() as server:
        if exists(server, places.old_database):  # the restore was committed
            drop(server, places.old_database)
        else:
            if places.old_files.exists():  # directories were exchanged, databases were not
                if places.trials.exists():
                    places.trials.rename(places.new_files)
                places.old_files.rename(places.trials)
            drop(server, places.new_database)
    for directory in (places.new_files, places.old_files):
        plain_files.discard(directory)


@contextmanager
def maintenance() -> Iterator[psycopg.Connection[Any]]:
    """Connect to the maintenance database of the server."""
    connections.close_all()
    with connected("postgres") as server:
        yield server


@contextmanager
def connected(database: str) -> Iterator[psycopg.Connection[Any]]:
    """Connect to a database of the server."""
    parameters: dict[str, Any] = {**connection.get_connection_params(), "dbname": database, "autocommit": True}
    for name in ("cursor_factory", "context"):  # Django's own
        parameters.pop(name, None)
    with closing(psycopg.connect(**parameters)) as server:
        yield server


def exists(server: psycopg.Connection[Any], name: str) -> bool:
    return server.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone() is not None


def drop(server: psycopg.Connection[Any], name: str) -> None:
    server.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def change_places(places: Places, server: psycopg.Connection[Any]) -> None:
    """Replace the old database and files by the new ones.

    The directories are renamed within the transaction that renames the databases, so that `heal` recognises the state.
    """
    rename = sql.SQL("ALTER DATABASE {} RENAME TO {}")
    old, new = sql.Identifier(places.database), sql.Identifier(places.new_database)
    moved: list[tuple[Path, Path]] = []
    with plain_files.private():
        places.trials.mkdir(exist_ok=True)  # `heal` needs it to recognise the state
    try:
        with server.transaction():
            server.execute(rename.format(old, sql.Identifier(places.old_database)))
            server.execute(rename.format(new, old))
            for source, target in ((places.trials, places.old_files), (places.new_files, places.trials)):
                source.rename(target)
                moved.append((source, target))
    except BaseException:
        for source, target in reversed(moved):
            target.rename(source)
        raise
