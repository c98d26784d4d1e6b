"""Putting a backup back. Nothing that is there goes before the new database and all its files are there and checked.

The dump is loaded into a new database of the same server, the files into a directory beside `trials`. Then both change places with
the old ones: the databases by a renaming that PostgreSQL commits as one, the directories just before that commit. Who is killed in
between leaves the directories changed and the databases not: `config.backup.places.heal`, which every start calls, sees that and
changes them back.
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
from urllib.parse import quote, urlencode

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
from config.backup.errors import ChangedBackup, KeepingError
from config.backup.layout import (
    DATABASE,
    FILES,
    SECRETS,
    About,
    Progress,
    copy_file,
    sync_tree,
    verify,
    whole_backups,
)
from config.backup.places import Places, change_places, drop, lock, maintenance, put_in_order
from config.celery import app as celery_app
from config.services.lease import Lock
from experiments import cluster_kinds, store
from experiments.common import plain_files
from experiments.library import PUBLISHED_PROJECT
from experiments.models import Cluster, Experiment, Program, Project, Report, Trial
from experiments.models.people.project import DEFAULT_PROJECT

_FOREIGN: Final = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
    "AND backend_type = 'client backend'"
)


def chosen(directory: Path) -> Path:
    """The backup that a directory is, or the newest whole one below it. Raise KeepingError."""
    if not directory.is_dir():
        raise KeepingError(f"{directory} is no directory")
    if (directory / DATABASE).exists() or not (below := whole_backups(directory)):
        return directory  # reading it says what is wrong
    return below[-1]


def examine(directory: Path, tell: Callable[[str], object] = print) -> list[str]:
    """Check a backup as a restore does, and return what a restore would do, in sentences. Change nothing. Raise KeepingError."""
    about = About.read(directory)
    _require_known(about)
    _require_room(Places.here(), about)
    progress = Progress(tell, "checking the backup", files=about.files, size_bytes=about.file_bytes)
    sums = verify(directory, about, progress)
    _require_files(directory, about, sums, Programs(connection.settings_dict, server_major()))
    there = what_is_there()
    return [
        f"would restore the database ({amount(about.database_bytes, 'B')}) and {plural(about.files, 'file')} of trials "
        f"({amount(about.file_bytes, 'B')}) of {about.installation}, as of {about.made_at}",
        f"would replace: {', '.join(there)} (needs --replace)"
        if there
        else "would replace nothing: this installation is empty",
        f"{plural(about.active_trials, 'trial')} ran at that time and would wait again",
        "the secret key would be restored as well"
        if about.secrets
        else "the secret key would stay that of this installation",
    ]


@contextmanager
def unpacked(stream: IO[bytes]) -> Iterator[Path]:
    """A backup that comes as a tar stream, in a directory of its own until the end of the block. Raise KeepingError."""
    place = Path(settings.VAR) / ".backup-from-stream"
    shutil.rmtree(place, ignore_errors=True)
    try:
        place.mkdir(parents=True, mode=0o700)
        try:
            with tarfile.open(fileobj=stream, mode="r|*") as archive:
                archive.extractall(place, filter="data")
        except (tarfile.TarError, OSError) as error:
            raise KeepingError(f"standard input is not a tar archive of a backup: {error}") from None
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def put_back(directory: Path, *, replace: bool = False, tell: Callable[[str], object] = print) -> list[str]:
    """Make this installation what a backup says; return sentences that the person must know. Raise KeepingError."""
    about = About.read(directory)
    _require_known(about)
    with _alone():
        put_in_order()
        if not replace and (there := what_is_there()):
            raise KeepingError(
                f"this installation is not empty ({', '.join(there)}); --replace puts the backup in the place of all of it"
            )
        places = Places.here()
        programs = Programs(connection.settings_dict, server_major())
        _require_room(places, about)
        sums = verify(
            directory, about, Progress(tell, "checking the backup", files=about.files, size_bytes=about.file_bytes)
        )
        _require_files(directory, about, sums, programs)
        try:
            with _new_database(places) as maintenance:
                tell("loading the database")
                programs.load(directory / DATABASE, places.new_database)
                _bring_up_to_date(places.new_database, about)
                with _files_put(directory, places, about, sums, tell):
                    change_places(places, maintenance)
        except psycopg.errors.InsufficientPrivilege:
            user = connection.settings_dict["USER"]
            raise KeepingError(
                f"the account may not make databases; as a superuser: ALTER ROLE {user} CREATEDB"
            ) from None
        except psycopg.Error as error:
            raise KeepingError(_first_line(error)) from None
        except OSError as error:
            raise KeepingError(f"the backup was not put back: {error.strerror or error}") from None
        try:
            return _after(directory, places, about)
        except (psycopg.Error, redis.RedisError, OSError) as error:
            return [f"what was there before could not be cleared away: {_first_line(error)}"]


def what_is_there() -> list[str]:
    """What people made in this installation, in words; empty where there is nothing but what a first start makes."""
    files = [f"files in {Places.here().trials}"] if any(Places.here().trials.glob("*")) else []
    if not connection.introspection.table_names():
        return files
    try:
        return _own_rows() + files
    except ProgrammingError:
        return ["the tables of another version"]


def _own_rows() -> list[str]:
    everywhere = [kind.name for kind in cluster_kinds.registry() if kind.exists_everywhere]
    rows: dict[str, QuerySet[Any]] = {
        "experiment": Experiment.objects.filter(published=False),
        "account": get_user_model().objects.exclude(username="admin"),
        "project": Project.objects.exclude(slug__in=(DEFAULT_PROJECT, PUBLISHED_PROJECT)),
        "cluster": Cluster.objects.exclude(slug__in=everywhere),
        "program": Program.objects.all(),
        "report": Report.objects.all(),
    }
    return [plural(count, one) for one, found in rows.items() if (count := found.count())]


def _require_known(about: About) -> None:
    known = {key for key in MigrationLoader(None).disk_migrations}  # noqa: C416 - a view would keep the loader
    for app, name in about.migrations.items():
        ours = {migration for of, migration in known if of == app}
        if ours and name not in ours:
            raise KeepingError(f"the backup was made by a newer version of Rankwire (its tables are at {app} {name})")


def _require_files(directory: Path, about: About, sums: dict[str, str], programs: Programs) -> None:
    tolerated = set(about.damaged)
    for file in programs.stored_files(directory / DATABASE):
        if sums.get(f"{FILES}/{file.checked().path}") != file.sha256 and file.path not in tolerated:
            raise ChangedBackup(f"{directory / FILES / file.path} is not what the database of the backup says")


def _require_room(places: Places, about: About) -> None:
    needed = (
        (about.file_bytes if store.current().is_here else 0)
        + SPARE_BYTES
        + (about.database_bytes if connection.settings_dict["HOST"] == "127.0.0.1" else 0)
    )
    places.var.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(places.var).free
    if free < needed:
        raise KeepingError(f"{places.var} has {amount(free, 'B')} free, the backup needs about {amount(needed, 'B')}")


@contextmanager
def _alone() -> Iterator[None]:
    """Nobody else uses this installation, and no worker of this machine starts meanwhile."""
    seat = Lock(Path(settings.VAR), "worker")
    try:
        if not seat.try_to_take() or _workers_answer():
            raise KeepingError("a worker runs; stop script/server and every other worker first")
        with connection.cursor() as cursor:
            cursor.execute(_FOREIGN)
            if others := int(cursor.fetchone()[0]):
                raise KeepingError(f"others use the database ({plural(others, 'session')}); stop script/server first")
        with lock():
            yield
    finally:
        seat.release()


def _workers_answer() -> bool:
    try:
        return bool(celery_app.control.ping(timeout=1.0))
    except (OperationalError, redis.RedisError) as error:
        raise KeepingError(f"Redis does not answer ({error})") from None


@contextmanager
def _new_database(places: Places) -> Iterator[psycopg.Connection[Any]]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT datcollate, datctype FROM pg_database WHERE datname = current_database()")
        collate, ctype = cursor.fetchone()
    with maintenance() as server:
        for left in (places.new_database, places.old_database):  # of one that was killed; healed before this
            drop(server, left)
        server.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE {} LC_CTYPE {}").format(
                sql.Identifier(places.new_database), sql.Literal(collate), sql.Literal(ctype)
            )
        )
        try:
            yield server
        finally:
            shutil.rmtree(places.new_files, ignore_errors=True)
            drop(server, places.new_database)


def _bring_up_to_date(name: str, about: About) -> None:
    """Run the migrations that the backup did not have yet, in the new database, by a process of their own."""
    entry = connection.settings_dict
    user = f"{quote(entry['USER'], safe='')}@" if entry["USER"] else ""
    host = f"{quote(entry['HOST'], safe='')}{':' if entry['PORT'] else ''}{entry['PORT']}"
    options = {key: value for key, value in entry["OPTIONS"].items() if isinstance(value, str)}
    address = f"postgresql://{user}{host}/{quote(name, safe='')}{'?' if options else ''}{urlencode(options)}"
    done = subprocess.run(
        [sys.executable, str(settings.BASE_DIR / "manage.py"), "migrate", "--verbosity", "0", "--no-input"],
        env={
            **os.environ,
            "DATABASE_URL": address,
            # Settings refuse an address with a password beside one in a variable of its own, as there may be here.
            "RANKWIRE_DATABASE_PASSWORD": entry["PASSWORD"],
            "RANKWIRE_VAR": str(settings.VAR),
        },
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise KeepingError(f"the tables of the backup cannot be brought up to date: {said}")


@contextmanager
def _files_put(
    directory: Path, places: Places, about: About, sums: dict[str, str], tell: Callable[[str], object]
) -> Iterator[None]:
    """The new files are where the new database has them when it becomes the one that is used."""
    files = {path.removeprefix(f"{FILES}/"): digest for path, digest in sums.items() if path.startswith(f"{FILES}/")}
    progress = Progress(tell, "files of trials", files=len(files), size_bytes=about.file_bytes)
    own = store.current()
    if isinstance(own, store.Bucket):
        with _sent(directory, own, files, progress), plain_files.private():
            places.new_files.mkdir(exist_ok=True)  # nothing in it; it changes places all the same
            yield
    else:
        _copy_files(directory, places, files, progress)
        yield


@contextmanager
def _sent(directory: Path, bucket: store.Bucket, files: dict[str, str], progress: Progress) -> Iterator[None]:
    """Send files to the bucket; those that are there must be the same, new ones are taken back where the block ends with an error."""
    there = {path for path, _, _ in bucket.below(store.TRIALS) if path in files}
    for path in there:
        if bucket.hash_of(path) != files[path]:
            raise KeepingError(
                f"the bucket has another file at {path}; set RANKWIRE_STORE_PREFIX to a part of it that is empty"
            )
    new: list[str] = []
    try:
        for path in files.keys() - there:
            new.append(path)
            file = directory / FILES / path
            bucket.put(file, path)
            progress.add(file.stat().st_size)
        yield
    except BaseException:
        bucket.give_back(new)
        raise


def _copy_files(directory: Path, places: Places, files: dict[str, str], progress: Progress) -> None:
    shutil.rmtree(places.new_files, ignore_errors=True)
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
        for above, _directories, names in os.walk(places.new_files):
            for name in (".", *names):
                os.chown(Path(above) / name, owner.st_uid, owner.st_gid)
    sync_tree(places.new_files)


def _after(directory: Path, places: Places, about: About) -> list[str]:
    """What was there before goes; what ran when the backup was made waits again; what remembers the old rows forgets them."""
    put_in_order()
    shutil.rmtree(places.var / "exports", ignore_errors=True)
    with closing(redis.Redis.from_url(settings.REDIS_URL)) as client:
        for key in client.scan_iter("rankwire:*", count=1000):
            client.delete(key)
    notes = []
    if not store.current().is_here:
        notes.append(
            "files of what was there before stay in the bucket until script/manage store check --delete-orphans"
        )
    if again := sum(trial.requeue() for trial in Trial.objects.active()):
        notes.append(
            f"{plural(again, 'trial')} ran when the backup was made; {'it waits' if again == 1 else 'they wait'} again"
        )
    if about.damaged:
        notes.append(
            f"{plural(len(about.damaged), 'file')} damaged when the backup was made: {', '.join(about.damaged)}"
        )
    notes += _put_secrets(directory, places.var)
    if lines := settings_file.differing(directory):
        notes.append("settings of the backup that are not set so here: " + ", ".join(lines))
    return notes


def _put_secrets(directory: Path, var: Path) -> list[str]:
    password = var / settings_file.PASSWORD_FILE
    if not (directory / SECRETS).is_dir():
        admin = get_user_model().objects.filter(username="admin").first()
        if password.is_file() and not (admin and admin.check_password(password.read_text().strip())):
            password.unlink()  # of the admin who was here before
        return [
            "the backup has no secret key, this installation keeps its own; where that is another one, people sign in anew (with the "
            "passwords that they had), and webhooks are set up anew"
        ]
    owner = var.stat()
    for name in (settings_file.SECRET_KEY_FILE, settings_file.PASSWORD_FILE):
        if (source := directory / SECRETS / name).is_file():
            plain_files.write(var / name, source.read_bytes())
            (var / name).chmod(0o600)
            if os.geteuid() == 0:
                os.chown(var / name, owner.st_uid, owner.st_gid)
    notes = [f"secrets of other services that the backup has lie in {directory / SECRETS / settings_file.SECRETS_FILE}"]
    if settings.ENVIRONMENT.RANKWIRE_SECRET_KEY:
        notes.append("RANKWIRE_SECRET_KEY is set here, so that the secret key of the backup is not used")
    return notes


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
