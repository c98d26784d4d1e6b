"""Figures of merit from any output: by regular expression, JSON pointer or CSV."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable, Sequence
from statistics import fmean, median
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from experiments.errors import OutputError
from experiments.workloads.base import FigureOfMerit
from experiments.workloads.kept_files import is_pattern, is_reserved
from experiments.workloads.patterns import compiled, matches

_PICKS: Final[dict[str, Callable[[Sequence[float]], float]]] = {
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    "min": min,
    "max": max,
    "mean": fmean,
    "median": median,
    "sum": sum,
}
_FORTRAN: Final = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:[dD]([+-]?\d+)|([+-]\d{3}))")
"""``0.68D+00``; and ``0.68-101``, since the letter gives way to an exponent of three digits."""


class Extractor(BaseModel):
    """One figure of merit of a command, and its place in the output."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    name: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,59}$")
    """Name with its unit, such as loop_time_s."""
    label: str = Field("", max_length=80)
    unit: str = Field("1", max_length=20)
    direction: Literal["lower", "higher", "neutral"] = "neutral"
    definition: str = Field("", max_length=300)
    file: str | None = None
    """File the program writes, or a pattern of its name; empty: standard output."""
    regex: str | None = Field(None, min_length=1, max_length=500)
    """Its first group is the number."""
    json_pointer: str | None = Field(None, pattern=r"^(/.*)?$", max_length=300)
    """RFC 6901: /results/0/rate."""
    csv_column: str | None = Field(None, min_length=1, max_length=100)
    """Column of a table with a header."""
    delimiter: str = Field(",", min_length=1, max_length=1)
    pick: Literal["first", "last", "min", "max", "mean", "median", "sum"] = "last"
    """One of several numbers, or a statistic of them."""
    factor: float = 1.0
    """The number is multiplied by it: 1e-6 makes seconds of microseconds."""
    thousands: str = Field("", max_length=1, pattern=r"^[,.'_ \u202f\u00a0\u2019]?$")
    """Separator of thousands: with ',' 1,234.5 is 1234.5."""
    at_least: float | None = None
    """A run whose figure is smaller has failed."""
    at_most: float | None = None
    """A run whose figure is larger has failed."""
    required: bool = True
    """A run without this figure has failed."""

    @field_validator("file")
    @classmethod
    def _not_ours(cls, name: str | None) -> str | None:
        if name is not None and not is_pattern(name):
            raise ValueError(
                f"{name!r} is no name of a file in the working directory, such as result.json or run*/rates.csv"
            )
        if name is not None and is_reserved(name):
            raise ValueError(f"{name!r} is the name of a file that every trial keeps")
        return name

    @model_validator(mode="after")
    def _coherent(self) -> Extractor:
        if sum(source is not None for source in (self.regex, self.json_pointer, self.csv_column)) != 1:
            raise ValueError(f"{self.name}: give one of regex, json_pointer and csv_column")
        if self.regex is not None and compiled(self.regex).groups < 1:
            raise ValueError(f"the regular expression {self.regex!r} needs a group ( ) around the number")
        if not math.isfinite(self.factor) or self.factor == 0:
            raise ValueError("the factor must be a number other than 0")
        return self

    def figure(self, slug: str) -> FigureOfMerit:
        """Return the description of the figure, named by the workload."""
        label = self.label or self.name.replace("_", " ").capitalize()
        definition = self.definition or f"{self.pick.capitalize()} of the numbers of {self._source_words()}."
        return FigureOfMerit(f"{slug}.{self.name}", label, self.unit, self.direction, definition)

    def read(self, *texts: str) -> float | None:
        """Return the figure of texts; None if none holds it. Raise OutputError."""
        try:
            values = [self._number(printed) for text in texts for printed in self._printed(text)]
        except (ValueError, TypeError, csv.Error) as error:
            raise OutputError(f"{self.name}: {self._source_words()} gives no number: {error}") from None
        if not values:
            return None
        value = _PICKS[self.pick](values) * self.factor
        if not math.isfinite(value):
            raise OutputError(f"{self.name}: {self._source_words()} gives {value}, which is not a measurement")
        if self.at_least is not None and value < self.at_least:
            raise OutputError(f"{self.name} is {value:g}, and a good run has at least {self.at_least:g}")
        if self.at_most is not None and value > self.at_most:
            raise OutputError(f"{self.name} is {value:g}, and a good run has at most {self.at_most:g}")
        return value

    def _printed(self, text: str) -> list[Any]:
        if self.regex is not None:
            return [match[1] for match in matches(self.regex, text) if match[1] is not None]
        if self.json_pointer is not None:
            value = _resolve(text, self.json_pointer)
            return value if isinstance(value, list) else [] if value is None else [value]
        rows = csv.DictReader(text.splitlines(), delimiter=self.delimiter, skipinitialspace=True)
        return [row[self.csv_column] for row in rows if row.get(self.csv_column) not in (None, "")]

    def _number(self, printed: Any) -> float:
        if not isinstance(printed, str):
            return float(printed)
        word = printed.strip()
        grouped = re.fullmatch(rf"([+-]?\d{{1,3}}(?:{re.escape(self.thousands)}\d{{3}})+)((?:[.,]\d*)?)", word)
        if self.thousands and grouped is not None:
            word = grouped[1].replace(self.thousands, "") + grouped[2].replace(",", ".")
        elif self.thousands == ".":
            word = word.replace(",", ".")
        elif (fortran := _FORTRAN.fullmatch(word)) is not None:
            word = f"{fortran[1]}e{fortran[2] or fortran[3]}"
        try:
            return float(word)
        except ValueError:
            hint = "set thousands if it has separators, or search a text with success"
            raise ValueError(f"{word!r} is no number; {hint}") from None

    def _source_words(self) -> str:
        file = f"in {self.file}" if self.file else "in the output"
        source = self.csv_column if self.json_pointer is None else self.json_pointer
        return f"/{self.regex}/ {file}" if self.regex else f"{source!r} {file}"


def _resolve(text: str, pointer: str) -> Any:
    """Return the value of a JSON pointer (RFC 6901); None if there is none."""
    value = json.loads(text) if text.strip() else None
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value
