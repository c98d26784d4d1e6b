"""Registered programs as a source of the registry of workloads.

A process caches them and checks once a second for changes, because every value of a sweep looks its workload up.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import structlog
from django.apps import apps
from pydantic import ValidationError

from experiments.workloads import WorkloadDefinition
from experiments.workloads.command import programs_from
from experiments.workloads.definition import ProgramDefinition

LOOK_EVERY_S: Final = 1.0

log = structlog.get_logger()


class _Cache:
    workloads: Mapping[str, WorkloadDefinition] = {}
    state: list[tuple[Any, ...]] | None = None
    looked_at = float("-inf")


def programs() -> Mapping[str, WorkloadDefinition]:
    """Return the registered programs by name."""
    now = time.monotonic()
    if now - _Cache.looked_at < LOOK_EVERY_S:
        return _Cache.workloads
    rows: Any = apps.get_model("experiments", "Program").objects.order_by("slug", "version")
    state = list(rows.order_by("pk").values_list("pk", "changed_at"))
    if state != _Cache.state:
        _Cache.workloads = programs_from(_readable(rows.values_list("version", "definition")))
        _Cache.state = state
    _Cache.looked_at = now
    return _Cache.workloads


def state() -> list[tuple[Any, ...]] | None:
    """Return the keys and times of change of the programs that this process uses."""
    programs()
    return _Cache.state


def _readable(rows: Iterable[tuple[int, Mapping[str, Any]]]) -> Iterator[tuple[int, ProgramDefinition]]:
    """Skip definitions that this version of Rankwire does not accept."""
    for version, definition in rows:
        try:
            yield version, ProgramDefinition.model_validate(definition)
        except ValidationError as error:
            log.warning("program_not_readable", program=definition.get("name"), version=version, reason=str(error))


def forget() -> None:
    """Read the programs again at the next use."""
    _Cache.state, _Cache.looked_at = None, float("-inf")
