"""Real services for the tests: PostgreSQL and Redis of this session.

They start when a test first needs them. Nothing has to run beforehand, sessions can run side by side, and pure tests
pay nothing. All files lie below `settings.VAR`, which is a directory of this session.
"""

from __future__ import annotations

import gc
import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import psutil
import pytest
from django.conf import settings
from django.db import connections
from django.test import TransactionTestCase
from xdist.scheduler import LoadScopeScheduling

from config.celery import app as celery_app
from config.environment import Environment
from config.services.postgres import Postgres
from config.services.redis import Redis
from config.store import artifacts
from experiments import registered, workloads
from experiments.store import Bucket, current
from tests.emptied import empty_database
from tests.s3_server import S3Server
from tests.worker_process import CeleryWorker

SESSIONS = settings.BASE_DIR / "var" / "tests"
SESSION = SESSIONS / str(os.getpid())

settings.VAR = SESSION
# Pure tests ask for workloads that there are not, and have no database to look into.
workloads._SOURCES.clear()
# Tests share their machine with whatever else runs on it; those of foreign load set this themselves.
settings.FOREIGN_CPU_PERCENT = 100
# Nor must a nearly full disk of that machine keep trials waiting; tests of that set this themselves.
settings.DISK_RESERVE_BYTES = 0
settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# Pages in tests use the files as they lie in the sources, not what collectstatic once gathered.
settings.STORAGES["staticfiles"]["BACKEND"] = "django.contrib.staticfiles.storage.StaticFilesStorage"
settings.WHITENOISE_AUTOREFRESH = settings.WHITENOISE_USE_FINDERS = True
# Ends every test whose rows are committed.
TransactionTestCase._fixture_teardown = lambda _: empty_database()  # type: ignore[method-assign]

# A shell in which .venv is active would find Open MPI 5 of the test requirements before the system's own.
_OWN_PROGRAMS = str(Path(sys.executable).parent)
os.environ["PATH"] = ":".join(part for part in os.environ["PATH"].split(":") if part != _OWN_PROGRAMS)


@dataclass(frozen=True)
class Services:
    """The session's servers."""

    postgres: Postgres
    redis: Redis


ONE_BY_ONE = (
    "tests/script/test_quick_studies.py",
    "tests/workers/capture/",
    "tests/workers/faults/",
    "tests/workers/hosts/",
    "tests/workers/machines/",
    "tests/workers/profile/",
    "tests/workers/testbed/",
    "tests/workers/trial/mpi/test_inside_mpi.py",
    "tests/workers/trial/mpi/test_replay.py",
    "tests/workers/trial/mpi/test_waits.py",
    "tests/workers/trial/test_disturbances.py",
    "tests/workers/trial/test_finished.py",
    "tests/workers/trial/test_limits.py",
    "tests/workers/trial/test_link.py",
    "tests/workers/trial/test_live_traffic.py",
    "tests/workers/trial/test_placement.py",
    "tests/workers/trial/test_rank_usage.py",
    "tests/workers/trial/test_study_workloads.py",
    "tests/workers/trial/test_transports.py",
)
"""Tests that judge a measured time or rate, or do harm: one at a time. With the other tests of workers and their trials,
which come between those of the other processes, they would end long after all others."""


TOGETHER = ("tests/browser/journeys/",)
"""Directories whose files share what is dear to make."""


ON_A_REAL_MACHINE = ("tests/workers/", "tests/script/", "tests/browser/")
"""Tests of clocks, links, processes and pages: they start first."""


def pytest_itemcollected(item: pytest.Item) -> None:
    if _takes_the_machine(item.nodeid):
        item.add_marker("machine")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):  # one of several processes, which all have the same order
        items.sort(key=_turn)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Roll back what a timed-out test left open: later tests would fail."""
    for connection in connections.all(initialized_only=True):
        if connection.in_atomic_block:
            connection.in_atomic_block, connection.savepoint_ids, connection.atomic_blocks = False, [], []
            connection.needs_rollback = connection.closed_in_transaction = False
            connection.close()


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Hand out files in the order of `_turn`, not by their number of tests."""
    config.option.loadscopereorder = False


def _takes_the_machine(nodeid: str) -> bool:
    return nodeid.startswith(ONE_BY_ONE)


def _turn(item: pytest.Item) -> int:
    """Order long tests first, so that the processes end together."""
    return 0 if _takes_the_machine(item.nodeid) else 1 if item.nodeid.startswith(ON_A_REAL_MACHINE) else 2


def pytest_collection_finish() -> None:
    """Freeze the objects of collected tests for the garbage collector."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


class OneForTheMachine(LoadScopeScheduling):
    """Scheduler for ``-n``: tests that take the machine run one at a time.

    All others run file by file, so that what a file shares among its tests is made once.
    """

    def _split_scope(self, nodeid: str) -> str:
        if _takes_the_machine(nodeid):
            return "machine"
        return next((prefix for prefix in TOGETHER if nodeid.startswith(prefix)), nodeid.partition("::")[0])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneForTheMachine:
    return OneForTheMachine(config, log)


def pytest_sessionfinish() -> None:
    shutil.rmtree(SESSION, ignore_errors=True)


@pytest.fixture
def registered_programs(services: Services, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Programs can be registered; a process of an earlier test knows none of them."""
    monkeypatch.setattr(workloads, "_SOURCES", [registered.programs])
    registered.forget()
    yield
    registered.forget()


@pytest.fixture(scope="session")
def services() -> Iterator[Services]:
    remove_dead_sessions()
    SESSION.mkdir(parents=True, exist_ok=True)
    password = secrets.token_urlsafe(16)
    running = Services(
        postgres=Postgres(SESSION / "postgres", password=password, log=SESSION / "postgres.log", durable=False),
        redis=Redis(SESSION / "redis", password=password, log=SESSION / "redis.log", durable=False),
    )
    try:
        running.postgres.start()
        running.redis.start()
        settings.DATABASE_URL, settings.REDIS_URL = running.postgres.url, running.redis.url
        settings.CACHES["default"]["LOCATION"] = running.redis.url
        settings.CELERY_BROKER_URL = celery_app.conf.broker_url = running.redis.url
        yield running
    finally:
        running.redis.stop()
        running.postgres.stop()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(services: Services) -> None:
    """Point Django at the session's PostgreSQL before the test database."""
    address = {"HOST": "127.0.0.1", "PORT": str(services.postgres.port), "PASSWORD": services.postgres.password}
    # Kept connections would hold the server's threads of a live server open between tests.
    connections.settings["default"].update(address, USER="rankwire", NAME="rankwire", CONN_MAX_AGE=0)


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """Keep the database at the end, as the whole server goes away."""
    return True


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """A server that speaks S3, for tests that leave it running."""
    SESSION.mkdir(parents=True, exist_ok=True)
    server = S3Server(SESSION / "s3", environment=os.environ)
    server.start()
    yield server
    server.kill()


@pytest.fixture
def bucket(s3_server: S3Server, settings: Any, tmp_path: Path) -> Bucket:
    """Store files of trials in an empty part of a bucket; VAR is the test's own."""
    settings.VAR = tmp_path / "var"
    settings.VAR.mkdir()
    variables = {**s3_server.variables, "RANKWIRE_STORE_PREFIX": tmp_path.name}
    settings.STORAGES = {**settings.STORAGES, "artifacts": artifacts(Environment.of(variables), settings.VAR)}
    return current()  # type: ignore[return-value]


@pytest.fixture
def empty_redis(services: Services) -> Redis:
    """Return the session's Redis, emptied of tasks and cached values."""
    services.redis.flush()
    return services.redis


@pytest.fixture(scope="session")
def make_celery_worker(services: Services, django_db_setup: None) -> Iterator[Callable[..., CeleryWorker]]:
    """Start real workers on the *test* database; kill them at the end."""
    started: list[CeleryWorker] = []

    def start(*, variables: Mapping[str, str] = MappingProxyType({}), **options: object) -> CeleryWorker:
        database = connections["default"].settings_dict["NAME"]
        worker = CeleryWorker(
            log=SESSION / f"worker-{len(started)}.log",
            environment={
                **os.environ,
                "DATABASE_URL": services.postgres.url.rpartition("/")[0] + f"/{database}",
                "REDIS_URL": services.redis.url,
                "RANKWIRE_VAR": str(SESSION),
                "RANKWIRE_SECRET_KEY": settings.SECRET_KEY,
                "RANKWIRE_FOREIGN_CPU_PERCENT": str(settings.FOREIGN_CPU_PERCENT),
                "RANKWIRE_DISK_RESERVE_MIB": "0",
                "DJANGO_SETTINGS_MODULE": "config.settings",
                **variables,
            },
        )
        started.append(worker)
        worker.start(**options)
        return worker

    yield start
    for worker in started:
        worker.kill()


@pytest.fixture
def start_celery_worker(make_celery_worker: Callable[..., CeleryWorker]) -> Iterator[Callable[..., CeleryWorker]]:
    """Start a worker of the test's own, for harm.

    Other tests share `celery_worker`. Its arguments are `CeleryWorker.start`'s, and variables that the worker's
    environment has besides. A failed test leaves no worker that would take what the next one queues.
    """
    started: list[CeleryWorker] = []

    def start(**options: object) -> CeleryWorker:
        started.append(make_celery_worker(**options))
        return started[-1]

    yield start
    for worker in started:
        worker.kill()


@pytest.fixture(scope="module")
def shared_celery_worker(make_celery_worker: Callable[..., CeleryWorker]) -> Iterator[list[CeleryWorker]]:
    shared: list[CeleryWorker] = []
    yield shared
    for worker in shared:  # it would run what tests of other modules queue
        worker.kill()


@pytest.fixture
def celery_worker(
    transactional_db: None,
    empty_redis: Redis,
    make_celery_worker: Callable[..., CeleryWorker],
    shared_celery_worker: list[CeleryWorker],
) -> Iterator[CeleryWorker]:
    """A worker that the tests of a module share, and leave idle and alive."""
    if not (shared_celery_worker and shared_celery_worker[0].alive):
        shared_celery_worker[:] = [make_celery_worker()]
    worker = shared_celery_worker[0]
    yield worker
    celery_app.control.purge()
    # A task of this test must not touch the tables while they are emptied for the next one.
    if not worker.wait_until_idle(timeout_s=10):
        worker.kill()


def remove_dead_sessions() -> None:
    """Remove the directories of killed sessions; their servers died with them."""
    for directory in SESSIONS.glob("[0-9]*"):
        if not psutil.pid_exists(int(directory.name)):
            shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def session_directory() -> Path:
    """This session's `settings.VAR`, gone after it."""
    SESSION.mkdir(parents=True, exist_ok=True)
    return SESSION
