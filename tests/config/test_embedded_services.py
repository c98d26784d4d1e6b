"""Embedded PostgreSQL and Redis: their start, end and recovery."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
import redis

from config.services import postgres
from config.services.errors import ServiceError
from config.services.lease import ROOT
from tests.config.processes import called, process_of, processes_of, wait_for, wait_until_gone


class User:
    """A process that uses the services of `var`."""

    def __init__(self, var: Path, **environment: str) -> None:
        variables = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.config.services_user"],
            cwd=ROOT,
            env={**variables, "RANKWIRE_VAR": str(var), **environment},
            stdout=subprocess.PIPE,
            text=True,
        )

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())  # type: ignore[no-any-return]

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(number)
        self.process.wait(30)


@pytest.fixture(scope="module")
def var(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory that other users cannot enter; all tests share it."""
    closed = tmp_path_factory.mktemp("closed")
    closed.chmod(0o700)
    return closed / "var"


@pytest.fixture
def use(var: Path) -> Iterator[Callable[..., User]]:
    users: list[User] = []

    def start(**environment: str) -> User:
        users.append(User(var, **environment))
        return users[-1]

    yield start
    for user in users:
        if user.process.poll() is None:
            user.end(signal.SIGKILL)
        assert user.process.stdout is not None
        user.process.stdout.close()
    wait_until_gone(var, timeout_s=30)


def test_it_ends_them_with_their_last_user(use: Callable[..., User], var: Path) -> None:
    first, second = use(), use()
    answers = [first.answer(), second.answer()]
    assert sorted(answer.pop("fresh") for answer in answers) == [False, True]
    assert answers[0] == answers[1]
    first.end()
    assert query(answers[0]["database_url"], "SELECT 1") == 1
    second.end()
    assert not processes_of(var)
    assert not (var / "services.json").exists()


def test_it_ends_them_when_their_last_user_is_killed(use: Callable[..., User], var: Path) -> None:
    user = use()
    user.answer()
    assert processes_of(var)
    user.end(signal.SIGKILL)
    wait_until_gone(var, timeout_s=20)


def test_servers_end_with_a_killed_host_and_recover(use: Callable[..., User], var: Path) -> None:
    user = use()
    execute(user.answer()["database_url"], "CREATE TABLE survivor AS SELECT 7 AS number")
    servers = process_of(var, "config.services.host_process").children(recursive=True)
    process_of(var, "config.services.host_process").kill()
    _, remaining = psutil.wait_procs(servers, timeout=60)
    assert remaining == []
    user.end()
    assert query(use().answer()["database_url"], "SELECT number FROM survivor") == 7


def test_it_keeps_rows_and_queued_messages_between_starts(use: Callable[..., User]) -> None:
    user = use()
    addresses = user.answer()
    execute(addresses["database_url"], "CREATE TABLE kept AS SELECT 7 AS number")
    with redis.Redis.from_url(addresses["redis_url"]) as client:
        client.rpush("queue", "message")
    user.end()
    addresses = use().answer()
    assert addresses["fresh"]
    assert query(addresses["database_url"], "SELECT number FROM kept") == 7
    with redis.Redis.from_url(addresses["redis_url"]) as client:
        assert client.lrange("queue", 0, -1) == [b"message"]


@pytest.mark.parametrize("server", ["bin/postgres", "redis-server"])
def test_it_starts_a_killed_server_again_at_the_same_address(use: Callable[..., User], var: Path, server: str) -> None:
    addresses = use().answer()
    killed = process_of(var, server)
    killed.kill()
    killed.wait(10)
    wait_for(lambda: answers(addresses), timeout_s=30)
    assert json.loads((var / "services.json").read_text())["database_url"] == addresses["database_url"]


def test_it_is_not_deceived_by_a_pid_file_that_names_another_process(use: Callable[..., User], var: Path) -> None:
    """After a power cut any process may have the number."""
    user = use()
    user.answer()
    user.end()
    (var / "postgres" / "postmaster.pid").write_text(f"{os.getpid()}\n/proc/self/fd/3\n0\n5432\n\n127.0.0.1\n")
    assert query(use().answer()["database_url"], "SELECT 1") == 1


def test_addresses_passwords_and_data_are_private(use: Callable[..., User], var: Path) -> None:
    use().answer()
    for name in ("services.json", "postgres-password", "redis-password", "postgres", "redis"):
        assert stat.S_IMODE((var / name).stat().st_mode) & 0o077 == 0, name


def test_it_asks_for_the_password(use: Callable[..., User], var: Path) -> None:
    addresses = use().answer()
    password = (var / "postgres-password").read_text().strip()
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        query(addresses["database_url"].replace(password, "guess"), "SELECT 1")
    with pytest.raises(redis.AuthenticationError), redis.Redis(port=port_of(addresses["redis_url"])) as client:
        client.ping()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can drop its rights")
def test_it_never_runs_a_server_as_root(use: Callable[..., User], var: Path) -> None:
    use().answer()
    for server in ("bin/postgres", "redis-server"):
        assert 0 not in process_of(var, server).uids()


def test_it_starts_only_what_the_environment_does_not_give(use: Callable[..., User], var: Path) -> None:
    addresses = use(REDIS_URL="redis://127.0.0.1:1/0").answer()
    assert addresses["redis_url"] == ""
    assert query(addresses["database_url"], "SELECT 1") == 1
    assert not called(processes_of(var), "redis-server")


def test_it_says_in_one_line_when_running_services_lack_one(use: Callable[..., User]) -> None:
    use(REDIS_URL="redis://127.0.0.1:1/0").answer()
    assert use().answer()["error"].startswith("the running services lack redis")


def test_it_says_which_version_made_the_data_when_that_is_gone(use: Callable[..., User], var: Path) -> None:
    user = use()
    user.answer()
    user.end()
    file = var / "postgres" / "PG_VERSION"
    made_by = file.read_text()
    file.write_text("12\n")
    try:
        assert "postgresql-12" in use().answer()["error"]
    finally:
        file.write_text(made_by)


def test_each_version_is_opened_by_its_own_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for major in ("9.6", "13", "15", "17"):
        program = tmp_path / major / "bin" / "postgres"
        program.parent.mkdir(parents=True)
        program.touch()
    monkeypatch.setattr(postgres, "DEBIAN_BINARIES", tmp_path)
    assert postgres.find_binaries() == tmp_path / "17" / "bin"
    for text, message in (("13\n", "made by PostgreSQL 13"), ("sixteen\n", "not a version of PostgreSQL")):
        (tmp_path / "PG_VERSION").write_text(text)
        with pytest.raises(ServiceError, match=message):
            postgres.binaries_of(tmp_path)
    (tmp_path / "PG_VERSION").write_text("15\n")
    assert postgres.binaries_of(tmp_path) == tmp_path / "15" / "bin"


def query(url: str, statement: str) -> Any:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(statement.encode()).fetchone()
    assert row is not None
    return row[0]


def execute(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())


def answers(addresses: dict[str, Any]) -> bool:
    try:
        with redis.Redis.from_url(addresses["redis_url"]) as client:
            return query(addresses["database_url"], "SELECT 1") == 1 and bool(client.ping())
    except (psycopg.OperationalError, redis.ConnectionError):
        return False


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2].partition("/")[0])
