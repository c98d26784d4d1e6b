"""Outputs of programs as lines, numbers and tables. Pure.

What a terminal or a launcher adds is removed once. Every number is read as a whole and remembers its line, which the trial's page marks
and errors name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any, Final

from analysis.numbers import read_number
from experiments.common import budget
from experiments.errors import OutputError

_ESCAPE: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -/]*[0-~])")
_TAG: Final = re.compile(r"^(?:\[[^\[\]\s,]*\d,\d+\](?:\[\S*?\])?)<std\w+>:? ?", re.MULTILINE)
"""Of Open MPI and PRRTE: ``[1,0]<stdout>:``. A line costs linear time: no two parts match the same digits."""
_NUMBER_TAG: Final = re.compile(r"^\s*(?:\[\d+\]|\d+:) ?")
"""Of Hydra (``[0] ``) and Slurm (``0: ``). Programs print such words too."""
_WRONG: Final = {
    r"^(?:HPL )?ERROR\b": "the program reports an error",
    r"MPI_ABORT was invoked": "a rank called MPI_Abort",
    r"BAD TERMINATION OF ONE|exited on signal \d|\*\*\* Process received signal \*\*\*": "a signal ended a rank",
}
"""Lines of built-in programs and their launchers that say that the run failed."""
_ANY_WRONG: Final = re.compile("|".join(_WRONG))
_ROW: Final = re.compile(r"\d+(?:\.\d*)?(?:\s|$)")
_WORDS: Final = re.compile(r"\d+(?:\s+\d+)?\s+(?!-?(?:nan|inf))[A-Za-z(\[]", re.IGNORECASE)
"""A size without numbers: a benchmark says why it left it out, or another program's words follow."""
_HPL_ROW: Final = re.compile(r"W[RC]\w+\s")
_LONGEST_OVERWRITTEN: Final = 1_000_000
"""Characters of a line whose backspaces are followed: each takes up to 80 bytes meanwhile."""
_SHOWN: Final = 120
_MOST_DIGITS: Final = 18
MOST_LINES: Final = 1_000_000
"""Of all texts of a run together: each takes 0.15 kB, also an empty one, which is written with one character."""
_LINE_ENDS: Final = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
"""Characters that end a line, by ``str.splitlines``."""
_LONGEST: Final = 1000
"""Characters of a built-in program's line: patterns would search long ones for hours, and only hostile hosts send them."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line as a terminal shows it; ``number`` counts the stored lines from 1."""

    number: int
    text: str
    file: str = ""
    """Empty for standard output."""

    def __str__(self) -> str:
        text = self.text.strip()
        excerpt = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
        return f"line {self.number} of {self.file}: {excerpt!r}" if self.file else f"line {self.number}: {excerpt!r}"

    def refused(self, why: str) -> OutputError:
        """Return the error that names this line and shows its text."""
        return OutputError(f"{why}, in {self}")

    @property
    def is_row(self) -> bool:
        """Return whether it begins with a number, so that other numbers follow."""
        return _ROW.match(self.text) is not None and _WORDS.match(self.text) is None

    def cells(self, columns: Sequence[str], words: Sequence[str] | None = None) -> dict[str, str]:
        """Return the words of a row by column. Raise OutputError if it has more or fewer."""
        words = self.text.split() if words is None else words
        if len(words) != len(columns):
            raise self.refused(f"the row has {len(words)} cells, and the table {len(columns)} columns")
        return dict(zip(columns, words, strict=True))

    def figure(self, word: str, factor: str = "1") -> Figure:
        """Return a word times ``factor``, without rounding in between. Raise OutputError."""
        try:
            number = read_number(word)
        except ValueError as error:
            raise self.refused(str(error)) from None
        if not math.isfinite(number):
            raise self.refused(f"{word[:_SHOWN]} is not a measurement")
        return Figure.at(float(Decimal(repr(number)) * Decimal(factor)), self)

    def whole(self, word: str) -> Figure:
        """Return a word as a whole number. Raise OutputError."""
        if not _is_whole(word):
            raise self.refused(f"{word[:_SHOWN]!r} is no whole number")
        return Figure.at(int(word), self)


class Figure(float):
    """A number with the lines that it was read from."""

    lines: tuple[Line, ...] = ()

    @classmethod
    def at(cls, value: float, *lines: Line) -> Figure:
        """Return ``value`` as a figure of ``lines``."""
        figure = cls(value)
        figure.lines = lines
        return figure

    def to(self, value: float) -> Figure:
        """Return a value that was computed from this one."""
        return Figure.at(value, *self.lines)


class Word(str):
    """A word with the lines that it was read from."""

    lines: tuple[Line, ...] = ()

    @classmethod
    def at(cls, text: str, *lines: Line) -> Word:
        word = cls(text)
        word.lines = lines
        return word


class Text(str):
    """A text that a program printed or wrote."""

    file = ""
    _line_before = (0, 1, 0)
    """Offset, number and begin of the line that was searched for before."""
    deadline: float | None = None
    """Monotonic time after which searches in it fail; None: each has the time of `patterns.TIME_LIMIT_S`."""

    @classmethod
    def of(cls, text: str, file: str = "", deadline: float | None = None) -> Text:
        """Return a text with the name of its file; empty for standard output."""
        made = cls(text)
        made.file, made.deadline = file, deadline
        return made

    @cached_property
    def plain(self) -> str:
        """The text without byte-order mark, escape sequences and launchers' tags."""
        text = self.removeprefix("\ufeff")
        text = _ESCAPE.sub("", text) if "\x1b" in text else text
        text = "\n".join(map(_overwritten, text.split("\n"))) if "\b" in text else text
        return _TAG.sub("", text) if "<std" in text else text

    @cached_property
    def lines(self) -> list[Line]:
        """The lines; the steps of a progress bar are lines of one number.

        Raise OutputError for more than ``MOST_LINES``.
        """
        require_few_lines(self.plain)
        numbered = enumerate(self.plain.split("\n"), 1)
        return [Line(number, part, self.file) for number, line in numbered for part in line.splitlines() or [""]]

    @cached_property
    def untagged(self) -> Text | None:
        """The text without words such as ``0:``, perhaps a launcher's; None if unchanged."""
        if not any(_NUMBER_TAG.match(line.text) for line in self.lines):
            return None
        lines = (_NUMBER_TAG.sub("", line) for line in self.plain.split("\n"))
        return Text.of("\n".join(lines), self.file, self.deadline)

    def line_at(self, offset: int) -> Line:
        """Return the line of a character of the plain text; fast for rising offsets."""
        before, number, begins = self._line_before
        if offset < before:
            before, number, begins = 0, 1, 0
        last = self.plain.rfind("\n", before, offset)
        if last >= 0:
            number, begins = number + self.plain.count("\n", before, last + 1), last + 1
        self._line_before = offset, number, begins
        return Line(number, self.plain[begins : begins + _SHOWN + 1].partition("\n")[0], self.file)


def require_few_lines(*texts: str) -> None:
    """Raise OutputError if texts have more lines than fit into memory."""
    if sum(sum(map(text.count, _LINE_ENDS)) - text.count("\r\n") for text in texts) > MOST_LINES:
        raise OutputError(f"the output has more than {MOST_LINES} lines")


def _overwritten(line: str) -> str:
    """Return a line after its backspaces."""
    budget.check()
    if "\b" not in line or len(line) > _LONGEST_OVERWRITTEN:
        return line
    characters: list[str] = []
    position = 0
    for character in line:
        if character == "\b":
            position = max(position - 1, 0)
        else:
            characters[position : position + 1] = [character]
            position += 1
    return "".join(characters)


def results(text: str, file: str = "") -> list[Line]:
    """Return the lines of a built-in program, without indentation.

    Raise OutputError if one of them says that the run failed.
    """
    printed = Text.of(text, file).lines
    lines = [Line(line.number, _NUMBER_TAG.sub("", line.text[:_LONGEST]).strip(), file) for line in printed]
    for line in lines:
        if _ANY_WRONG.search(line.text):
            raise line.refused(next(why for pattern, why in _WRONG.items() if re.search(pattern, line.text)))
    if not text.endswith(("\n", "\r")) and _is_cut(lines[-2:]):
        raise lines[-1].refused("the output ends within a row; if it is whole, end its line")
    return lines


def _is_cut(last_lines: Sequence[Line]) -> bool:
    """Return whether the last row has fewer decimals than one above it."""
    *above, last = last_lines
    if not (last.is_row or _HPL_ROW.match(last.text)):
        return False
    digits = [[len(word.partition(".")[2]) for word in line.text.split()] for line in (*above, last)]
    return not above or not above[0].is_row or len(digits[0]) != len(digits[-1]) or digits[0][-1] > digits[-1][-1]


@dataclass(slots=True)
class Table:
    """A table of an output: heading, line of column names, rows of numbers."""

    heading: Line
    title: str
    notes: list[Line] = field(default_factory=list)
    """Lines between the heading and the columns."""
    columns: Sequence[str] = ()
    rows: list[Line] = field(default_factory=list)

    def add(self, row: Line, good: Mapping[str, re.Pattern[str]]) -> None:
        """Add a row. Raise OutputError if it is cut, or says that it is wrong."""
        for name, cell in row.cells(self.columns).items():
            if name not in good:
                row.figure(cell)
            elif not good[name].fullmatch(cell):
                raise row.refused(f"{name} is {cell}")
        self.rows.append(row)

    def column(self, *names: str, factor: str = "1") -> list[Figure]:
        """Return the first of the columns that the table has; [] if it has none."""
        number = next((self.columns.index(name) for name in names if name in self.columns), None)
        return [] if number is None else [row.figure(row.text.split()[number], factor) for row in self.rows]

    def at_largest(self, *names: str, factor: str = "1") -> Figure | None:
        """Return the value of the largest message in the first of the columns."""
        values = self.column(*names, factor=factor)
        return values[self.sizes.index(max(self.sizes)) if self.sizes else -1] if values else None

    @property
    def sizes(self) -> list[Figure]:
        """The message sizes in bytes; [] for an operation without messages."""
        return self.column("bytes")

    def ran_with(self, benchmark: str) -> dict[str, float | str]:
        """Return the settings that the table shows."""
        sizes = {"message_bytes": max(self.sizes)} if self.sizes else {}
        return {"benchmark": Word.at(benchmark, self.heading), **sizes}

    def as_rows(self) -> list[dict[str, Any]]:
        """Return the table as the page shows it, numbers as printed."""
        return [dict(zip(self.columns, map(as_printed, row.text.split()), strict=True)) for row in self.rows]


def _is_whole(word: str) -> bool:
    return word.isdecimal() and len(word) <= _MOST_DIGITS


def as_printed(cell: str) -> int | float | str:
    """Return a cell as pages show it."""
    if _is_whole(cell):
        return int(cell)
    try:
        return read_number(cell)
    except ValueError:
        return cell


def read_tables(
    lines: Iterable[Line],
    heading: re.Pattern[str],
    columns: re.Pattern[str],
    names: Callable[[str, str], Sequence[str]],
    good: Mapping[str, re.Pattern[str]],
) -> list[Table]:
    """Return the tables with rows.

    Parameters
    ----------
    heading, columns
        Patterns of whole lines; their first group is the title, and the line of column names.
    names
        (title, line of column names): the names of the columns.
    good
        By column: what each of its cells says in a good run. All other cells are numbers.

    Raises
    ------
    OutputError
        A row is cut or holds no numbers, or says that it is wrong.
    """
    tables: list[Table] = []
    for line in lines:
        budget.check()
        if match := heading.fullmatch(line.text):
            tables.append(Table(line, match[1]))
        elif tables and not tables[-1].columns:
            if match := columns.fullmatch(line.text):
                tables[-1].columns = names(tables[-1].title, match[1])
            else:
                tables[-1].notes.append(line)
        elif tables and line.is_row:
            tables[-1].add(line, good)
    return [table for table in tables if table.rows]
