"""Is this installation ready, and do its processes run? For container health checks, load balancers and monitoring."""

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
"""The answer is there within two seconds, whatever PostgreSQL and Redis do."""


@dataclass
class _Probe:
    """A question to a dependency in a thread of its own, which may hang: then no second one starts."""

    ask: Callable[[], Any]
    _threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "probe"))
    _running: Future[Any] | None = None

    def begin(self) -> Future[Any]:
        """Ask, unless an earlier question has no answer yet."""
        if self._running is None or self._running.done():
            self._running = self._threads.submit(self._ask)
        return self._running

    def _ask(self) -> Any:
        try:
            return self.ask()
        except Exception as error:
            outage.note(error)
            return None


def _processes() -> Any:
    try:
        return LastSeen.of_roles()
    finally:
        connection.close()  # of this thread: each question shows that the database takes connections


def _redis_answers() -> bool:
    cache.get("health")
    outage.REDIS.end()
    return True


_DATABASE: Final = _Probe(_processes)
_REDIS: Final = _Probe(_redis_answers)


def _answers() -> tuple[Mapping[str, LastSeen] | None, bool]:
    """Return the last heartbeats by role (None if the database does not answer in time), and whether Redis answers."""
    questions = [_DATABASE.begin(), _REDIS.begin()]
    wait(questions, PATIENCE_S)
    processes, redis = (each.result() if each.done() else None for each in questions)
    return processes, bool(redis)


@never_cache
@login_not_required
def health(request: HttpRequest) -> JsonResponse:
    """200 if PostgreSQL and Redis answer (``ready``), else 503; ``alive`` and ``last_seen_s`` are of the processes behind the pages."""
    processes, redis = _answers()
    ready = processes is not None and redis
    seen = processes or {}
    answer = {
        "database": processes is not None,
        "redis": redis,
        "ready": ready,
        "alive": all(each.is_alive for each in seen.values()) if seen else None,
        "last_seen_s": {role: each.age_s and round(each.age_s, 1) for role, each in seen.items()},
    }
    return JsonResponse(answer, status=200 if ready else 503)


@never_cache
@login_not_required
def metrics(request: HttpRequest) -> HttpResponse:
    """The same for Prometheus, in its text format."""
    processes, redis = _answers()
    lines = [
        "# HELP rankwire_up Whether the dependency answers.",
        "# TYPE rankwire_up gauge",
        f'rankwire_up{{dependency="database"}} {int(processes is not None)}',
        f'rankwire_up{{dependency="redis"}} {int(redis)}',
        "# HELP rankwire_last_seen_seconds Age of the last heartbeat of a process.",
        "# TYPE rankwire_last_seen_seconds gauge",
    ]
    seen = ((role, each.age_s) for role, each in (processes or {}).items())
    lines += [
        f'rankwire_last_seen_seconds{{process="{role}"}} {age_s:.1f}' for role, age_s in seen if age_s is not None
    ]
    return HttpResponse("\n".join(lines) + "\n", content_type="text/plain; version=0.0.4; charset=utf-8")
