"""External results in a table of comma-separated values, one row a trial.

The headings are the fields of a trial in a description (``measured``): ``parameters.NAME``, ``figures.NAME [UNIT]``, ``output``,
``capture``, ``ended_at``. ``hosts``, ``ranks``, ``ranks_per_host`` and the name of a metric need no more than their name. Empty cells
are ignored.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from experiments import metrics
from experiments.common.storable import MAX_ITEMS
from experiments.errors import FieldError, InvalidSpec
from experiments.specification.parameters import MOST_ERRORS

_MOST_COLUMNS: Final = 1000
_PLAIN: Final = ("output", "capture", "ended_at")
COUNTS: Final = ("hosts", "ranks", "ranks_per_host")
_HEADING: Final = re.compile(r"(?P<name>[^\[\]]*[^\[\]\s])\s*(?:\[(?P<unit>[^\[\]]*)\])?")
DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")


@dataclass(frozen=True, slots=True)
class Table:
    """The rows as trials of a description, with their lines and headings."""

    trials: list[dict[str, Any]]
    lines: list[int]
    headings: Mapping[str, str]
    """The heading of each column, by the path of its field below a trial."""

    def placed(self, error: FieldError) -> FieldError:
        """Return the error of a trial with its line and column."""
        _, number, *rest = error.path.split(".", 2)
        heading = self.headings.get(rest[0]) if rest else None
        column = f"column {heading}" if heading is not None else ""
        return FieldError(column, error.message, self.lines[int(number)])


def read_table(text: str) -> Table:
    """Return the trials of a table. Raise InvalidSpec with lines and columns."""
    rows = _rows(text)
    if not rows:
        raise InvalidSpec([FieldError("", "the table is empty: its first line names the columns", 1)])
    line, headings = rows[0]
    if len(headings) > _MOST_COLUMNS:
        raise InvalidSpec([FieldError("", f"has {len(headings)} columns; the most is {_MOST_COLUMNS}", line)])
    if len(rows) > MAX_ITEMS + 1:
        raise InvalidSpec([FieldError("", f"the table has {len(rows) - 1} rows; the most is {MAX_ITEMS}")])
    paths = _paths(headings, line)
    errors: list[FieldError] = []
    trials = []
    for line, cells in rows[1:]:
        if len(errors) >= MOST_ERRORS:
            break
        if len(cells) != len(paths):
            errors.append(FieldError("", f"has {len(cells)} cells, and there are {len(paths)} columns", line))
            continue
        trials.append(_trial(paths, headings, cells, line, errors))
    for path in paths:
        if path[0] == "parameters":
            _read_column([trial["parameters"] for trial in trials if path[1] in trial.get("parameters", {})], path[1])
    if errors:
        raise InvalidSpec(errors)
    if not trials:
        raise InvalidSpec([FieldError("", "the table has headings alone, and no trial")])
    named = {".".join(path): heading for path, heading in zip(paths, headings, strict=True)}
    return Table(trials, [line for line, _ in rows[1:]], named)


def _rows(text: str) -> list[tuple[int, list[str]]]:
    """Return the rows that are not blank, each with its first line."""
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    rows, begins = [], 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                rows.append((begins, [cell.strip() for cell in cells]))
            begins = reader.line_num + 1
    except csv.Error as error:
        raise InvalidSpec([FieldError("", f"is no row of comma-separated values: {error}", begins)]) from None
    return rows


def _paths(headings: Sequence[str], line: int) -> list[tuple[str, ...]]:
    """Return the field of a trial for each column. Raise InvalidSpec."""
    errors: list[FieldError] = []
    paths: list[tuple[str, ...]] = []
    for number, heading in enumerate(headings, start=1):
        column = f"column {heading or number}"
        try:
            path = _path(heading)
            if path in paths:
                raise ValueError("is there twice")
            paths.append(path)
        except ValueError as error:
            errors.append(FieldError(column, str(error), line))
    if errors:
        raise InvalidSpec(errors)
    return paths


def _path(heading: str) -> tuple[str, ...]:
    """Return the field of a trial for a heading. Raise ValueError."""
    match = _HEADING.fullmatch(heading)
    if match is None:
        raise ValueError("is no heading: a name, and behind a figure its unit in brackets if you like")
    name, unit = match["name"], match["unit"]
    kind, dot, rest = name.partition(".")
    path: tuple[str, ...]
    if dot and rest and kind in ("parameters", "figures"):
        path = (kind, rest)
    elif name in _PLAIN:
        path = (name,)
    elif name in COUNTS:
        path = ("parameters", name)
    elif metrics.is_metric(name):
        path = ("figures", name)
    elif ";" in name or "\t" in name:
        raise ValueError("columns are separated by commas")
    else:
        raise ValueError(f"there is no metric {name!r}: a parameter is headed parameters.{name}")
    if unit is not None:
        _check_unit(path, unit.strip())
    return path


def _check_unit(path: tuple[str, ...], unit: str) -> None:
    """Raise ValueError for another unit than the metric's: no value is converted."""
    if path[0] != "figures":
        raise ValueError("only figures have their unit in the heading: write that of a parameter with its value")
    if not metrics.is_metric(path[1]):
        return  # refused for its name, in each row that has it
    metric_unit = metrics.find(path[1]).unit
    if not metric_unit:
        raise ValueError("the unit of this figure is not known here: leave it out of the heading")
    if unit != metric_unit:
        raise ValueError(f"is kept in the unit {metric_unit!r}, not {unit!r}")


def _trial(
    paths: Sequence[tuple[str, ...]], headings: Sequence[str], cells: Sequence[str], line: int, errors: list[FieldError]
) -> dict[str, Any]:
    trial: dict[str, Any] = {}
    for path, heading, cell in zip(paths, headings, cells, strict=True):
        if not cell:
            continue
        if path[0] == "parameters":
            trial.setdefault("parameters", {})[path[1]] = cell
        elif path[0] != "figures":
            trial[path[0]] = cell
        elif DECIMAL.fullmatch(cell):
            trial.setdefault("figures", {})[path[1]] = float(cell)
        else:
            errors.append(FieldError(f"column {heading}", f"{cell[:40]!r} is no number", line))
    return trial


def _read_column(rows: Sequence[dict[str, Any]], name: str) -> None:
    """Make numbers of a column if every cell is written as its number is.

    Otherwise ``4.10`` and ``007`` stay text. Counts may have leading zeros.
    """
    if name in COUNTS:
        cells = [row[name] for row in rows]
        numbers = [int(cell) if re.fullmatch("[0-9]{1,20}", cell) else cell for cell in cells]
    else:
        numbers = [printed_number(row[name]) for row in rows]
        if any(number is None for number in numbers) or len(set(numbers)) < len({row[name] for row in rows}):
            return
    for row, number in zip(rows, numbers, strict=True):
        row[name] = number


def printed_number(cell: str) -> int | float | None:
    """Return the number of 64 bits that is printed as ``cell``; None if there is none."""
    if len(cell) > 30 or not DECIMAL.fullmatch(cell):
        return None
    number = int(cell) if cell.lstrip("-").isdecimal() else float(cell)
    return number if str(number) == cell and abs(number) < 2**63 else None
