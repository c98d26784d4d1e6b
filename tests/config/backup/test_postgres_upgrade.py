"""script/upgrade-postgres: the data move whole or stay where they are, and every refusal says what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from config.backup import postgres_upgrade
from config.backup.errors import KeepingError
from config.secrets import read_or_create_secret
from config.services import postgres
from config.services.errors import ServiceError
from config.services.lease import Installation, Lock
from config.services.postgres import Postgres, binaries_of, find_binaries


def server(var: Path) -> Postgres:
    password = read_or_create_secret(var / "postgres-password")
    return Postgres(var / "postgres", password=password, log=var / "postgres.log", durable=False)


@pytest.fixture
def var(tmp_path: Path) -> Path:
    """A var directory with data of the installed PostgreSQL."""
    old = server(tmp_path)
    old.start()
    with psycopg.connect(old.url) as connection:
        connection.execute("CREATE TABLE trials (id serial PRIMARY KEY, name text)")
        connection.execute("INSERT INTO trials (name) SELECT 'trial ' || n FROM generate_series(1, 500) n")
    old.stop()
    return tmp_path


def test_what_was_there_is_there_in_the_new_one_or_all_stays_as_it_was(
    var: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From one major version to itself: another one is not on every machine that runs the tests."""
    data, kept, told = var / "postgres", var / "postgres-old", list[str]()

    def move(tell: Callable[[str], object]) -> None:
        postgres_upgrade.move(data, kept, old=find_binaries(), new=find_binaries(), tell=tell)

    before = data.stat().st_ino
    with monkeypatch.context() as lossy:
        lossy.setattr(postgres_upgrade, "_rows", lambda each: {"trials": 500 if each.directory == data else 499})
        with pytest.raises(KeepingError, match="not all rows arrived in the new version: trials"):
            move(told.append)
    assert data.stat().st_ino == before
    assert not kept.exists()
    (var / "postgres.upgraded").mkdir()
    (var / "postgres.upgraded" / "left").write_text("by a killed one")

    move(told.append)
    assert "500 rows in 1 table are the same in both" in told
    assert kept.stat().st_ino == before
    assert not [path for path in var.iterdir() if path.name.startswith(("postgres.up", "postgres.dump"))]
    new = server(var)
    new.start()
    try:
        with psycopg.connect(new.url) as connection:
            connection.execute("INSERT INTO trials (name) VALUES ('one more')")
            assert connection.execute("SELECT count(*), max(id) FROM trials").fetchone() == (501, 501)
    finally:
        new.stop()


def refusal(var: Path, **given: str) -> str:
    with pytest.raises(ServiceError) as refused:
        postgres_upgrade.upgrade(Installation(var, given.get("database_url", ""), ""), tell=pytest.fail)
    return str(refused.value)


def test_it_says_what_keeps_it_from_the_upgrade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "postgres"
    assert "DATABASE_URL names a server of its own" in refusal(tmp_path, database_url="postgresql://elsewhere/rankwire")
    assert "holds no data yet" in refusal(tmp_path)
    data.mkdir()
    monkeypatch.setattr(postgres, "installed_binaries", lambda: {17: Path("/17")})
    monkeypatch.setattr(postgres_upgrade, "installed_binaries", lambda: {16: Path("/16"), 17: Path("/17")})
    (data / "PG_VERSION").write_text("16\n")
    missing = refusal(tmp_path)
    assert "were made by PostgreSQL 16, which is not installed, only 17: install the package postgresql-16" in missing
    assert "script/upgrade-postgres then moves the data" in missing
    monkeypatch.setattr(postgres, "installed_binaries", lambda: {16: Path("/16"), 17: Path("/17")})
    user = Lock(tmp_path, "users")
    user.share()
    assert "stop script/server and every other script first" in refusal(tmp_path)
    user.release()
    (tmp_path / "postgres-16").mkdir()
    assert "postgres-16 is there already; move it away" in refusal(tmp_path)
    (data / "PG_VERSION").write_text("sixteen\n")
    assert "which is no version of PostgreSQL" in refusal(tmp_path)
    told: list[str] = []
    (data / "PG_VERSION").write_text("17\n")
    postgres_upgrade.upgrade(Installation(tmp_path, "", ""), tell=told.append)
    assert told == ["the data are of PostgreSQL 17, the newest that is installed; nothing to do"]


def test_each_version_is_opened_by_its_own_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for major in ("9.6", "13", "15", "17"):
        program = tmp_path / major / "bin" / "postgres"
        program.parent.mkdir(parents=True)
        program.touch()
    monkeypatch.setattr(postgres, "DEBIAN_BINARIES", tmp_path)
    assert find_binaries() == tmp_path / "17" / "bin"
    (tmp_path / "PG_VERSION").write_text("15\n")
    assert binaries_of(tmp_path) == tmp_path / "15" / "bin"
    (tmp_path / "PG_VERSION").write_text("13\n")
    with pytest.raises(ServiceError, match="made by PostgreSQL 13"):
        binaries_of(tmp_path)
