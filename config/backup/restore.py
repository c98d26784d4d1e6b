"""Restore of a backup; old data stay until the new data are verified.

The dump is loaded into a new database of the same server, the files into a directory next to `trials`. Then both replace the old
ones: PostgreSQL renames the databases in one transaction, and the directories are renamed just before its commit. If the process
is killed in between, `config.backup.places.heal` renames the directories back at the next start.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import quote, urlsplit

import psycopg
import redis
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import ProgrammingError, connection
from django.db.migrations.loader import MigrationLoader
from django.db.models import QuerySet
from kombu.exceptions import OperationalError
from psycopg import sql

from analysis.numbers import amount, plural
from config.backup import settings_file
from config.backup.backup import SPARE_BYTES, server_major
from config.backup.dump import Programs
from config.backup.errors import BackupError, ChangedBackup
from config.backup.layout import (
    DATABASE,
    FILES,
    SECRETS,
    About,
    Progress,
    complete_backups,
    copy_file,
    sync_tree,
    verify,
)
from config.backup.places import Places, change_places, connected, drop, lock, maintenance, put_in_order
from config.celery import app as celery_app
from config.services.lease import Lock
from experiments import cluster_kinds, store
from experiments.common import plain_files, trees
from experiments.library import PUBLISHED_PROJECT
from experiments.models import Cluster, Experiment, Program, Project, Report, Trial
from experiments.models.people.project import DEFAULT_PROJECT

_FOREIGN: Final = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
    "AND backend_type = 'client backend'"
)


def chosen(directory: Path) -> Path:
    """Return the backup at a path or the newest one below it. Raise BackupError."""
    if not directory.is_dir():
        raise BackupError(f"{directory} is not a directory")
    if (directory / DATABASE).exists() or not (below := complete_backups(directory)):
        return directory  # reading it reports the error
    return below[-1]


def examine(directory: Path, report: Callable[[str], object] = print) -> list[str]:
    """Verify a backup; return the effect of a restore. Raise BackupError."""
    about = About.read(directory)
    _require_known(about)
    _require_room(Places.here(), about)
    progress = Progress(report, "checking the backup", files=about.files, size_bytes=about.file_bytes)
    sums = verify(directory, about, progress)
    _require_files(directory, about, sums, Programs(connection.settings_dict, server_major()))
    existing = existing_contents()
    return [
        f"would restore the database ({amount(about.database_bytes, 'B')}) and {plural(about.files, 'artifact')} "
        f"({amount(about.file_bytes, 'B')}) of {about.installation}, as of {about.made_at}",
        f"would replace: {', '.join(existing)} (needs --replace)"
        if existing
        else "would replace nothing: this installation is empty",
        f"{plural(about.active_trials, 'trial')} ran at that time and would be queued again",
        "the secret key would be restored as well"
        if about.secrets
        else "the secret key of this installation would stay",
    ]


@contextmanager
def unpacked(stream: IO[bytes]) -> Iterator[Path]:
    """Extract a tar stream into a temporary directory. Raise BackupError."""
    directory = Path(settings.VAR) / ".backup-from-stream"
    plain_files.discard(directory)
    try:
        directory.mkdir(parents=True, mode=0o700)
        try:
            with tarfile.open(fileobj=stream, mode="r|*") as archive:
                archive.extractall(directory, filter="data")
        except (tarfile.TarError, OSError) as error:
            raise BackupError(f"standard input is not a tar archive of a backup: {error}") from None
        yield directory
    finally:
        plain_files.discard(directory)


def restore_backup(directory: Path, *, replace: bool = False, report: Callable[[str], object] = print) -> list[str]:
    """Restore a backup; return notes for the administrator. Raise BackupError."""
    about = About.read(directory)
    _require_known(about)
    with _exclusive_use():
        put_in_order()
        if not replace and (existing := existing_contents()):
            raise BackupError(
                f"this installation is not empty ({', '.join(existing)}); replace all of it with --replace"
            )
        places = Places.here()
        programs = Programs(connection.settings_dict, server_major())
        _require_room(places, about)
        sums = verify(
            directory, about, Progress(report, "checking the backup", files=about.files, size_bytes=about.file_bytes)
        )
        _require_files(directory, about, sums, programs)
        try:
            with _new_database(places) as maintenance:
                report("loading the database")
                programs.load(directory / DATABASE, places.new_database)
                _bring_up_to_date(places.new_database)
                with _files_put(directory, places, about, sums, report):
                    _require_rows(places.new_database, about)
                    change_places(places, maintenance)
        except psycopg.errors.InsufficientPrivilege:
            user = connection.settings_dict["USER"]
            raise BackupError(
                f"the account cannot create databases; run as a superuser: ALTER ROLE {user} CREATEDB"
            ) from None
        except psycopg.Error as error:
            raise BackupError(_first_line(error)) from None
        except OSError as error:
            raise BackupError(f"the backup was not restored: {error.strerror or error}") from None
        try:
            return _after(directory, places, about)
        except (psycopg.Error, redis.RedisError, OSError) as error:
            return [f"the previous data could not be removed: {_first_line(error)}"]


def existing_contents() -> list[str]:
    """Return the contents made by users, in words; empty after a first start."""
    files = [f"files in {Places.here().trials}"] if any(Places.here().trials.glob("*")) else []
    if not connection.introspection.table_names():
        return files
    try:
        return _rows_of_users() + files
    except ProgrammingError:
        return ["tables of another version"]


def _rows_of_users() -> list[str]:
    everywhere = [kind.name for kind in cluster_kinds.registry() if kind.exists_everywhere]
    rows: dict[str, QuerySet[Any]] = {
        "experiment": Experiment.objects.filter(published=False),
        "account": get_user_model().objects.exclude(username="admin"),
        "project": Project.objects.exclude(slug__in=(DEFAULT_PROJECT, PUBLISHED_PROJECT)),
        "cluster": Cluster.objects.exclude(slug__in=everywhere),
        "program": Program.objects.all(),
        "report": Report.objects.all(),
    }
    return [plural(count, one) for one, queryset in rows.items() if (count := queryset.count())]


def _require_known(about: About) -> None:
    migrations = {key for key in MigrationLoader(None).disk_migrations}  # noqa: C416 - a view would keep the loader
    for app, name in about.migrations.items():
        ours = {migration for of, migration in migrations if of == app}
        if ours and name not in ours:
            raise BackupError(f"the backup is from a newer version of Rankwire (migration {app} {name})")


def _require_rows(database: str, about: About) -> None:
    """Refuse a database that lacks rows of files. Raise BackupError."""
    with connected(database) as loaded:
        row = loaded.execute("SELECT count(*) FROM experiments_artifact WHERE removed_at IS NULL").fetchone()
    if (missing := about.files - int(row[0] if row else 0)) > 0:
        raise BackupError(f"{plural(missing, 'row')} of files did not arrive in the database")


def _require_files(directory: Path, about: About, sums: dict[str, str], programs: Programs) -> None:
    tolerated = set(about.damaged)
    for file in programs.stored_files(directory / DATABASE):
        if sums.get(f"{FILES}/{file.validated().path}") != file.sha256 and file.path not in tolerated:
            raise ChangedBackup(f"{directory / FILES / file.path} differs from the database of the backup")


def _require_room(places: Places, about: About) -> None:
    needed = (
        (about.file_bytes if store.current().is_here else 0)
        + SPARE_BYTES
        + (about.database_bytes if connection.settings_dict["HOST"] == "127.0.0.1" else 0)
    )
    places.var.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(places.var).free
    if free < needed:
        raise BackupError(f"{places.var} has {amount(free, 'B')} free; the backup needs about {amount(needed, 'B')}")


@contextmanager
def _exclusive_use() -> Iterator[None]:
    """Ensure that no other process uses this installation, and that no worker starts."""
    worker_lock = Lock(Path(settings.VAR), "worker")
    try:
        if not worker_lock.try_to_take() or _workers_answer():
            raise BackupError("a worker is running; stop script/server and all workers first")
        with connection.cursor() as cursor:
            cursor.execute(_FOREIGN)
            if others := int(cursor.fetchone()[0]):
                raise BackupError(f"the database has {plural(others, 'other session')}; stop script/server first")
        with lock():
            yield
    finally:
        worker_lock.release()


def _workers_answer() -> bool:
    try:
        return bool(celery_app.control.ping(timeout=1.0))
    except (OperationalError, redis.RedisError) as error:
        raise BackupError(f"Redis does not answer ({error})") from None


@contextmanager
def _new_database(places: Places) -> Iterator[psycopg.Connection[Any]]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT datcollate, datctype FROM pg_database WHERE datname = current_database()")
        collate, ctype = cursor.fetchone()
    with maintenance() as server:
        for name in (places.new_database, places.old_database):  # of an interrupted restore, after `heal`
            drop(server, name)
        server.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE {} LC_CTYPE {}").format(
                sql.Identifier(places.new_database), sql.Literal(collate), sql.Literal(ctype)
            )
        )
        try:
            yield server
        finally:
            plain_files.discard(places.new_files)
            drop(server, places.new_database)


def _bring_up_to_date(name: str) -> None:
    """Apply new migrations to the restored database, in a process of their own."""
    address = urlsplit(settings.DATABASE_URL)._replace(path=f"/{quote(name, safe='')}").geturl()
    done = subprocess.run(
        [sys.executable, str(settings.BASE_DIR / "manage.py"), "migrate", "--verbosity", "0", "--no-input"],
        env={
            **os.environ,
            "DATABASE_URL": address,  # with the password, which settings refuse in two places
            "RANKWIRE_DATABASE_PASSWORD": "",
            "RANKWIRE_DATABASE_PASSWORD_FILE": "",
            "RANKWIRE_VAR": str(settings.VAR),
        },
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        message = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise BackupError(f"the tables of the backup cannot be migrated: {message}")


@contextmanager
def _files_put(
    directory: Path, places: Places, about: About, sums: dict[str, str], report: Callable[[str], object]
) -> Iterator[None]:
    """Provide the restored files before the restored database is used."""
    files = {path.removeprefix(f"{FILES}/"): digest for path, digest in sums.items() if path.startswith(f"{FILES}/")}
    progress = Progress(report, "artifacts", files=len(files), size_bytes=about.file_bytes)
    current = store.current()
    if isinstance(current, store.Bucket):
        with _uploaded(directory, current, files, progress), plain_files.private():
            places.new_files.mkdir(exist_ok=True)  # stays empty, for the exchange
            yield
    else:
        _copy_files(directory, places, files, progress)
        yield


@contextmanager
def _uploaded(directory: Path, bucket: store.Bucket, files: dict[str, str], progress: Progress) -> Iterator[None]:
    """Upload missing files; delete them if the block fails. Raise BackupError."""
    existing = {path for path, _, _ in bucket.below(store.TRIALS) if path in files}
    for path in existing:
        if bucket.hash_of(path) != files[path]:
            raise BackupError(f"the bucket has a different file at {path}; set RANKWIRE_STORE_PREFIX to an empty path")
    new: list[str] = []
    try:
        for path in files.keys() - existing:
            new.append(path)
            file = directory / FILES / path
            bucket.put(file, path)
            progress.add(file.stat().st_size)
        yield
    except BaseException:
        bucket.give_back(new)
        raise


def _copy_files(directory: Path, places: Places, files: dict[str, str], progress: Progress) -> None:
    plain_files.discard(places.new_files)
    owner = places.var.stat()
    with plain_files.private():
        places.new_files.mkdir()
        for path, digest in files.items():
            target = places.new_files / Path(path).relative_to("trials")
            target.parent.mkdir(parents=True, exist_ok=True)
            copied, size_bytes = copy_file(directory / FILES / path, target)
            if copied != digest:
                raise ChangedBackup(f"{directory / FILES / path} was changed")
            progress.add(size_bytes)
    if os.geteuid() == 0 and owner.st_uid != 0:
        os.chown(places.new_files, owner.st_uid, owner.st_gid)
        for entry in trees.walk(places.new_files):
            os.chown(entry.name, owner.st_uid, owner.st_gid, dir_fd=entry.descriptor)
    sync_tree(places.new_files)


def _after(directory: Path, places: Places, about: About) -> list[str]:
    """Remove previous data and caches, requeue running trials; return notes."""
    put_in_order()
    plain_files.discard(places.var / "exports")
    with closing(redis.Redis.from_url(settings.REDIS_URL)) as client:
        for key in client.scan_iter("rankwire:*", count=1000):
            client.delete(key)
    notes = []
    if not store.current().is_here:
        notes.append("previous artifacts stay in the bucket until script/manage store check --delete-orphans")
    if again := sum(trial.requeue() for trial in Trial.objects.active()):
        notes.append(f"{plural(again, 'trial')} ran during the backup and {'is' if again == 1 else 'are'} queued again")
    if about.damaged:
        notes.append(f"{plural(len(about.damaged), 'artifact')} damaged during the backup: {', '.join(about.damaged)}")
    notes += _put_secrets(directory, places.var)
    if lines := settings_file.differing(directory):
        notes.append("settings of the backup that differ here: " + ", ".join(lines))
    return notes


def _put_secrets(directory: Path, var: Path) -> list[str]:
    password = var / settings_file.PASSWORD_FILE
    if not (directory / SECRETS).is_dir():
        admin = get_user_model().objects.filter(username="admin").first()
        if password.is_file() and not (admin and admin.check_password(password.read_text().strip())):
            password.unlink()  # of the previous admin
        return [
            "the backup has no secret key; with another key than before, users sign in again, second factors are unreadable, and webhooks "
            "need new secrets"
        ]
    owner = var.stat()
    for name in (settings_file.SECRET_KEY_FILE, settings_file.PASSWORD_FILE):
        if (source := directory / SECRETS / name).is_file():
            plain_files.write(var / name, source.read_bytes())
            (var / name).chmod(0o600)
            if os.geteuid() == 0:
                os.chown(var / name, owner.st_uid, owner.st_gid)
    notes = [f"secrets of other services are in {directory / SECRETS / settings_file.SECRETS_FILE}"]
    if settings.ENVIRONMENT.RANKWIRE_SECRET_KEY:
        notes.append("RANKWIRE_SECRET_KEY is set here; the secret key of the backup is not used")
    return notes


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
