"""Services behind the pages: versions, sizes and times of an answer."""

from __future__ import annotations

import os
import platform
import shutil
from dataclasses import dataclass
from functools import cache
from time import perf_counter
from typing import Any, Final

import django
import redis
from django.conf import settings
from django.db import connection
from django.db.models import Q, Sum

from dashboard.help.version import version
from experiments.common import outage
from experiments.models import Artifact

_PATIENCE_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Service:
    """A service: its version, and the seconds until it answered; None if it did not."""

    name: str
    version: str
    answered_s: float | None
    bytes: int | None = None


def database() -> Service:
    """Return PostgreSQL with the size of the database."""
    begin = perf_counter()
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('server_version'), pg_database_size(current_database())")
        version_words, size = cursor.fetchone()
    return Service("PostgreSQL", str(version_words).partition(" ")[0], perf_counter() - begin, int(size))


def broker() -> Service:
    """Return Redis, which carries wake-ups of workers and caches answers."""
    begin = perf_counter()
    try:
        facts: Any = _redis().info()
    except (redis.RedisError, OSError) as error:
        outage.REDIS.note(error)
        return Service("Redis", "", None)
    outage.REDIS.end()
    return Service("Redis", str(facts.get("redis_version", "")), perf_counter() - begin, facts.get("used_memory"))


@cache
def _redis() -> redis.Redis:
    return redis.Redis.from_url(
        settings.CACHES["default"]["LOCATION"], socket_connect_timeout=_PATIENCE_S, socket_timeout=_PATIENCE_S
    )


def versions() -> list[tuple[str, str]]:
    """Return the versions of Rankwire and of what it runs on."""
    return [("Rankwire", version()), ("Python", platform.python_version()), ("Django", django.get_version())]


def load() -> dict[str, float]:
    """Return the processes on cores or waiting for one, and the cores of this machine."""
    return {"busy": round(os.getloadavg()[0], 2), "cores": os.cpu_count() or 1}


def storage() -> dict[str, Any]:
    """Return the bytes of stored files, and of the disk with the var directory."""
    storage = Artifact.objects.filter(removed_at=None).aggregate(
        captures=Sum("size_bytes", filter=Q(kind=Artifact.Kind.CAPTURE), default=0),
        results=Sum("size_bytes", filter=~Q(kind=Artifact.Kind.CAPTURE), default=0),
    )
    disk = shutil.disk_usage(settings.VAR)
    total = storage["captures"] + storage["results"]
    days = settings.CAPTURE_RETENTION_DAYS
    other = max(0, disk.used - total)
    return {**storage, "total": total, "other": other, "free": disk.free, "disk": disk.total, "days": days}
