"""Backup of a running installation.

The database is dumped from one snapshot; then the files that this snapshot lists are copied. A trial that ends meanwhile is
running in the backup, without its files. If a file was removed or rewritten meanwhile (retention, a repeated analysis), the
database is dumped again, so that every row of a complete backup has its file.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from django.conf import settings
from django.db import connection, transaction
from django.db.migrations.recorder import MigrationRecorder

from analysis.numbers import amount, plural
from config.backup import settings_file
from config.backup.dump import Programs
from config.backup.errors import BackupError
from config.backup.layout import (
    DATABASE,
    FILES,
    NAME_PREFIX,
    PART_PREFIX,
    About,
    Progress,
    Stored,
    complete_backups,
    copy_pieces,
    hash_file,
    sync,
    sync_tree,
    verify,
    write_sums,
)
from experiments import store
from experiments.common import plain_files
from experiments.errors import NotPlain
from experiments.models import Artifact, Trial

ROUNDS: Final = 5
SETTLE_S: Final = 1.0
"""Seconds until the row of a rewritten file is updated."""
SPARE_BYTES: Final = 64 << 20


@dataclass(slots=True)
class Snapshot:
    """State of the database at one moment."""

    files: list[Stored]
    migrations: dict[str, str]
    active_trials: int
    database_bytes: int


@dataclass(frozen=True, slots=True)
class Taken:
    """A file in the backup; ``linked`` if it is a hard link to the previous backup."""

    sha256: str
    size_bytes: int
    linked: bool


def make(
    above: Path, *, secrets: bool = False, accept_damaged: bool = False, report: Callable[[str], object] = print
) -> Path:
    """Make a backup in a new directory below `above`, verify it, and return its path.

    With ``accept_damaged``, missing and changed files are recorded instead of refused. Raise BackupError.
    """
    var = Path(settings.VAR).resolve()
    if above.resolve().is_relative_to(var / "trials"):
        raise BackupError(f"{above} is inside the directory of trials")
    made_at = datetime.now(UTC)
    programs = Programs(connection.settings_dict, server_major())
    with _locked_directory(above) as directory:
        earlier = next(reversed(complete_backups(above)), None)
        try:
            final = _unused(above / f"{NAME_PREFIX}{made_at:%Y%m%dT%H%M%SZ}")
            about = _fill(
                directory, earlier, programs, made_at, accept_damaged=accept_damaged, secrets=secrets, report=report
            )
            about.write(directory)
            sync_tree(directory)
            directory.rename(final)
            sync(above.resolve())
        except OSError as error:
            raise BackupError(
                f"the backup was not made: {error.strerror or error} ({error.filename or above})"
            ) from None
    return final


def _fill(
    directory: Path,
    earlier: Path | None,
    programs: Programs,
    made_at: datetime,
    *,
    accept_damaged: bool,
    secrets: bool,
    report: Callable[[str], object],
) -> About:
    """Write and verify a backup; return the contents of `backup.json`."""
    taken, damaged = dict[str, Taken](), list[Stored]()
    for _round in range(ROUNDS):
        snapshot = _dump(directory / DATABASE, programs, report, again=bool(taken))
        if not taken:
            _require_room(directory, snapshot, earlier)
        changed = _take_files(directory, snapshot.files, taken, earlier, report)
        damaged = [file for file in changed if _is_listed(file)]
        if len(damaged) == len(changed):
            break
    else:
        raise BackupError(f"artifacts changed during each of {ROUNDS} attempts to copy them; try again later")
    if damaged and not accept_damaged:
        more = "" if len(damaged) == 1 else f" and {plural(len(damaged) - 1, 'other')}"
        raise BackupError(
            f"{damaged[0].path}{more}: missing or changed; list them with script/manage store check --hashes, "
            "or make the backup with --accept-damaged"
        )
    for path in taken.keys() - {file.path for file in snapshot.files}:
        (directory / FILES / path).unlink()
        del taken[path]
    names = settings_file.store(directory, secrets=secrets)
    sync_tree(directory)
    report("verifying the backup")
    programs.read_through(directory / DATABASE)
    dumped = {(file.path, file.sha256) for file in programs.stored_files(directory / DATABASE)}
    if dumped != {(file.path, file.sha256) for file in snapshot.files}:
        raise BackupError(f"{directory / DATABASE} does not list the files that were copied")
    missing = {file.path for file in damaged} - taken.keys()
    size_bytes = sum(file.size_bytes for file in taken.values())
    sums = [(hash_file(directory / name)[0], name) for name in (DATABASE, *names)]
    sums += [(file.sha256, f"{FILES}/{path}") for path, file in sorted(taken.items())]
    about = About(
        made_at=made_at.isoformat(timespec="seconds"),
        installation=settings.INSTALLATION_NAME,
        postgresql=str(server_major()),
        database_bytes=snapshot.database_bytes,
        migrations=snapshot.migrations,
        files=len(taken),
        file_bytes=size_bytes,
        active_trials=snapshot.active_trials,
        secrets=secrets,
        damaged=sorted({file.path for file in damaged}),
        sums=write_sums(directory, sums),
    )
    verify(directory, about, Progress(report, "checking", files=len(sums), size_bytes=size_bytes))
    shared = sum(file.linked for file in taken.values())
    linked = f", {plural(shared, 'artifact')} shared with the previous backup" if shared else ""
    report(f"the database, {plural(len(taken), 'artifact')} ({amount(size_bytes, 'B')}){linked}")
    if missing:
        report(f"missing artifacts, not in the backup: {', '.join(sorted(missing))}")
    return about


def _dump(file: Path, programs: Programs, report: Callable[[str], object], *, again: bool) -> Snapshot:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute("SELECT pg_export_snapshot(), pg_database_size(current_database())")
        identifier, size_bytes = cursor.fetchone()
        report("dumping the database again" if again else f"dumping the database ({amount(size_bytes, 'B')})")
        _require(file.parent, int(size_bytes) // 2)
        programs.dump(file, identifier)
        rows = Artifact.objects.filter(removed_at=None).order_by("path").values_list("path", "size_bytes", "sha256")
        return Snapshot(
            files=[Stored(*row).validated() for row in rows.iterator(chunk_size=10_000)],
            migrations=migrations(),
            active_trials=Trial.objects.active().count(),
            database_bytes=int(size_bytes),
        )


def migrations(alias: str = "default") -> dict[str, str]:
    """Return the last applied migration of each app."""
    applied: dict[str, str] = {}
    for app, name in MigrationRecorder.Migration.objects.using(alias).order_by("id").values_list("app", "name"):
        applied[app] = max(applied.get(app, ""), name)
    return applied


def _take_files(
    directory: Path,
    files: Iterable[Stored],
    taken: dict[str, Taken],
    earlier: Path | None,
    report: Callable[[str], object],
) -> list[Stored]:
    """Copy or link new files; return those that differ from their rows."""
    remaining = [file for file in files if file.path not in taken or taken[file.path].sha256 != file.sha256]
    progress = Progress(
        report, "artifacts", files=len(remaining), size_bytes=sum(file.size_bytes for file in remaining)
    )
    changed = []
    for file in remaining:
        if not _take(directory, file, taken, earlier):
            changed.append(file)
        progress.add(file.size_bytes)
    if changed:
        time.sleep(SETTLE_S)
        changed = [file for file in changed if not _take(directory, file, taken, None)]
    return changed


def _take(directory: Path, file: Stored, taken: dict[str, Taken], earlier: Path | None) -> bool:
    target = directory / FILES / file.path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    taken.pop(file.path, None)
    if earlier is not None and _link(earlier / FILES / file.path, target, file):
        taken[file.path] = Taken(file.sha256, file.size_bytes, linked=True)
        return True
    try:
        digest, size_bytes = copy_pieces(store.current().pieces(file.path), target)
    except (FileNotFoundError, NotADirectoryError, NotPlain):
        return False
    taken[file.path] = Taken(digest, size_bytes, linked=False)
    return digest == file.sha256


def _link(old: Path, target: Path, file: Stored) -> bool:
    try:
        if old.stat().st_size != file.size_bytes or hash_file(old)[0] != file.sha256:
            return False
        os.link(old, target)
    except (OSError, NotPlain):
        return False
    return True


def _is_listed(file: Stored) -> bool:
    """Return True if a row still has this hash: the file is damaged, not updated."""
    return Artifact.objects.filter(path=file.path, sha256=file.sha256, removed_at=None).exists()


def _require_room(directory: Path, snapshot: Snapshot, earlier: Path | None) -> None:
    if earlier is not None and earlier.stat().st_dev != directory.stat().st_dev:
        earlier = None
    new = [file for file in snapshot.files if earlier is None or not (earlier / FILES / file.path).exists()]
    _require(directory, sum(file.size_bytes for file in new))


def _require(directory: Path, size_bytes: int) -> None:
    free = shutil.disk_usage(directory).free
    if free < size_bytes + SPARE_BYTES:
        raise BackupError(
            f"{directory.parent} has {amount(free, 'B')} free; the backup needs about {amount(size_bytes + SPARE_BYTES, 'B')}"
        )


@contextmanager
def _locked_directory(above: Path) -> Iterator[Path]:
    """Provide a locked, clean directory for one backup."""
    try:
        above.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(above / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise BackupError(f"{above} cannot be written: {error.strerror}") from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BackupError(f"another backup is running in {above}") from None
        for interrupted in above.glob(f"{PART_PREFIX}*"):
            plain_files.discard(interrupted)
        directory = above / f"{PART_PREFIX}{os.getpid()}"
        directory.mkdir(mode=0o700)
        try:
            yield directory
        finally:
            plain_files.discard(directory)
    finally:
        os.close(lock)


def _unused(path: Path) -> Path:
    for number in range(1, 1000):
        candidate = path if number == 1 else path.with_name(f"{path.name}-{number}")
        if not candidate.exists():
            return candidate
    raise BackupError(f"{path} exists already")


def server_major() -> int:
    """Return the major version of the database server."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version_num")
        return int(cursor.fetchone()[0]) // 10_000
