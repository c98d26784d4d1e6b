"""What defines a command: program, placeholders, inputs, surroundings, and how its output is read. Pure.

Values stay the plain data that a specification holds, because parameters are stored and hashed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from experiments.workloads.base import Parameters
from experiments.workloads.extractors import Extractor
from experiments.workloads.fields import AsWritten, FromJson, parameter
from experiments.workloads.kept_files import FILE_NAME, WRITTEN_PATTERN, is_pattern, is_reserved
from experiments.workloads.patterns import compiled
from experiments.workloads.template import PLACEHOLDER_NAME, RANKS, Placeholder, names_in

MAX_ITEM: Final = 4096
MAX_INPUT_CHARACTERS: Final = 200_000
_VARIABLE: Final = "^[A-Za-z_][A-Za-z0-9_]{0,99}$"
_MODULE: Final = "^[A-Za-z0-9][A-Za-z0-9_.+/-]{0,199}$"
_PATTERN_REFUSED: Final = "is no pattern of names in the working directory, such as *.log or run*/rates.csv"


def _require(is_good: Any, value: str, refusal: str) -> None:
    if not is_good:
        raise ValueError(f"{value[:80]!r} {refusal}")


def _each(is_good: Callable[[str], Any], refusal: str) -> AfterValidator:
    def checked(names: Collection[str]) -> Any:
        for name in names:
            _require(is_good(name), name, refusal)
        return names

    return AfterValidator(checked)


def _distinct(field: str, refusal: str) -> AfterValidator:
    def checked(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if len({row[field] for row in rows}) < len(rows):
            raise ValueError(refusal)
        return rows

    return AfterValidator(checked)


def _argv(program: list[str]) -> list[str]:
    if not program:
        raise ValueError("names no program")
    for item in program:
        is_argument = 0 < len(item) <= MAX_ITEM and item.isprintable()
        _require(is_argument, item, f"is not a printable argument of 1 to {MAX_ITEM} characters")
        names_in(item)
    if names_in(program[0]) or program[0].startswith("-"):
        raise ValueError("the program itself is a fixed name, without placeholders")
    return program


def _binary(path: str) -> str:
    return _argv([path])[0] if path else path


def _placeholder_name(name: str) -> str:
    taken = {RANKS, "hosts", "ranks_per_host", "link", *CONSTANTS}
    is_free = name not in taken and not hasattr(Parameters, name)
    _require(is_free and re.fullmatch(PLACEHOLDER_NAME, name), name, "cannot be the name of a placeholder")
    return name


def _inputs(inputs: dict[str, str]) -> dict[str, str]:
    for name, text in inputs.items():
        if len(text) > MAX_INPUT_CHARACTERS:
            raise ValueError(f"{name} is longer than {MAX_INPUT_CHARACTERS} characters")
    return inputs


def _decks(decks: dict[str, str]) -> dict[str, str]:
    for path in decks.values():
        is_full = path.startswith("/") and ".." not in path.split("/")
        _require(is_full and len(path) <= MAX_ITEM and path.isprintable(), path, "is no full path of a file")
        names_in(path)
    return decks


def _environment(environment: dict[str, str]) -> dict[str, str]:
    for name, value in environment.items():
        is_variable = re.fullmatch(_VARIABLE, name) and name != "OMP_NUM_THREADS"  # which is the field `threads`
        is_value = len(value) <= MAX_ITEM and value.isprintable()  # with modules a shell reads it
        _require(is_variable and is_value, name, "cannot be a variable with this value")
    return environment


def _image(image: str) -> str:
    _require(not image.startswith("-") and image.isprintable(), image, "cannot be an image")
    return image


def _expression(pattern: str) -> str:
    compiled(pattern)
    return pattern


def _list(most: int, **items: Any) -> Any:
    return Field(max_length=most, json_schema_extra={"items": {"type": "string", **items}})


def _mapping(names: str, **values: Any) -> Any:
    described: Any = {"propertyNames": {"pattern": names}, "additionalProperties": {"type": "string", **values}}
    return Field(max_length=50, json_schema_extra=described)


def _is_file_name(name: str) -> bool:
    return re.fullmatch(FILE_NAME, name) is not None and not is_reserved(name)


_FILES: Final = _each(_is_file_name, "cannot be the name of an input file")
_Argv = Annotated[list[str], _list(200, minLength=1, maxLength=MAX_ITEM), AfterValidator(_argv)]
Argv = Annotated[_Argv, FromJson]
Binary = Annotated[str, Field(max_length=MAX_ITEM), AfterValidator(_binary)]
Inputs = Annotated[
    dict[str, str], _mapping(FILE_NAME, maxLength=MAX_INPUT_CHARACTERS), FromJson, _FILES, AfterValidator(_inputs)
]
Decks = Annotated[
    dict[str, str], _mapping(FILE_NAME, maxLength=MAX_ITEM, pattern="^/"), FromJson, _FILES, AfterValidator(_decks)
]
Environment = Annotated[dict[str, str], _mapping(_VARIABLE, maxLength=MAX_ITEM), FromJson, AfterValidator(_environment)]
Modules = Annotated[
    list[str],
    _list(20, pattern=_MODULE),
    FromJson,
    _each(re.compile(_MODULE).fullmatch, "cannot be the name of a module"),
]
Image = Annotated[str, Field(max_length=500), AfterValidator(_image)]
Patterns = Annotated[list[str], _list(20, pattern=WRITTEN_PATTERN), FromJson, _each(is_pattern, _PATTERN_REFUSED)]
Expression = Annotated[str, Field(max_length=500), AfterValidator(_expression)]


class Part(BaseModel):
    """The program of the ranks from one on: several programs in one world (MPMD)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    from_rank: int = Field(ge=1, strict=True)
    program: _Argv = Field(json_schema_extra={"minItems": 1})


Placeholders = Annotated[
    dict[str, dict[str, Any]],
    AsWritten(Annotated[dict[Annotated[str, AfterValidator(_placeholder_name)], Placeholder], Field(max_length=50)]),
    FromJson,
    Field(json_schema_extra={"propertyNames": {"pattern": PLACEHOLDER_NAME}}),
]
Extractors = Annotated[
    list[dict[str, Any]],
    AsWritten(Annotated[list[Extractor], Field(max_length=100)]),
    FromJson,
    _distinct("name", "two figures of merit have the same name"),
]
Parts = Annotated[
    list[dict[str, Any]],
    AsWritten(Annotated[list[Part], Field(max_length=16)]),
    FromJson,
    _distinct("from_rank", "two programs begin at the same rank"),
]
_PROGRAM: Final = 'Program and arguments; {name} stands for a placeholder: ["moldy", "control", "--steps={steps}"].'
_PLACEHOLDERS: Final = (
    "By name: type (integer, number, text), default, minimum, maximum, choices, pattern, title, unit."
)
_EXTRACT: Final = "Each with name, unit, direction, and one of regex, json_pointer, csv_column; file, pick and factor."
_INPUTS: Final = "Texts by file name, written to the working directory; {name} of a placeholder is filled there too."
_DECKS: Final = "Full paths on the first host by file name; read and filled when a trial starts."
_THREADS: Final = "Threads of each rank, as OMP_NUM_THREADS tells the program; can be swept."
_SUCCESS: Final = "Regular expression of a line that a good run prints; without such a line the trial has failed."
_FAILURE: Final = "Regular expression of a line that a bad run prints; with such a line the trial has failed."
_VARIABLES: Final = "Variables of every rank by name; {name} of a placeholder is filled there too."
_MODULES: Final = "Environment modules that every rank loads first, as “module load” on its host does."
_CONTAINER: Final = "Image in which Apptainer runs the program on every host; empty: no container."
_PARTS: Final = "Each with from_rank and program: ranks from there on run that one instead; all are one world."
_KEEP: Final = "Patterns of files that the program writes and that stay with the trial: *.log, run*/rates.csv."


class CommandParameters(Parameters):
    """The definition of a command. Its placeholders become further parameters, which can be constant or swept."""

    program: Argv = parameter([], "Program", _PROGRAM)
    placeholders: Placeholders = parameter({}, "Placeholders", _PLACEHOLDERS)
    extract: Extractors = parameter([], "Figures of merit", _EXTRACT)
    inputs: Inputs = parameter({}, "Input files", _INPUTS)
    decks: Decks = parameter({}, "Input files by path", _DECKS)
    threads: int = parameter(1, "Threads", _THREADS, ge=1, le=1024)
    success: Expression = parameter("", "Success", _SUCCESS)
    failure: Expression = parameter("", "Failure", _FAILURE)
    environment: Environment = parameter({}, "Environment", _VARIABLES)
    modules: Modules = parameter([], "Modules", _MODULES)
    container: Image = parameter("", "Container", _CONTAINER)
    parts: Parts = parameter([], "Programs of further ranks", _PARTS)
    keep: Patterns = parameter([], "Kept files", _KEEP)


CONSTANTS: Final = tuple(name for name in CommandParameters.model_fields if name != "threads")
"""Names of the parameters that define a command: all but those that can be swept."""
