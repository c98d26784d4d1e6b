"""Figures of merit out of any program's output: by regular expression, JSON pointer or CSV column."""

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
from experiments.workloads.patterns import compiled, numbers_in

MAX_LINE: Final = 10_000
"""Longest line that a regular expression is tried on; results stand in short ones."""

Pick = Literal["first", "last", "min", "max", "mean", "median", "sum"]
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
_SEPARATED: Final = re.compile(r"[+-]?\d+(?:[,'_\u2019\u202f\xa0 ]\d+)+(?:\.\d*)?|[+-]?\d+(?:\.\d{3})+,\d+")


class Extractor(BaseModel):
    """One figure of merit of a command, and where it stands in the output."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,59}$", description="Name with its unit, such as loop_time_s.")
    label: str = Field("", max_length=80)
    unit: str = Field("1", max_length=20)
    direction: Literal["lower", "higher", "neutral"] = "neutral"
    definition: str = Field("", max_length=300)
    file: str | None = Field(
        None, description="File the program writes, or a pattern of its name; empty: standard output."
    )
    regex: str | None = Field(None, min_length=1, max_length=500, description="Its first group is the number.")
    json_pointer: str | None = Field(
        None, pattern=r"^(/.*)?$", max_length=300, description="RFC 6901: /results/0/rate."
    )
    csv_column: str | None = Field(None, min_length=1, max_length=100, description="Column of a table with a header.")
    delimiter: str = Field(",", min_length=1, max_length=1)
    pick: Pick = Field("last", description="Which of several numbers, or what of all of them.")
    factor: float = Field(1.0, description="The number is multiplied by it: 1e-6 makes seconds of microseconds.")
    thousands: str = Field(
        "",
        max_length=1,
        pattern=r"^[,.'_ \u202f\u00a0\u2019]?$",
        description="What sets thousands apart: with ',' 1,234.5 is 1234.5.",
    )
    at_least: float | None = Field(None, description="A run whose figure is smaller has failed.")
    at_most: float | None = Field(None, description="A run whose figure is larger has failed.")
    required: bool = Field(True, description="Whether a run without this figure has failed.")

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

    @field_validator("regex")
    @classmethod
    def _has_a_group(cls, pattern: str | None) -> str | None:
        if pattern is None:
            return None
        if compiled(pattern).groups < 1:
            raise ValueError(f"the regular expression {pattern!r} needs a group ( ) around the number")
        return pattern

    @field_validator("factor")
    @classmethod
    def _usable(cls, factor: float) -> float:
        if not math.isfinite(factor) or factor == 0:
            raise ValueError("the factor must be a number other than 0")
        return factor

    @model_validator(mode="after")
    def _one_source(self) -> Extractor:
        if sum(source is not None for source in (self.regex, self.json_pointer, self.csv_column)) != 1:
            raise ValueError(f"{self.name}: give one of regex, json_pointer and csv_column")
        return self

    def figure(self, slug: str) -> FigureOfMerit:
        """Return the description of the figure, named by the workload."""
        label = self.label or self.name.replace("_", " ").capitalize()
        definition = self.definition or f"{self.pick.capitalize()} of what {self._place()} says."
        return FigureOfMerit(f"{slug}.{self.name}", label, self.unit, self.direction, definition)

    def read(self, *texts: str) -> float | None:
        """Return the figure in one or several texts; None when none holds it. Raise OutputError when it is not a number."""
        try:
            printed = (value for text in texts for value in self._raw_values(text))
            values = [number_in(self._without_thousands(value)) for value in printed]
        except (ValueError, TypeError, csv.Error) as error:
            raise OutputError(f"{self.name}: {self._place()} gives no number: {error}") from None
        if not values:
            return None
        value = _PICKS[self.pick](values) * self.factor
        if not math.isfinite(value):
            raise OutputError(f"{self.name}: {self._place()} gives {value}, which is not a measurement")
        if self.at_least is not None and value < self.at_least:
            raise OutputError(f"{self.name} is {value:g}, and a good run has at least {self.at_least:g}")
        if self.at_most is not None and value > self.at_most:
            raise OutputError(f"{self.name} is {value:g}, and a good run has at most {self.at_most:g}")
        return value

    def _raw_values(self, text: str) -> list[Any]:
        if self.regex is not None:
            return list(numbers_in(self.regex, (line[:MAX_LINE] for line in text.splitlines())))
        if self.json_pointer is not None:
            value = _resolve(text, self.json_pointer)
            return value if isinstance(value, list) else [] if value is None else [value]
        rows = csv.DictReader(text.splitlines(), delimiter=self.delimiter, skipinitialspace=True)
        return [row[self.csv_column] for row in rows if row.get(self.csv_column) not in (None, "")]

    def _without_thousands(self, printed: Any) -> Any:
        """The number without what sets its groups of three digits apart; a word with other groups stays, and is refused."""
        if not self.thousands or not isinstance(printed, str):
            return printed
        apart = re.escape(self.thousands)
        whole = re.fullmatch(rf"([+-]?\d{{1,3}}(?:{apart}\d{{3}})+)((?:[.,]\d*)?)", printed.strip())
        if whole is None:
            return printed.replace(",", ".") if self.thousands == "." and printed.count(",") == 1 else printed
        return whole[1].replace(self.thousands, "") + whole[2].replace(",", ".")

    def _place(self) -> str:
        where = f"in {self.file}" if self.file else "in the output"
        if self.regex is not None:
            return f"/{self.regex}/ {where}"
        return f"{self.json_pointer!r} {where}" if self.json_pointer is not None else f"{self.csv_column!r} {where}"


def number_in(printed: Any) -> float:
    """Return the number that a program printed, in Fortran's notation too. Raise ValueError with what else it is."""
    if not isinstance(printed, str):
        return float(printed)
    word = printed.strip()
    if (fortran := _FORTRAN.fullmatch(word)) is not None:
        return float(f"{fortran[1]}e{fortran[2] or fortran[3]}")
    if _SEPARATED.fullmatch(word):
        raise ValueError(f"{word!r} has separators, or a comma for a point; say thousands: ',' or another sign")
    try:
        return float(word)
    except ValueError:
        raise ValueError(f"{word!r} is text; what a good run must say belongs under success") from None


def _resolve(text: str, pointer: str) -> Any:
    """Return what a JSON pointer (RFC 6901) names; None when the text holds nothing there."""
    if not text.strip():
        return None
    value = json.loads(text)
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value
