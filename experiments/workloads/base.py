"""What a workload is: typed parameters -> argv and input files; output -> figures of merit. Pure: no process is started here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict


class Parameters(BaseModel):
    """Base of a workload's typed parameters. ``json_schema_extra={"unit": ...}`` names a field's unit."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class FigureOfMerit:
    """A workload's own metric. ``id`` is ``<workload>.<name_with_unit>``."""

    id: str
    label: str
    unit: str
    direction: Literal["lower", "higher", "neutral"]
    definition: str


@dataclass(frozen=True, slots=True)
class Parsed:
    """What the output said: figures of merit by id, and tables for the trial page (name -> rows)."""

    figures: Mapping[str, float]
    tables: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)


class Workload(ABC):
    """A program that can be measured."""

    slug: ClassVar[str]
    title: ClassVar[str]
    summary: ClassVar[str]
    programs: ClassVar[Mapping[str, str]]
    """Needed programs, each with the Debian package that holds it."""
    parameters_type: ClassVar[type[Parameters]]
    figures: ClassVar[tuple[FigureOfMerit, ...]]
    outputs: ClassVar[tuple[str, ...]] = ()
    """Names of the text files that a run writes beside its standard output; they are parsed and kept."""

    @abstractmethod
    def command(self, parameters: Any, *, ranks: int) -> tuple[str, ...]:
        """Return the argv of one rank's program; it runs in a directory that holds ``files``."""

    def files(self, parameters: Any, *, ranks: int) -> Mapping[str, str]:
        """Return the input files by name."""
        return {}

    @abstractmethod
    def parse(self, output: str, files: Mapping[str, str]) -> Parsed:
        """Return what a finished run printed and wrote (``files``: those of ``outputs`` that exist, by name).

        Raise OutputError when it is not what a good run prints.
        """

    @abstractmethod
    def estimate_s(self, parameters: Any, *, ranks: int) -> float:
        """Return a rough elapsed time in seconds, used only until there are past trials."""
