"""Old and new change places, at once or not at all, and what a killed restore left is put in order."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection, connections
from psycopg import sql

from config.backup.errors import KeepingError
from config.services.lease import Lock
from experiments.common import plain_files

OLD, NEW = "before_restore", "restored"


@dataclass(frozen=True, slots=True)
class Places:
    """Where the old and the new lie while a restore is under way."""

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
    """Finish what a restore that was killed left half done. Does nothing where there is nothing to do; for every start.

    Raise KeepingError while a backup is being put back.
    """
    places = Places.here()
    if places.new_files.exists() or places.old_files.exists():
        with lock():
            put_in_order()


@contextmanager
def lock() -> Iterator[None]:
    """Raise KeepingError where a restore is under way already."""
    held = Lock(Path(settings.VAR), "restore")
    try:
        if not held.try_to_take():
            raise KeepingError("a backup is being put back; start again when that has ended")
        yield
    finally:
        held.release()


def put_in_order() -> None:
    """As `heal`, for who holds the lock."""
    places = Places.here()
    if not places.new_files.exists() and not places.old_files.exists():
        return
    with maintenance() as server:
        if exists(server, places.old_database):  # committed: the old is no longer wanted
            drop(server, places.old_database)
        else:
            if places.old_files.exists():  # the directories had changed places, the databases not
                if places.trials.exists():
                    places.trials.rename(places.new_files)
                places.old_files.rename(places.trials)
            drop(server, places.new_database)
    for left in (places.new_files, places.old_files):
        shutil.rmtree(left, ignore_errors=True)


@contextmanager
def maintenance() -> Iterator[psycopg.Connection[Any]]:
    """A connection to the server, in none of the databases that are renamed."""
    connections.close_all()
    parameters: dict[str, Any] = {**connection.get_connection_params(), "dbname": "postgres", "autocommit": True}
    for name in ("cursor_factory", "context"):  # Django's own
        parameters.pop(name, None)
    with closing(psycopg.connect(**parameters)) as server:
        yield server


def exists(server: psycopg.Connection[Any], name: str) -> bool:
    return server.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone() is not None


def drop(server: psycopg.Connection[Any], name: str) -> None:
    server.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def change_places(places: Places, server: psycopg.Connection[Any]) -> None:
    """New for old. The directories first, in the transaction of the renaming: `heal` tells by that which of both holds."""
    rename = sql.SQL("ALTER DATABASE {} RENAME TO {}")
    old, new = sql.Identifier(places.database), sql.Identifier(places.new_database)
    moved: list[tuple[Path, Path]] = []
    with plain_files.private():
        places.trials.mkdir(exist_ok=True)  # or who looks later could not tell whether they changed places
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
