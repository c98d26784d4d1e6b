"""Definitions of programs as texts of a form, and back.

A text has the path of its field: ``name``, or ``extract.0.regex`` for a field of the first row of figures.
"""

from __future__ import annotations

import csv
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any, Final

from pydantic import BaseModel, TypeAdapter, ValidationError

from dashboard.labels import command_text
from experiments.common import budget
from experiments.errors import FieldError, InvalidSpec
from experiments.models.program import read_definition
from experiments.specification.parameters import sentence
from experiments.specification.yaml_lines import YamlDocument, dump
from experiments.workloads.definition import MAX_INPUT_CHARACTERS, Extractors, Placeholders
from experiments.workloads.extractors import Extractor
from experiments.workloads.template import Placeholder

MOST_BYTES: Final = 4 * MAX_INPUT_CHARACTERS
ROWS: Final = ("placeholders", "extract", "inputs", "parts")
"""Fields that are rows of the form."""
_CHOSEN: Final = ("type", "direction", "pick", "required")
"""Columns that are never empty: a row with nothing else is no row."""
_LIMITS: Final = ("minimum", "maximum", "choices")
"""Fields of a parameter that are one column: ``1..100``, ``1, 2, 4`` or both, ``1..100; 1, 2, 4``."""
_NUMBERS: Final = ("factor", "at_least", "at_most")
_AS_TYPED: Final = ("text", "delimiter", "thousands")
"""Columns whose spaces count."""
_LONGEST_COMMAND: Final = 100_000
_LONGEST_RANGE: Final = 700
"""Two numbers of 300 digits; of a long text the pattern would take hours."""
_RANGE: Final = re.compile(r"(?P<minimum>[^\s,]+?)?\s*\.\.\s*(?P<maximum>[^\s,]+)?")
_FIGURE_DEFAULTS: Final = {name: info.default for name, info in Extractor.model_fields.items()}
_ADAPTERS: Final[Mapping[str, TypeAdapter[Any]]] = {
    "placeholders": TypeAdapter(Placeholders),
    "extract": TypeAdapter(Extractors),
}
Texts = Mapping[str, str]


def texts_of(definition: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts of a definition."""
    texts = {name: write(definition[name]) for name, (_, write) in PLAIN.items() if name in definition}
    for field in ROWS:
        for number, row in enumerate(_ROW_TEXTS[field](definition[field]) if field in definition else ()):
            texts |= {f"{field}.{number}.{name}": text for name, text in row.items() if text}
    return texts


def definition_of(texts: Texts, stored: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the definition of texts. Raise InvalidSpec.

    Fields with the texts of a ``stored`` definition are taken from it.
    """
    definition: dict[str, Any] = {}
    errors: list[FieldError] = []
    for name, (read, _) in PLAIN.items():
        if text := texts.get(name, "").replace("\r\n", "\n"):
            if not text.strip():
                continue
            try:
                definition[name] = read(text)
            except (InvalidSpec, ValueError) as error:
                errors.append(FieldError(name, f"cannot be read: {str(error).splitlines()[0]}"))
    for field in ROWS:
        rows = []
        for number, row in rows_of(texts, field).items():
            try:
                rows.append(_ROW_READERS[field](row))
            except InvalidSpec as error:
                errors += (FieldError(f"{field}.{number}.{e.path}", e.message) for e in error.errors)
                rows += _stand_in(field, row.get("name"))
        if rows:
            definition[field] = dict(rows) if field in ("placeholders", "inputs") else rows
        errors += _given_twice(texts, field)
    if errors:
        raise InvalidSpec([*errors, *_further(definition, {error.path.split(".")[0] for error in errors})])
    if stored and stored.get("retired"):
        definition["retired"] = True  # its page changes this
    return definition | _unchanged(definition, stored or {})


def _stand_in(field: str, name: str | None) -> list[Any]:
    """Return a valid row for one with errors: other fields may have its name."""
    rows: dict[str, Any] = {"placeholders": (name, {}), "extract": {"name": name, "regex": "(.)"}}
    fields = {"placeholders": {name: {}}, "extract": [rows["extract"]]}
    try:
        return [rows[field]] if name and _ADAPTERS[field].validate_python(fields[field]) else []
    except (KeyError, ValidationError):  # a row of another field, or its name is the error
        return []


def _further(definition: Mapping[str, Any], unreadable: Set[str]) -> Iterator[FieldError]:
    """Yield the errors of the definition in fields that can be read."""
    try:
        read_definition(definition)
    except InvalidSpec as error:
        # An unreadable field may have the name of a parameter that seems unused.
        excluded = {*unreadable, "placeholders"}
        yield from (e for e in error.errors if e.path.split(".")[0] not in excluded)


def _unchanged(definition: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the stored fields that have the same texts.

    5.0 is not 5 in a definition, and a field that the user left as it was makes no new version.
    """
    return {
        name: value
        for name, value in stored.items()
        if name in definition and texts_of({name: definition[name]}) == texts_of({name: value})
    }


def rows_of(texts: Texts, field: str) -> dict[int, dict[str, str]]:
    """Return the rows of a field that are not blank, by number."""
    rows: dict[int, dict[str, str]] = {}
    for path, text in texts.items():
        if match := re.fullmatch(rf"{field}\.(\d{{1,4}})\.(\w+)", path):
            text = text.replace("\r\n", "\n")
            rows.setdefault(int(match[1]), {})[match[2]] = text if match[2] in _AS_TYPED else text.strip()
    filled = (number for number, row in rows.items() if any(row[name].strip() for name in row if name not in _CHOSEN))
    return {number: rows[number] for number in sorted(filled)}


def figure_of(row: Texts) -> dict[str, Any]:
    """Return the figure of a row. Raise InvalidSpec with the columns of its errors."""
    figure: dict[str, Any] = {name: text for name, text in row.items() if text}
    figure |= {name: _number(text) for name, text in figure.items() if name in _NUMBERS}
    if "required" in figure:
        figure["required"] = figure["required"] != "no"
    if errors := _errors_in(Extractor, figure, "regex", {}):
        raise InvalidSpec(errors)
    return {name: value for name, value in figure.items() if value != _FIGURE_DEFAULTS[name]}


def at_rows(error: InvalidSpec, texts: Texts) -> InvalidSpec:
    """Return the errors at fields of the form: at the row that a message names.

    Errors of other fields have no path.
    """
    return InvalidSpec(_at_field(e.path.split(".")[0], e, texts) for e in error.errors)


def _at_field(field: str, error: FieldError, texts: Texts) -> FieldError:
    if field not in (*ROWS, *PLAIN, "yaml"):
        return FieldError("", str(error))
    if field not in ROWS or error.path in texts:
        return FieldError(error.path if field in ROWS else field, error.message)
    rows = rows_of(texts, field).items()
    named = (f"{field}.{n}.name" for n, row in rows if error.message.startswith(f"{row.get('name')!r} "))
    return FieldError(next(named, field), error.message)


def _parameter_of(row: Texts) -> tuple[str, dict[str, Any]]:
    is_text = row.get("type") == "text"
    parameter: dict[str, Any] = {n: t for n, t in row.items() if t and n not in ("name", "default", "allowed")}
    if default := row.get("default", ""):
        parameter["default"] = default if is_text else _number(default)
    head, _, choices = row.get("allowed", "").partition(";")
    bounds = None if is_text or len(head) > _LONGEST_RANGE else _RANGE.fullmatch(head.strip())
    if bounds:
        parameter |= {name: _number(text) for name, text in bounds.groupdict().items() if text}
    if written := (choices if bounds else row.get("allowed", "")).strip():
        try:
            words = [word.strip() for word in next(csv.reader([written], skipinitialspace=True))]
        except csv.Error as error:  # a line feed, or 131 073 characters
            raise InvalidSpec([FieldError("allowed", f"cannot be read: {error}")]) from None
        parameter["choices"] = words if is_text else [_number(word) for word in words]
    errors = list(_errors_of_name(row))
    low, high = parameter.get("minimum"), parameter.get("maximum")
    if isinstance(low, int | float) and isinstance(high, int | float) and low > high:
        errors.append(FieldError("allowed", f"{low} is more than {high}: write the smaller limit first"))
    else:
        errors += _errors_in(Placeholder, parameter, "default", dict.fromkeys(_LIMITS, "allowed"))
    if errors:
        raise InvalidSpec(errors)
    return row["name"], parameter


def _errors_of_name(row: Texts) -> Iterator[FieldError]:
    """Yield the errors of a parameter's name, whatever else is wrong in its row."""
    try:
        _ADAPTERS["placeholders"].validate_python({_named(row): {}})
    except InvalidSpec as error:
        yield from error.errors
    except ValidationError as error:
        yield FieldError("name", sentence(error.errors()[0]))


def _file_of(row: Texts) -> tuple[str, str]:
    return _named(row), row.get("text", "")


def _part_of(row: Texts) -> dict[str, Any]:
    try:
        return {"from_rank": _number(row.get("from_rank", "")), "program": _words(row.get("program", ""))}
    except ValueError as error:
        raise InvalidSpec([FieldError("program", f"cannot be read: {error}")]) from None


def _named(row: Texts) -> str:
    if not row.get("name"):
        raise InvalidSpec([FieldError("name", "is missing")])
    return row["name"]


def _given_twice(texts: Texts, field: str) -> Iterator[FieldError]:
    seen = set()
    for number, row in rows_of(texts, field).items():
        name = row.get("name")
        if name and name in seen:
            yield FieldError(f"{field}.{number}.name", f"{name!r} is given twice")
        seen.add(name)


def _errors_in(
    model: type[BaseModel], values: Mapping[str, Any], row_column: str, columns: Mapping[str, str]
) -> list[FieldError]:
    """Return the errors of a row at their columns.

    Those of the whole row are at ``row_column``.
    """
    try:
        model.model_validate(values)
    except ValidationError as error:
        return [
            FieldError(columns.get(name := str((*problem["loc"], row_column)[0]), name), sentence(problem))
            for problem in error.errors()
        ]
    return []


def _number(text: str) -> Any:
    """Return a number, or the text itself, which the definition refuses."""
    if re.fullmatch(r"[+-]?\d{1,300}", text):
        return int(text)
    try:
        return float(text)
    except ValueError:
        return text


def _pairs(text: str) -> dict[str, str]:
    pairs = {}
    for line in filter(str.strip, text.splitlines()):
        name, equals, value = line.partition("=")
        if not equals:
            raise ValueError(f"{line[:80]!r} is not NAME=value")
        if name.strip() in pairs:
            raise ValueError(f"{name.strip()!r} is given twice")
        pairs[name.strip()] = value
    return pairs


def _written_pairs(pairs: Mapping[str, str]) -> str:
    return "\n".join(f"{name}={value}" for name, value in pairs.items())


def _written_yaml(value: Any) -> str:
    return dump(value, width=100).strip() if value else ""


def _yaml(text: str) -> Any:
    return YamlDocument(f"{text}\n", limit=MOST_BYTES).data  # the last line needs a line feed


def _words(text: str) -> list[str]:
    """Return the words of a command. Raise ValueError."""
    budget.check()  # a form has many commands
    if len(text) > _LONGEST_COMMAND:  # shlex takes the square of the length of a word
        raise ValueError(f"has more than {_LONGEST_COMMAND} characters")
    return shlex.split(text)


def _threads(text: str) -> Any:
    text = text.strip()
    return int(text) if text.isdecimal() and len(text) < 10 else text


PLAIN: Final[Mapping[str, tuple[Callable[[str], Any], Callable[[Any], str]]]] = {
    **dict.fromkeys(("name", "title", "summary", "deciding", "success", "failure", "container"), (str.strip, str)),
    **dict.fromkeys(("program", "modules", "keep"), (_words, command_text)),
    "threads": (_threads, str),
    "environment": (_pairs, _written_pairs),
    "decks": (_pairs, _written_pairs),
    "clusters": (_yaml, _written_yaml),
}
"""Fields with one text each: how it is read and written."""
_ROW_READERS: Final[Mapping[str, Callable[[Texts], Any]]] = {
    "placeholders": _parameter_of,
    "extract": figure_of,
    "inputs": _file_of,
    "parts": _part_of,
}


def _parameter_texts(placeholders: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, str]]:
    for name, parameter in placeholders.items():
        low, high = parameter.get("minimum"), parameter.get("maximum")
        limits = "" if low is None and high is None else f"{_text_of(low)}..{_text_of(high)}"
        plain = {key: _text_of(value) for key, value in parameter.items() if key not in _LIMITS}
        allowed = "; ".join(filter(None, (limits, _listed(parameter.get("choices") or ()))))
        yield {"type": "integer", **plain, "name": name, "allowed": allowed}


def _listed(choices: Sequence[Any]) -> str:
    quoted = (
        f'"{text.replace(chr(34), chr(34) * 2)}"' if re.search('[",]', text) else text for text in map(str, choices)
    )
    return ", ".join(quoted)


def _figure_texts(figures: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, str]]:
    for figure in figures:
        yield {name: _text_of(value) for name, value in figure.items() if value != _FIGURE_DEFAULTS[name]}


def _text_of(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


_ROW_TEXTS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "placeholders": _parameter_texts,
    "extract": _figure_texts,
    "inputs": lambda files: ({"name": name, "text": text} for name, text in files.items()),
    "parts": lambda parts: (
        {"from_rank": str(part["from_rank"]), "program": command_text(part["program"])} for part in parts
    ),
}
