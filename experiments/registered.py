"""The registered programs as a source of the registry of workloads: read from the database when they have changed, else kept.

Every value of a sweep asks for its workload, so a process keeps what it read. A stamp in the shared cache says whether somebody
else has registered one since; it is looked at once a second.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import structlog
from django.apps import apps
from django.core.cache import cache
from pydantic import ValidationError
from redis.exceptions import RedisError

from experiments.workloads import Workload
from experiments.workloads.program import ProgramDefinition, programs_from

STAMP: Final = "programs"
LOOK_EVERY_S: Final = 1.0

log = structlog.get_logger()


class _Kept:
    """What this process knows. ``stamp`` None: nothing yet."""

    workloads: Mapping[str, Workload] = {}
    stamp: str | None = None
    looked_at = float("-inf")


def programs() -> Mapping[str, Workload]:
    """Return the registered programs by name."""
    now = time.monotonic()
    if now - _Kept.looked_at < LOOK_EVERY_S:
        return _Kept.workloads
    stamp = _stamp()
    if _Kept.stamp is None or stamp != _Kept.stamp:
        rows: Any = apps.get_model("experiments", "Program").objects.order_by("slug", "version")
        _Kept.workloads = programs_from(_readable(rows.values_list("version", "definition")))
        _Kept.stamp = stamp
    _Kept.looked_at = now
    return _Kept.workloads


def _readable(rows: Iterable[tuple[int, Mapping[str, Any]]]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Leave out what a newer Rankwire does not accept any more: one program must not take all others with it."""
    for version, definition in rows:
        try:
            ProgramDefinition.model_validate(definition)
        except ValidationError as error:
            log.warning("program_not_readable", program=definition.get("name"), version=version, reason=str(error))
        else:
            yield version, definition


def _stamp() -> str:
    try:
        cache.add(STAMP, secrets.token_hex(8), timeout=None)
        return str(cache.get(STAMP))
    except RedisError:
        return _Kept.stamp or secrets.token_hex(8)


def announce() -> None:
    """Tell all processes that programs have changed."""
    forget()
    try:
        cache.set(STAMP, secrets.token_hex(8), timeout=None)
    except RedisError:
        return  # others hear it when they start anew


def forget() -> None:
    """Read the programs anew at the next question."""
    _Kept.stamp, _Kept.looked_at = None, float("-inf")
