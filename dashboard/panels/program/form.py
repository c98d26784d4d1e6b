"""The form of a program: fields, and rows of parameters, figures, files and parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dashboard.panels.new.form import Choices, Field, Texts
from dashboard.panels.program.definition import rows_of
from experiments.errors import InvalidSpec

_PREFIX: Final = "__n__"
"""Number of the row that the template of new rows has."""


@dataclass(frozen=True, slots=True)
class ProgramField(Field):
    """An input of the form; ``usual`` is its default, in words if it has no text."""

    usual: str = ""
    shape: str = "text"
    """text, choice, lines, code (of several lines as well)."""
    wide: bool = False
    folded: bool = False

    @property
    def is_long(self) -> bool:
        return self.shape in ("lines", "code")

    @property
    def rows(self) -> int:
        return min(max(2, self.value.count("\n") + 2), 20)


@dataclass(frozen=True, slots=True)
class Row:
    """One row; the rarely used fields are folded."""

    fields: Sequence[ProgramField]
    reading_place: str
    """Id of the value of a figure in the pasted output."""

    @property
    def main(self) -> list[ProgramField]:
        return [field for field in self.fields if not field.folded]

    @property
    def folded(self) -> list[ProgramField]:
        return [field for field in self.fields if field.folded]

    @property
    def opened(self) -> bool:
        """Return whether a folded field has an error or another value than its default."""
        return any(field.errors or field.value not in ("", field.usual, _first(field.choices)) for field in self.folded)


@dataclass(frozen=True, slots=True)
class RowSet:
    """Rows of one kind, with a blank one that new rows are made of."""

    path: str
    noun: str
    rows: Sequence[Row]
    spare: Row
    """For browsers without JavaScript."""
    blank: Row
    errors: Texts
    upload: str = ""

    @property
    def error_place(self) -> str:
        return f"err-{self.path}"


_DIRECTIONS: Final[Choices] = (("neutral", "neither"), ("lower", "lower"), ("higher", "higher"))
_TYPES: Final[Choices] = (("integer", "whole number"), ("number", "number"), ("text", "text"))
_PICKS: Final[Choices] = tuple((word, word) for word in ("last", "first", "min", "max", "mean", "median", "sum"))


def _folded(path: str, label: str, **more: object) -> ProgramField:
    return ProgramField(path, label, "", folded=True, **more)  # type: ignore[arg-type]


_COLUMNS: Final[Mapping[str, Sequence[ProgramField]]] = {
    "placeholders": (
        ProgramField("name", "Name", "", hint="{name} in the command"),
        ProgramField("title", "Title", "", usual="the name"),
        ProgramField("type", "Type", "", choices=_TYPES, shape="choice"),
        ProgramField("unit", "Unit", "", usual="none"),
        ProgramField("default", "Default", "", usual="required"),
        ProgramField("allowed", "Allowed", "", hint="1..100 or 1, 2, 4", usual="any"),
        _folded("description", "Description", usual="none", wide=True),
        _folded("pattern", "Pattern of a text", usual="letters, digits and _.,+=@%-"),
    ),
    "extract": (
        ProgramField("name", "Name", "", hint="With its unit: time_s"),
        ProgramField("label", "Title", "", usual="the name"),
        ProgramField("unit", "Unit", "", usual="1"),
        ProgramField("direction", "Better", "", choices=_DIRECTIONS, shape="choice"),
        ProgramField("regex", "Pattern", "", hint="The number in parentheses: time = (\\S+)", wide=True),
        _folded("pick", "If several match", choices=_PICKS, shape="choice"),
        _folded("factor", "Factor", usual="1"),
        _folded("at_least", "At least", usual="no limit", hint="A smaller value fails the run."),
        _folded("at_most", "At most", usual="no limit", hint="More: the run failed."),
        _folded("required", "Required", choices=(("yes", "yes"), ("no", "no")), shape="choice"),
        _folded("thousands", "Thousands separator", usual="none"),
        _folded("file", "File", usual="standard output"),
        _folded("json_pointer", "JSON pointer", usual="none", hint="Instead of a pattern: /results/0/rate"),
        _folded("csv_column", "CSV column", usual="none", hint="Instead of a pattern."),
        _folded("delimiter", "Delimiter", usual=","),
        _folded("definition", "Definition", usual="from the pattern", wide=True),
    ),
    "inputs": (
        ProgramField("name", "File name", ""),
        ProgramField("text", "Text", "", shape="code", wide=True, hint="{name} of a parameter is filled in."),
    ),
    "parts": (
        ProgramField("from_rank", "From rank", ""),
        ProgramField("program", "Command", "", wide=True),
    ),
}
_NOUNS: Final = {"placeholders": "parameter", "extract": "figure", "inputs": "input file", "parts": "program"}
_PLAIN: Final = {
    field.path: field
    for field in (
        ProgramField("name", "Name", "", hint="Lower-case letters, digits, dashes. It stays; the title can change."),
        ProgramField("title", "Title", "", usual="the name"),
        ProgramField(
            "program",
            "Command of each rank",
            "",
            hint="Such as /opt/heat/heat --steps={steps}: no shell, {steps} is a parameter, {ranks} the number of ranks. "
            "Of /tmp, and of directories closed to other users, trials see this file alone.",
            wide=True,
        ),
        ProgramField("summary", "Summary", "", usual="none", wide=True),
        ProgramField(
            "deciding", "Deciding figure", "", usual="the first with a direction", hint="Ranks the configurations from best to worst."
        ),
        ProgramField("threads", "Threads", "", usual="1", hint="Of each rank, as OMP_NUM_THREADS; can be swept."),
        ProgramField("environment", "Environment", "", usual="none", shape="lines", hint="One NAME=value a line."),
        ProgramField("decks", "Files of the cluster", "", usual="none", shape="lines", hint="One NAME=/full/path a line."),
        ProgramField("modules", "Modules", "", usual="none", hint="Loaded by every rank: openmpi/4.1 solver"),
        ProgramField("container", "Container", "", usual="none", hint="Image for Apptainer."),
        ProgramField("clusters", "Settings per cluster", "", usual="none", shape="lines", hint="YAML: lab: {binary: /opt/bin/solver}",
        wide=True),
        ProgramField("success", "Success", "", usual="not checked", hint="Pattern of a line that a good run prints.", wide=True),
        ProgramField("failure", "Failure", "", usual="not checked", hint="Pattern of a line that a bad run prints.", wide=True),
        ProgramField("keep", "Kept files", "", usual="none", hint="*.log run*/rates.csv"),
    )
}  # fmt: skip
_ADVANCED: Final = (
    ("Description", ("summary", "deciding")),
    ("Run", ("threads", "modules", "container", "environment", "decks")),
    ("Clusters", ("clusters",)),
    ("Output", ("keep",)),
)


class ProgramForm:
    """Texts of a definition with their errors, as the template shows them."""

    def __init__(self, texts: Mapping[str, str], error: InvalidSpec | None = None) -> None:
        self.texts = texts
        self.errors = error.by_path() if error else {}

    @property
    def identity(self) -> list[ProgramField]:
        return [self._plain(name) for name in ("name", "title", "program")]

    @property
    def parameters(self) -> RowSet:
        return self._rows("placeholders", least=1)

    @property
    def figures(self) -> RowSet:
        return self._rows("extract", least=1)

    @property
    def checks(self) -> list[ProgramField]:
        return [self._plain(name) for name in ("success", "failure")]

    @property
    def files(self) -> RowSet:
        return replace(self._rows("inputs"), upload="uploads")

    @property
    def parts(self) -> RowSet:
        return self._rows("parts")

    @property
    def advanced(self) -> list[tuple[str, list[ProgramField]]]:
        return [(title, [self._plain(name) for name in names]) for title, names in _ADVANCED]

    @property
    def set_advanced(self) -> list[str]:
        """Return the labels of the advanced settings that differ from their default."""
        fields = [field for _, fields in self.advanced for field in fields if field.value]
        rows = [(rows.rows, rows.noun) for rows in (self.files, self.parts)]
        return [field.label for field in fields] + [f"{noun}s".capitalize() for rows, noun in rows if rows]

    @property
    def has_advanced_errors(self) -> bool:
        names = [*(name for _, names in _ADVANCED for name in names), "inputs", "parts"]
        return any(path.split(".")[0] in names for path in self.errors)

    @property
    def error_count(self) -> int:
        """Return the number of fields with errors."""
        return len(self.errors)

    @property
    def error_links(self) -> list[tuple[str, str]]:
        """Return (label, id of its message) of every field with errors."""
        return [(self._label(path), f"err-{path.replace('.', '-')}") for path in self.errors if path]

    def _label(self, path: str) -> str:
        """Return the label of a field, of a row with its number: "Parameter 3, Name"."""
        rows, _, rest = path.partition(".")
        number, _, column = rest.partition(".")
        if rows not in _NOUNS:
            return _PLAIN[rows].label if rows in _PLAIN else path
        label = next((cell.label for cell in _COLUMNS[rows] if cell.path == column), "")
        numbers = list(rows_of(self.texts, rows))
        position = numbers.index(int(number)) + 1 if number.isdecimal() and int(number) in numbers else number
        return ", ".join(filter(None, [f"{_NOUNS[rows]} {position}".strip().capitalize(), label]))

    @property
    def other_errors(self) -> Texts:
        return self.errors.get("", ())

    def _plain(self, name: str) -> ProgramField:
        field = _PLAIN[name]
        return replace(field, value=self.texts.get(name, ""), errors=self.errors.get(name, ()))

    def _rows(self, path: str, least: int = 0) -> RowSet:
        numbers = list(rows_of(self.texts, path)) or list(range(least))
        *rows, spare = (self._row(path, str(number)) for number in (*numbers, max(numbers, default=-1) + 1))
        return RowSet(path, _NOUNS[path], rows, spare, self._row(path, _PREFIX), self.errors.get(path, ()))

    def _row(self, path: str, number: str) -> Row:
        return Row(list(self._cells(path, number)), f"read-{path}-{number}")

    def _cells(self, path: str, number: str) -> Iterator[ProgramField]:
        for column in _COLUMNS[path]:
            full_path = f"{path}.{number}.{column.path}"
            value = self.texts.get(full_path, "") or _first(column.choices)
            yield replace(column, path=full_path, value=value, errors=self.errors.get(full_path, ()))


def _first(choices: Choices) -> str:
    return choices[0][0] if choices else ""
