"""Figures of merit from any output: by regular expression, JSON pointer or CSV."""

from __future__ import annotations

import csv
import itertools
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from statistics import fmean, median
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from analysis.numbers import read_number
from experiments.common import budget
from experiments.common.quantities import DURATION
from experiments.common.strict_json import MOST_VALUES, require_few_values
from experiments.errors import OutputError
from experiments.workloads.base import FigureOfMerit
from experiments.workloads.kept_files import is_pattern, is_reserved
from experiments.workloads.outputs import Figure, Line, Text
from experiments.workloads.patterns import compiled, search
from experiments.workloads.template import NoBool

_PICKS: Final[dict[str, Callable[[Sequence[float]], float]]] = {
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    "min": min,
    "max": max,
    "mean": fmean,
    "median": median,
    "sum": sum,
}

_TOKEN: Final = re.compile(
    r"(?:(?<![\w.)\]])[-−])?"
    r"(?:0[xX][0-9a-fA-F]+|(?:\d{1,3}(?:[ '’_\u00a0\u2009\u202f]\d{3}(?!\d))+|\d+|(?=\.\d))(?:[.,]\d+)*)"
    r"(?:\.?[eEdD][+-]?\d+|(?<=\d)[+-]\d{3}(?!\d))?(?::\d\d(?!\d))*(?:\s?[x×*]\s?10[\^*⁺⁻⁰¹²³⁴-⁹]\S*|[kMGT](?![\w/]))?"
)
"""A number as programs print it: ``-1 234.5``, ``1.5E+03``, ``1.5-101``, ``1:30``, ``0x1f``, ``1.5 x 10^3``, ``1.5M``."""
MOST_NUMBERS: Final = 1_000_000
"""Numbers of one figure; each takes 0.3 kB."""
_LONGEST_ROW: Final = 1_000_000
"""Characters of a row of a table; each cell takes memory, also an empty one."""
_LONGEST_NUMBER: Final = 40
_UNIT: Final = re.compile(r"\s*([A-Za-zµ]+)(?![\w/])")
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_DECODER: Final = json.JSONDecoder()


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
    factor: Annotated[float, NoBool] = 1.0
    """The number is multiplied by it: 1e-6 makes seconds of microseconds."""
    thousands: str = Field("", max_length=1, pattern=r"^[,.'_ \u202f\u00a0\u2019]?$")
    """Separator of thousands: with ',' 1,234.5 is 1234.5."""
    at_least: Annotated[float | None, NoBool] = None
    """A run whose figure is smaller has failed."""
    at_most: Annotated[float | None, NoBool] = None
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
            raise ValueError(f"'{self.regex}' is a regular expression that needs a group ( ) around the number")
        if not math.isfinite(self.factor) or self.factor == 0:
            raise ValueError("the factor must be a number other than 0")
        return self

    def figure(self, slug: str) -> FigureOfMerit:
        """Return the description of the figure, named by the workload."""
        label = self.label or _without_unit(self.name, self.unit).replace("_", " ").capitalize()
        definition = self.definition or f"{self.pick.capitalize()} of the numbers of {self._source_words()}."
        return FigureOfMerit(f"{slug}.{self.name}", label, self.unit, self.direction, definition)

    def read(self, *texts: str) -> Figure | None:
        """Return the figure of texts; None if none holds it. Raise OutputError."""
        try:
            read = (self._values(text if isinstance(text, Text) else Text(text)) for text in texts)
            values = list(itertools.islice(itertools.chain.from_iterable(read), MOST_NUMBERS + 1))
        except (ValueError, csv.Error, RecursionError) as error:  # JSON of a thousand levels
            raise OutputError(f"{self.name}: {self._source_words()} gives no number: {error}") from None
        if not values:
            return None
        if len(values) > MOST_NUMBERS:
            raise OutputError(f"{self.name}: {self._source_words()} gives more than {MOST_NUMBERS} numbers")
        odd = [value for value in values if math.isnan(value)]
        picked = odd[0] if odd and self.pick not in ("first", "last") else _PICKS[self.pick](values)
        lines = picked.lines if isinstance(picked, Figure) else (line for value in values for line in value.lines)
        return self._require(Figure.at(picked * self.factor, *lines))

    def _require(self, value: Figure) -> Figure:
        """Return the value of a good run. Raise OutputError."""
        at = f", in {value.lines[0]}" if len(value.lines) == 1 else ""
        if not math.isfinite(value):
            raise OutputError(f"{self.name}: {self._source_words()} gives {value}, which is not a measurement{at}")
        if self.at_least is not None and value < self.at_least:
            raise OutputError(f"{self.name} is {value:g}, and a good run has at least {self.at_least:g}{at}")
        if self.at_most is not None and value > self.at_most:
            raise OutputError(f"{self.name} is {value:g}, and a good run has at most {self.at_most:g}{at}")
        return value

    def _values(self, text: Text) -> Iterator[Figure]:
        """Yield a text's numbers, without the launcher's tags if there are none else."""
        printed = self._printed(text)
        if (first := next(printed, None)) is not None:
            yield first
            yield from printed
        elif text.untagged is not None:
            yield from self._printed(text.untagged)

    def _printed(self, text: Text) -> Iterator[Figure]:
        if self.regex is not None:
            last, end = None, 0  # of the match before in the same line
            for line, match in search(self.regex, text):
                if match[1] is not None:
                    yield self._number(match[1], line, self._cut(match, end if line is last else 0))
                last, end = line, match.end()
        elif self.json_pointer is not None:
            for value, offset in _resolve(text, self.json_pointer):
                yield self._number(value, text.line_at(offset))
        else:
            yield from itertools.starmap(self._number, self._cells(text))

    def _cells(self, text: Text) -> Iterator[tuple[str, Line]]:
        row_characters = 0

        def printed() -> Iterator[str]:
            nonlocal row_characters
            for line in text.lines:
                row_characters += len(line.text)
                if row_characters > _LONGEST_ROW:
                    raise ValueError(f"a row has more than {_LONGEST_ROW} characters, in {line}")
                yield line.text

        rows = csv.reader(printed(), delimiter=self.delimiter, skipinitialspace=True)
        header: list[str] = []
        for row in rows:
            budget.check()
            row_characters = 0
            line, cells = text.lines[rows.line_num - 1], [cell.strip() for cell in row]
            if not any(cells):
                continue
            if not header:
                header = cells
                if header.count(self.csv_column or "") > 1:
                    raise ValueError(f"there are two columns {self.csv_column!r}, in {line}")
                if self.csv_column not in header:
                    return
                continue
            if any(cells[len(header) :]):
                raise ValueError(f"the row has {len(cells)} cells, and the table {len(header)} columns, in {line}")
            cell = dict(zip(header, cells, strict=False)).get(self.csv_column or "")
            if cell:
                yield cell, line

    def _number(self, printed: Any, line: Line, cut: str = "") -> Figure:
        """Return a printed number. Raise ValueError."""
        if cut:
            raise ValueError(f"{cut}, in {line}")
        if isinstance(printed, bool) or not isinstance(printed, str | int | float):
            raise ValueError(f"{json.dumps(printed)[:40]} is no number, in {line}")
        try:
            return Figure.at(read_number(str(printed), self.thousands if isinstance(printed, str) else ""), line)
        except ValueError as error:
            hint = "" if self.thousands else "; set thousands if it has separators, or search a text with success"
            raise ValueError(f"{error}{hint}, in {line}") from None

    def _cut(self, match: Any, searched: int) -> str:
        """Return why the first group is not the number printed there, or ""."""
        begin, end = match.span(1)
        window = max(searched, begin - _LONGEST_NUMBER)
        for token in _TOKEN.finditer(match.string, window, end + _LONGEST_NUMBER):
            is_cut = (token.start() < begin == match.start() < token.end()) or (
                token.start() < end == match.end() < token.end()
            )
            if is_cut:
                return f"{match[1]!r} is a part of {token[0]!r}: let the expression match all of it, or what follows"
        after = _UNIT.match(match.string, end)
        printed, unit_factor = DURATION.factor(after[1]) if after else None, DURATION.factor(self.unit)
        if (
            after
            and match.end() <= after.start(1)
            and printed
            and unit_factor
            and not math.isclose(float(printed / unit_factor), self.factor)
        ):
            return f"{match[0]!r} is in {after[1]}, and the figure in {self.unit}: set factor to {float(printed / unit_factor):g}"
        return ""

    def _source_words(self) -> str:
        file = f"in {self.file}" if self.file else "in the output"
        source = self.csv_column if self.json_pointer is None else self.json_pointer
        return f"/{self.regex}/ {file}" if self.regex else f"{source!r} {file}"


def _without_unit(name: str, unit: str) -> str:
    """Return a name without its unit, which pages show beside it: time_s is time."""
    return name if unit == "1" else name.removesuffix(f"_{unit}")


def _resolve(text: Text, pointer: str) -> Iterator[tuple[Any, int]]:
    """Yield the values of a JSON pointer (RFC 6901), or its array, with offsets."""
    content = text.plain
    if not content.strip():
        return
    require_few_values(content, MOST_VALUES)
    try:
        json.loads(content)
    except ValueError:
        if text.untagged is not None:
            return
        raise
    begin = _space(content, 0)
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        offsets = [at for name, at in _members(content, begin) if name == key]
        if not offsets:
            return
        begin = offsets[-1]
    begins = (at for _, at in _members(content, begin)) if content[begin] == "[" else iter([begin])
    for at in begins:
        value = _DECODER.raw_decode(content, at)[0]
        if value is not None:
            yield value, at


def _members(content: str, begin: int) -> Iterator[tuple[str, int]]:
    """Yield the names or numbers of the members of valid JSON, with their offsets."""
    if content[begin] not in "[{":
        return
    at = _space(content, begin + 1)
    for number in itertools.count():
        budget.check()
        if content[at] in "]}":
            return
        name = str(number)
        if content[begin] == "{":
            name, at = _DECODER.raw_decode(content, at)
            at = _space(content, _space(content, at) + 1)
        yield name, at
        at = _space(content, _DECODER.raw_decode(content, at)[1])
        if content[at] == ",":
            at = _space(content, at + 1)


def _space(content: str, at: int) -> int:
    """Return the offset after white space."""
    return _SPACE.match(content, at).end()  # type: ignore[union-attr]
