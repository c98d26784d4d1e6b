"""A benchmark's own PostgreSQL and Redis, with Django and no rows."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from config.services.postgres import Postgres
from config.services.redis import Redis


@contextmanager
def services(*, durable: bool) -> Iterator[Path]:
    """Yield the directory of services that the environment names, then remove it."""
    with tempfile.TemporaryDirectory() as directory:
        home, password = Path(directory), secrets.token_urlsafe(16)
        postgres = Postgres(home / "postgres", password=password, log=home / "postgres.log", durable=durable)
        redis = Redis(home / "redis", password=password, log=home / "redis.log", durable=durable)
        try:
            postgres.start()
            redis.start()
            os.environ |= {"DATABASE_URL": postgres.url, "REDIS_URL": redis.url, "RANKWIRE_VAR": directory}
            os.environ |= {"RANKWIRE_SECRET_KEY": password, "DJANGO_SETTINGS_MODULE": "config.settings"}
            yield home
        finally:
            redis.stop()
            postgres.stop()


@contextmanager
def laboratory() -> Iterator[None]:
    """Set up the migrated project with all library experiments, for the block."""
    with services(durable=False):
        _set_up()
        yield


def _set_up() -> None:
    import django

    django.setup()
    from django.conf import settings
    from django.core.management import call_command

    settings.ALLOWED_HOSTS = ["testserver"]
    settings.STORAGES["staticfiles"]["BACKEND"] = "django.contrib.staticfiles.storage.StaticFilesStorage"
    call_command("migrate", verbosity=0)
    call_command("load_library", verbosity=0)
