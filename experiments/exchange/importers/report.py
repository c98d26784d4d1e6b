"""Common parts of the importers of other tools' files."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from experiments import workloads
from experiments.common import budget, external_figures
from experiments.common.storable import is_storable_text, storable
from experiments.common.storable import problems as storable_problems
from experiments.exchange import records
from experiments.exchange.table import DECIMAL
from experiments.metrics import why_impossible
from experiments.specification.parameters import sentence

RESERVED: Final = ("hosts", "ranks", "ranks_per_host")
_LONGEST_TEXT: Final = 200
_MOST_EXCLUDED: Final = 1000
_LONGEST_SENTENCE: Final = 400
_R = TypeVar("_R", bound=BaseModel)


class Lenient(BaseModel):
    """A record of another tool: known fields are checked, others are ignored."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True, str_max_length=100_000)


class Exclusions(list[str]):
    """The first sentences on excluded runs and figures; `more` counts the others."""

    more = 0

    def append(self, sentence: str, /) -> None:
        """Add a sentence, cut to a readable length. Counts as processor time."""
        budget.check()
        if len(self) < _MOST_EXCLUDED:
            super().append(sentence[:_LONGEST_SENTENCE])
        else:
            self.more += 1

    def sentences(self) -> list[str]:
        return [*self, f"{self.more} more runs or figures"] if self.more else list(self)


@dataclass(slots=True)
class ToolReport:
    """Results of a file; ``sets`` are descriptions of one program on one cluster each."""

    tool: str
    """With its version if the file states it."""
    sets: list[dict[str, Any]]
    left_out: Exclusions = field(default_factory=Exclusions)


def checked(kind: type[_R], data: Any, tool: str) -> _R:
    """Return the record. Raise BadBundle with the path of the first wrong field."""
    return records.checked(kind, data, f"It is not as {tool} writes it")


def usable(kind: type[_R], data: Any, name: str, left_out: list[str]) -> _R | None:
    """Return the record; None, with the reason in ``left_out``, if it is odd."""
    budget.check()
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(map(str, first["loc"]))
        left_out.append(f"{name[:120]}: {path}: {sentence(first, path)}")
        return None


def keep_figure(figures: dict[str, float], tool: str, name: str, value: Any, unit: str) -> None:
    """Add a figure under its identifier here. Raise ValueError."""
    budget.check()
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    try:
        number = (
            float(value) if is_number or (isinstance(value, str) and DECIMAL.fullmatch(value.strip())) else math.nan
        )
    except OverflowError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{str(value)[:40]!r} is no number")
    identifier, converted = external_figures.named(tool, name, number, unit)
    if identifier in figures:
        raise ValueError(f"another figure of it is called {identifier} here")
    if not math.isfinite(converted):
        raise ValueError(f"{str(value)[:40]!r} is no number in the unit that it is kept in")
    if why := why_impossible(identifier, converted):
        raise ValueError(why)
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
    """Return values as numbers and texts; reserved names get ``tool`` in front."""
    return {
        f"{tool}_{name}" if name in RESERVED else _shortened(name, 80): _usable(value) for name, value in values.items()
    }


def _usable(value: Any) -> int | float | str:
    """Return a number or text that differs wherever the written value does."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and math.isfinite(value) and not any(storable_problems(value)):
        return value  # type: ignore[no-any-return]
    return _shortened(value if isinstance(value, str) else json.dumps(value, sort_keys=True), _LONGEST_TEXT)


def _shortened(text: str, length: int) -> str:
    """Return the text; of a long or odd one its beginning and a hash."""
    if len(text) <= length and is_storable_text(text):
        return text
    return f"{storable(text)[: length - 14]}… {hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()[:12]}"


def keep_apart(trials: Sequence[dict[str, Any]]) -> None:
    """Make texts of numbers that differ in writing alone: 1 and 1.0."""
    for name in {name for trial in trials for name in trial["parameters"]}:
        budget.check()
        rows = [trial["parameters"] for trial in trials if name in trial["parameters"]]
        if len({row[name] for row in rows}) < len({repr(row[name]) for row in rows}):
            for row in rows:
                row[name] = str(row[name])


def moment(seconds: float | None) -> str | None:
    """Return a time of Unix as text with its zone; None if no calendar has it."""
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return None
