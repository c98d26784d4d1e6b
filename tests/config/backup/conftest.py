"""A second installation: database, Redis, var directory and commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.conf import settings

from tests.conftest import Services


class Elsewhere:
    """An installation for restores."""

    def __init__(self, services: Services, var: Path) -> None:
        self.var = var
        self.variables: dict[str, str] = {}
        """Additional settings."""
        self.database = f"elsewhere_{uuid4().hex[:8]}"
        self._server = services.postgres.url.rpartition("/")[0]
        self._redis = services.redis.url.rpartition("/")[0] + "/1"
        self.execute(f"CREATE DATABASE {self.database}")

    @property
    def url(self) -> str:
        return f"{self._server}/{self.database}"

    def execute(self, statement: str, database: str = "postgres") -> list[Any]:
        with psycopg.connect(f"{self._server}/{database}", autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def databases(self) -> list[str]:
        names = (row[0] for row in self.execute("SELECT datname FROM pg_database ORDER BY 1"))
        return [name for name in names if name.startswith(self.database)]

    def manage(self, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("RANKWIRE_")}
        here = {
            "DATABASE_URL": self.url,
            "REDIS_URL": self._redis,
            "RANKWIRE_VAR": str(self.var),
            "DJANGO_SETTINGS_MODULE": "config.settings",
        }
        done = subprocess.run(
            [sys.executable, str(settings.BASE_DIR / "manage.py"), *arguments],
            env={**environment, **here, **self.variables},
            cwd=settings.BASE_DIR,
            input=stdin,
            capture_output=True,
            check=False,
        )
        return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())

    def ask(self, program: str) -> Any:
        """Run a program there and return its JSON output."""
        done = self.manage("shell", "--no-imports", "-c", program)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def drop(self) -> None:
        for name in self.databases():
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def elsewhere(services: Services, tmp_path: Path) -> Iterator[Elsewhere]:
    installation = Elsewhere(services, tmp_path / "elsewhere")
    yield installation
    installation.drop()


@pytest.fixture
def backups(tmp_path: Path) -> Path:
    """Directory of backups."""
    return tmp_path / "backups"


@pytest.fixture
def output_of() -> Callable[[subprocess.CompletedProcess[str]], str]:
    """Return the output and errors of a command."""
    return lambda done: done.stdout + done.stderr
