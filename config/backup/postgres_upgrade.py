"""`script/upgrade-postgres`: the data of the embedded PostgreSQL for the newest version of its programs that is installed.

The old server is dumped and the dump loaded into a new one beside it; rows are counted in both. Then the directories change places at
once. The old data stay as `postgres-VERSION` until somebody removes them.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import sql

from analysis.numbers import amount, plural
from config.backup.dump import Programs
from config.backup.errors import KeepingError
from config.backup.on_disk import sync_tree
from config.environment import database
from config.secrets import read_or_create_secret
from config.services.children import Account
from config.services.errors import ServiceError
from config.services.lease import Installation, Lock
from config.services.postgres import Postgres, binaries_of, data_major, installed_binaries
from config.supervisor import Interrupted, interrupt_on_stop_signals

AT_FDCWD, RENAME_EXCHANGE = -100, 2  # linux/fcntl.h, linux/fs.h
SPARE_BYTES: Final = 256 << 20  # what initdb makes, and the log of a server that loads


def upgrade(installation: Installation, tell: Callable[[str], object] = print) -> None:
    """Move the data to the newest installed version. Raise ServiceError or KeepingError, and leave everything as it was."""
    if "postgres" not in installation.embedded:
        raise ServiceError("DATABASE_URL names a server of its own; this is for the embedded one")
    data = installation.var / "postgres"
    major = data_major(data)
    if major is None:
        raise ServiceError(f"{data} holds no data yet; the first start makes them with the newest PostgreSQL there is")
    binaries, newest = binaries_of(data), max(installed_binaries())
    if newest <= major:
        tell(f"the data are of PostgreSQL {major}, the newest that is installed; nothing to do")
        return
    with _unused(installation.var):
        kept = installation.var / f"postgres-{major}"
        if kept.exists():
            raise ServiceError(f"{kept} is there already; move it away")
        move(data, kept, old=binaries, new=installed_binaries()[newest], tell=tell)
    tell(f"the data are of PostgreSQL {newest} now; those of {major} are kept in {kept}, remove them when all is well")


def move(data: Path, kept: Path, *, old: Path, new: Path, tell: Callable[[str], object]) -> None:
    """Load what the programs in `old` find in the directory `data` into a new one, made by those in `new`, and let it take its place."""
    size_bytes = sum(file.lstat().st_size for file in data.rglob("*"))
    free = shutil.disk_usage(data.parent).free
    if free < 2 * size_bytes + SPARE_BYTES:
        needed = amount(2 * size_bytes + SPARE_BYTES, "B")
        raise ServiceError(f"{data.parent} has {amount(free, 'B')} free, the upgrade needs about {needed}")
    beside, file = data.with_name("postgres.upgraded"), data.with_name("postgres.dump")
    log = data.parent / "log" / "postgres.log"
    log.parent.mkdir(exist_ok=True)
    password = read_or_create_secret(data.with_name("postgres-password"))
    with _gone_afterwards(beside, file):
        _make_like(beside, data)
        source = Postgres(data, password=password, log=log, binaries=old)
        target = Postgres(beside, password=password, log=log, binaries=new)
        try:
            tell("starting both versions")
            source.start()
            target.start()
            _load(source, target, new, file, tell)
        finally:
            target.stop()
            source.stop()
        sync_tree(beside)
        _exchange(beside, data)
        beside.rename(kept)


def _load(source: Postgres, target: Postgres, binaries: Path, file: Path, tell: Callable[[str], object]) -> None:
    tell("dumping")
    major = int((source.directory / "PG_VERSION").read_text())
    # By its own programs: those of an older minor release may not know what a newer one keeps (15.20 and 17.10).
    Programs(database(source.url), major, source.binaries).dump(file)
    tell("loading")
    Programs(database(target.url), 0, binaries).load(file, target.url.rpartition("/")[2])
    before, after = _rows(source), _rows(target)
    if before != after:
        wrong = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
        raise KeepingError(f"not all rows arrived in the new version: {', '.join(wrong)}")
    with psycopg.connect(target.url, autocommit=True) as connection:
        connection.execute("ANALYZE")
    tell(f"{plural(sum(after.values()), 'row')} in {plural(len(after), 'table')} are the same in both")


def _rows(server: Postgres) -> dict[str, int]:
    """How many rows each table has."""
    with psycopg.connect(server.url) as connection:
        names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1").fetchall()
        count = sql.SQL("SELECT count(*) FROM {}")
        return {name: _count(connection, count.format(sql.Identifier(name))) for (name,) in names}


def _count(connection: psycopg.Connection[Any], query: sql.Composed) -> int:
    row = connection.execute(query).fetchone()
    return int(row[0]) if row else 0


@contextmanager
def _unused(var: Path) -> Iterator[None]:
    """Nobody uses the services, and whoever starts waits."""
    users, keeper = Lock(var, "users"), Lock(var, "keeper")
    try:
        if not users.try_to_take() or not keeper.try_to_take():
            raise ServiceError("the embedded services run; stop script/server and every other script first")
        yield
    finally:
        keeper.release()
        users.release()


@contextmanager
def _gone_afterwards(*paths: Path) -> Iterator[None]:
    """What lies there does so only meanwhile, also where an earlier upgrade was killed."""
    _remove(*paths)
    try:
        yield
    finally:
        _remove(*paths)


def _remove(*paths: Path) -> None:
    for path in paths:
        shutil.rmtree(path, ignore_errors=True)
        with suppress(OSError):
            path.unlink()


def _make_like(directory: Path, other: Path) -> None:
    """An empty directory of the same owner, as who its server will run."""
    directory.mkdir(mode=0o700)
    if account := Account.of_directory(other):
        os.chown(directory, account.uid, account.gid)


def _exchange(one: Path, other: Path) -> None:
    """Let two directories change names at once, so that at no moment there are no data. Raise ServiceError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE) != 0:
        reason = os.strerror(ctypes.get_errno())
        raise ServiceError(
            f"{one} and {other} cannot change places on this file system ({reason}); put back a backup instead"
        )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="script/upgrade-postgres",
        description="Move the data of the embedded PostgreSQL to the newest version that is installed.",
    )
    parser.parse_args(arguments)
    interrupt_on_stop_signals()
    try:
        upgrade(Installation.of_environment())
    except Interrupted as interrupted:
        print("interrupted; the data are as they were", file=sys.stderr)
        return interrupted.exit_status
    except (ServiceError, KeepingError) as error:
        print(f"rankwire: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
