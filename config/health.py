"""Health of the installation for container checks, load balancers and Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, Final

from django.contrib.auth.decorators import login_not_required
from django.core.cache import cache
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache

from experiments.common import outage
from experiments.models import LastSeen

PATIENCE_S: Final = 1.5
"""Seconds until a silent service counts as down; the answer takes at most 2 s."""


@dataclass
class _Probe:
    """A check of a service in its own thread; only one runs at a time."""

    check: Callable[[], Any]
    _threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "probe"))
    _running: Future[Any] | None = None

    def begin(self) -> Future[Any]:
        """Start the check unless it is running."""
        if self._running is None or self._running.done():
            self._running = self._threads.submit(self._check)
        return self._running

    def _check(self) -> Any:
        try:
            return self.check()
        except Exception as error:
            outage.note(error)
            return None


def _processes() -> Any:
    try:
        return LastSeen.of_roles()
    finally:
        connection.close()  # of this thread: each check opens a connection


def _redis_answers() -> bool:
    cache.get("health")
    outage.REDIS.end()
    return True


_DATABASE: Final = _Probe(_processes)
_REDIS: Final = _Probe(_redis_answers)


def _answers() -> tuple[Mapping[str, LastSeen] | None, bool]:
    """Return heartbeats by role (None without a database) and True if Redis answers."""
    checks = [_DATABASE.begin(), _REDIS.begin()]
    wait(checks, PATIENCE_S)
    processes, redis = (check.result() if check.done() else None for check in checks)
    return processes, bool(redis)


@never_cache
@login_not_required
def health(request: HttpRequest) -> JsonResponse:
    """Answer 200 if PostgreSQL and Redis answer, else 503."""
    processes, redis = _answers()
    ready = processes is not None and redis
    seen = processes or {}
    answer = {
        "database": processes is not None,
        "redis": redis,
        "ready": ready,
        "alive": all(process.is_alive for process in seen.values()) if seen else None,
        "last_seen_s": {role: process.age_s and round(process.age_s, 1) for role, process in seen.items()},
    }
    return JsonResponse(answer, status=200 if ready else 503)


@never_cache
@login_not_required
def metrics(request: HttpRequest) -> HttpResponse:
    """Answer in the text format of Prometheus."""
    processes, redis = _answers()
    lines = [
        "# HELP rankwire_up Whether the dependency answers.",
        "# TYPE rankwire_up gauge",
        f'rankwire_up{{dependency="database"}} {int(processes is not None)}',
        f'rankwire_up{{dependency="redis"}} {int(redis)}',
        "# HELP rankwire_last_seen_seconds Age of the last heartbeat of a process.",
        "# TYPE rankwire_last_seen_seconds gauge",
    ]
    ages = {role: process.age_s for role, process in (processes or {}).items()}
    lines += [
        f'rankwire_last_seen_seconds{{process="{role}"}} {age_s:.1f}'
        for role, age_s in ages.items()
        if age_s is not None
    ]
    return HttpResponse("\n".join(lines) + "\n", content_type="text/plain; version=0.0.4; charset=utf-8")
