"""Common parts of the importers of other tools' files."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict

from experiments import workloads
from experiments.common import external_figures
from experiments.common.storable import is_storable_text
from experiments.exchange import records

RESERVED: Final = ("hosts", "ranks", "ranks_per_host")
_LONGEST_TEXT: Final = 200
_R = TypeVar("_R", bound=BaseModel)


class Lenient(BaseModel):
    """A record of another tool: known fields are checked, others are ignored."""

    model_config = ConfigDict(extra="allow", frozen=True)


@dataclass(slots=True)
class ToolReport:
    """Results of a file; ``sets`` are descriptions of one program on one cluster each."""

    tool: str
    """With its version if the file states it."""
    sets: list[dict[str, Any]]
    left_out: list[str] = field(default_factory=list)
    """A sentence for each excluded run or figure."""


def checked(kind: type[_R], data: Any, tool: str) -> _R:
    """Return the record. Raise BadBundle with the path of the first wrong field."""
    return records.checked(kind, data, f"It is not as {tool} writes it")


def keep_figure(figures: dict[str, float], tool: str, name: str, value: Any, unit: str) -> None:
    """Add a figure under its identifier here. Raise ValueError."""
    try:
        number = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{str(value)[:40]!r} is no number")
    identifier, converted = external_figures.named(tool, name, number, unit)
    if identifier in figures:
        raise ValueError(f"another figure of it is called {identifier} here")
    if not math.isfinite(converted):
        raise ValueError(f"{str(value)[:40]!r} is no number in the unit that it is kept in")
    figures[identifier] = converted


def workload_named(name: str, tool: str) -> str:
    """Return a name for another tool's program that no workload here has."""
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.")[:60] or tool
    return f"{tool}-{plain}" if workloads.find(plain, {}) is not None else plain


def described(name: str, program: str, tool: str, cluster: str, source: str) -> dict[str, Any]:
    """Return the description of a program on a cluster, without trials yet."""
    named = {"name": name[:120], "workload": workload_named(program, tool), "cluster": cluster[:60]}
    return {**named, "source": source[:300], "trials": []}


def parameters(values: Mapping[str, Any], tool: str) -> dict[str, Any]:
    """Return numbers and texts of ``values``; reserved names begin with ``tool``."""
    usable: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, bool):
            value = str(value).lower()
        if isinstance(value, float) and not math.isfinite(value):
            continue
        if isinstance(value, str) and not (is_storable_text(value) and len(value) <= _LONGEST_TEXT):
            continue
        if isinstance(value, int | float | str) and is_storable_text(name) and len(name) <= 80:
            usable[f"{tool}_{name}" if name in RESERVED else name] = value
    return usable


def moment(seconds: float | None) -> str | None:
    """Return a time of Unix as text with its zone; None if no calendar has it."""
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return None
