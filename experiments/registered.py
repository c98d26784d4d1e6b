"""The registered programs as a source of the registry of workloads.

Every value of a sweep asks for its workload, so a process keeps the programs that it read, and asks once a second whether they changed.
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


class _Kept:
    """The programs that this process read. ``state`` None: none yet."""

    workloads: Mapping[str, WorkloadDefinition] = {}
    state: list[tuple[Any, ...]] | None = None
    looked_at = float("-inf")


def programs() -> Mapping[str, WorkloadDefinition]:
    """Return the registered programs by name."""
    now = time.monotonic()
    if now - _Kept.looked_at < LOOK_EVERY_S:
        return _Kept.workloads
    rows: Any = apps.get_model("experiments", "Program").objects.order_by("slug", "version")
    state = list(rows.order_by("pk").values_list("pk", "changed_at"))
    if state != _Kept.state:
        _Kept.workloads = programs_from(_readable(rows.values_list("version", "definition")))
        _Kept.state = state
    _Kept.looked_at = now
    return _Kept.workloads


def _readable(rows: Iterable[tuple[int, Mapping[str, Any]]]) -> Iterator[tuple[int, ProgramDefinition]]:
    """Leave out definitions that a newer Rankwire no longer accepts: one program must not take all others with it."""
    for version, definition in rows:
        try:
            yield version, ProgramDefinition.model_validate(definition)
        except ValidationError as error:
            log.warning("program_not_readable", program=definition.get("name"), version=version, reason=str(error))


def forget() -> None:
    """Read the programs again when they are next asked for."""
    _Kept.state, _Kept.looked_at = None, float("-inf")
