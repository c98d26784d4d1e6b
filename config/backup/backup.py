"""Making a backup while the installation runs.

First the database, as one snapshot sees it, then the files that this snapshot names. A trial that ends meanwhile is running in the
backup; its files are not taken. Where a file was removed or written anew in between (retention, an analysis made again), the
database is dumped once more, so that in the end every row has its file.
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
from config.backup.errors import KeepingError
from config.backup.layout import (
    DATABASE,
    FILES,
    NAME_PREFIX,
    PART_PREFIX,
    About,
    Progress,
    Stored,
    copy_pieces,
    hash_file,
    sync,
    sync_tree,
    verify,
    whole_backups,
    write_sums,
)
from experiments import store
from experiments.errors import NotPlain
from experiments.models import Artifact, Trial

ROUNDS: Final = 5
SETTLE_S: Final = 1.0
"""A file that is written anew has its row a moment later."""
SPARE_BYTES: Final = 64 << 20


@dataclass(slots=True)
class Snapshot:
    """What the database said at one moment."""

    files: list[Stored]
    migrations: dict[str, str]
    active_trials: int
    database_bytes: int


@dataclass(frozen=True, slots=True)
class Taken:
    """A file that lies in the backup already; ``linked``: shared with the backup before."""

    sha256: str
    size_bytes: int
    linked: bool


def make(
    above: Path, *, secrets: bool = False, accept_damaged: bool = False, tell: Callable[[str], object] = print
) -> Path:
    """Make a backup in a new directory below `above`, and read it back; return its place. Raise KeepingError.

    ``accept_damaged``: files that are not what their trial left, or are gone, do not prevent it; they are noted.
    """
    var = Path(settings.VAR).resolve()
    if above.resolve().is_relative_to(var / "trials"):
        raise KeepingError(f"{above} lies among the files of trials")
    made_at = datetime.now(UTC)
    programs = Programs(connection.settings_dict, server_major())
    with _own(above) as directory:
        earlier = next(reversed(whole_backups(above)), None)
        try:
            final = _unused(above / f"{NAME_PREFIX}{made_at:%Y%m%dT%H%M%SZ}")
            about = _fill(
                directory, earlier, programs, made_at, accept_damaged=accept_damaged, secrets=secrets, tell=tell
            )
            about.write(directory)
            sync_tree(directory)
            directory.rename(final)
            sync(above)
        except OSError as error:
            raise KeepingError(
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
    tell: Callable[[str], object],
) -> About:
    """Write all of a backup but `backup.json`, and check it."""
    taken, damaged = dict[str, Taken](), list[Stored]()
    for _round in range(ROUNDS):
        snapshot = _dump(directory / DATABASE, programs, tell, again=bool(taken))
        if not taken:
            _require_room(directory, snapshot, earlier)
        changed = _take_files(directory, snapshot.files, taken, earlier, tell)
        damaged = [file for file in changed if _is_named_still(file)]
        if len(damaged) == len(changed):
            break
    else:
        raise KeepingError("files of trials changed again and again while they were copied; try once more")
    if damaged and not accept_damaged:
        more = "" if len(damaged) == 1 else f" and {plural(len(damaged) - 1, 'other')}"
        raise KeepingError(
            f"{damaged[0].path}{more} is gone or not what its trial left; script/manage store check --hashes names all; "
            "--accept-damaged makes the backup all the same"
        )
    for path in taken.keys() - {file.path for file in snapshot.files}:  # of an earlier round
        (directory / FILES / path).unlink()
        del taken[path]
    names = settings_file.store(directory, secrets=secrets)
    sync_tree(directory)
    tell("reading the backup back")
    programs.read_through(directory / DATABASE)
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
    verify(directory, about, Progress(tell, "checking", files=len(sums), size_bytes=size_bytes))
    shared = sum(file.linked for file in taken.values())
    linked = f", {plural(shared, 'file')} shared with the backup before" if shared else ""
    tell(f"the database, {plural(len(taken), 'file')} of trials ({amount(size_bytes, 'B')}){linked}")
    if missing:
        tell(f"not in it, since they are gone: {', '.join(sorted(missing))}")
    return about


def _dump(file: Path, programs: Programs, tell: Callable[[str], object], *, again: bool) -> Snapshot:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute("SELECT pg_export_snapshot(), pg_database_size(current_database())")
        identifier, size_bytes = cursor.fetchone()
        tell("dumping the database once more" if again else f"dumping the database ({amount(size_bytes, 'B')})")
        _require(file.parent, int(size_bytes) // 2)
        programs.dump(file, identifier)
        rows = Artifact.objects.filter(removed_at=None).order_by("path").values_list("path", "size_bytes", "sha256")
        return Snapshot(
            files=[Stored(*row).checked() for row in rows.iterator(chunk_size=10_000)],
            migrations=migrations(),
            active_trials=Trial.objects.active().count(),
            database_bytes=int(size_bytes),
        )


def migrations(alias: str = "default") -> dict[str, str]:
    """The last migration of each app that the database has."""
    applied: dict[str, str] = {}
    for app, name in MigrationRecorder.Migration.objects.using(alias).order_by("id").values_list("app", "name"):
        applied[app] = max(applied.get(app, ""), name)
    return applied


def _take_files(
    directory: Path,
    files: Iterable[Stored],
    taken: dict[str, Taken],
    earlier: Path | None,
    tell: Callable[[str], object],
) -> list[Stored]:
    """Copy or link what is not there yet; return what could not be taken as the database has it."""
    open_ones = [file for file in files if file.path not in taken or taken[file.path].sha256 != file.sha256]
    progress = Progress(
        tell, "files of trials", files=len(open_ones), size_bytes=sum(file.size_bytes for file in open_ones)
    )
    changed = []
    for file in open_ones:
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


def _is_named_still(file: Stored) -> bool:
    """Whether a row still says of a file what the snapshot said: then it is damaged, else it was changed by right."""
    return Artifact.objects.filter(path=file.path, sha256=file.sha256, removed_at=None).exists()


def _require_room(directory: Path, snapshot: Snapshot, earlier: Path | None) -> None:
    if earlier is not None and earlier.stat().st_dev != directory.stat().st_dev:
        earlier = None
    new = [file for file in snapshot.files if earlier is None or not (earlier / FILES / file.path).exists()]
    _require(directory, sum(file.size_bytes for file in new))


def _require(directory: Path, size_bytes: int) -> None:
    free = shutil.disk_usage(directory).free
    if free < size_bytes + SPARE_BYTES:
        raise KeepingError(
            f"{directory.parent} has {amount(free, 'B')} free, the backup needs about {amount(size_bytes + SPARE_BYTES, 'B')}"
        )


@contextmanager
def _own(above: Path) -> Iterator[Path]:
    """A directory for this backup alone; what an interrupted one left is removed, and of two at once one is refused."""
    try:
        above.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(above / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise KeepingError(f"{above} cannot be written: {error.strerror}") from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise KeepingError(f"another backup is being made in {above}") from None
        for left in above.glob(f"{PART_PREFIX}*"):
            shutil.rmtree(left, ignore_errors=True)
        directory = above / f"{PART_PREFIX}{os.getpid()}"
        directory.mkdir(mode=0o700)
        try:
            yield directory
        finally:
            shutil.rmtree(directory, ignore_errors=True)
    finally:
        os.close(lock)


def _unused(place: Path) -> Path:
    """Two backups of one second have two names."""
    for number in range(1, 1000):
        candidate = place if number == 1 else place.with_name(f"{place.name}-{number}")
        if not candidate.exists():
            return candidate
    raise KeepingError(f"{place} is there already")


def server_major() -> int:
    """The major version of the server that the database is on."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version_num")
        return int(cursor.fetchone()[0]) // 10_000
