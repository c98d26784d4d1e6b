"""Format of published studies: printed tables with source, conditions and notes.

A study is one JSON file. Each of its tables has constants, rows of parameters and values in base units, and the printed names of
the values. Rows of several tables that have the same parameters are one point.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from experiments.exchange.record_schemas import Items
from experiments.specification.design import configuration_hash

PUBLISHED = Path(__file__).parent / "published"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Source(_Part):
    """Publication of a study, and the conditions of its measurements."""

    title: str
    authors: str
    year: int | str = ""
    program: str = ""
    conditions: str
    facts: dict[str, float | str | dict[str, float]] = {}
    """Facts of the cluster in base units, such as ``clock_hz``; ``other_prices`` by when they were paid."""


class Row(_Part):
    """One printed line; ``conditions`` are printed beside the numbers, in words."""

    parameters: dict[str, Any]
    values: dict[str, float]
    conditions: dict[str, str] = {}


class Table(_Part):
    """One printed table; ``printed_as`` holds the printed names of columns by metric."""

    name: str
    constants: dict[str, Any]
    printed_as: dict[str, str]
    rows: Items[Row]


@dataclass(slots=True)
class Point:
    """One configuration of a study with everything that its tables print for it."""

    parameters: dict[str, Any]
    hash: str
    values: dict[str, float] = field(default_factory=dict)
    conditions: dict[str, dict[str, str]] = field(default_factory=dict)
    """By table."""

    @property
    def hosts(self) -> int:
        """Number of hosts; 0 if it is not printed."""
        return int(self.parameters.get("hosts", 0))

    @property
    def ranks(self) -> int:
        """Number of ranks; 0 if it is not printed."""
        return self.hosts * int(self.parameters.get("ranks_per_host", 1))


class PublishedStudy(_Part):
    """Tables of a publication, notes on their quality, and its other statements."""

    slug: str
    name: str
    workload: str
    built_in: Items[str] = []
    """Beginnings of the names of the built-in experiments that make the same kind of study."""
    source: Source
    notes: Items[str]
    statements: Items[str]
    tables: Items[Table]

    def points(self) -> list[Point]:
        """Return all points in the order of print. Raise ValueError for a repeated metric."""
        by_hash: dict[str, Point] = {}
        for table in self.tables:
            for row in table.rows:
                parameters = {**table.constants, **row.parameters}
                digest = configuration_hash(self.workload, parameters)
                point = by_hash.setdefault(digest, Point(parameters, digest))
                again = point.values.keys() & row.values.keys()
                if again:
                    raise ValueError(f"{self.slug}: {table.name}: {parameters} has {min(again)} twice")
                point.values.update(row.values)
                point.conditions[table.name] = dict(row.conditions)
        return list(by_hash.values())


def published_studies() -> list[PublishedStudy]:
    """Return the published studies that come with Rankwire, by slug."""
    return [PublishedStudy.model_validate_json(file.read_bytes()) for file in sorted(PUBLISHED.glob("*.json"))]
