"""What defines a command: program, placeholders, inputs, surroundings, and how its output is read. Pure."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from experiments.workloads.base import Parameters
from experiments.workloads.extractors import Extractor
from experiments.workloads.kept_files import FILE_NAME, is_pattern, is_reserved
from experiments.workloads.patterns import compiled
from experiments.workloads.template import MAX_ITEM, Definition, names_in

MAX_INPUT_CHARACTERS: Final = 200_000
MAX_IMAGE: Final = 500
VARIABLE: Final = "^[A-Za-z_][A-Za-z0-9_]{0,99}$"
_NOT_OURS: Final = frozenset({"OMP_NUM_THREADS"})
"""Variables that another field sets."""
MODULE: Final = "^[A-Za-z0-9][A-Za-z0-9_.+/-]{0,199}$"


class Part(BaseModel):
    """The program of the ranks from one on: several programs in one world (MPMD)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    from_rank: int = Field(ge=1)
    program: list[str] = Field(min_length=1)


class CommandParameters(Parameters):
    """The definition of a command. Its placeholders become further parameters, which can be constant or swept."""

    program: list[str] = Field(
        [],
        title="Program",
        description='Program and arguments; {name} stands for a placeholder: ["moldy", "control", "--steps={steps}"].',
        json_schema_extra={"unit": ""},
    )
    placeholders: dict[str, dict[str, Any]] = Field(
        {},
        title="Placeholders",
        description="By name: type (integer, number, text), default, minimum, maximum, choices, pattern, title, unit.",
        json_schema_extra={"unit": ""},
    )
    extract: list[dict[str, Any]] = Field(
        [],
        max_length=100,
        title="Figures of merit",
        description="Each with name, unit, direction, and one of regex, json_pointer, csv_column; file, pick and factor.",
        json_schema_extra={"unit": ""},
    )
    inputs: dict[str, str] = Field(
        {},
        max_length=50,
        title="Input files",
        description="Texts by file name, written to the working directory; {name} of a placeholder is filled there too.",
        json_schema_extra={"unit": ""},
    )
    decks: dict[str, str] = Field(
        {},
        max_length=50,
        title="Input files by path",
        description="Full paths on the first host by file name; read and filled when a trial starts.",
        json_schema_extra={"unit": ""},
    )
    threads: int = Field(
        1,
        ge=1,
        le=1024,
        title="Threads",
        description="Threads of each rank, as OMP_NUM_THREADS tells the program; can be swept.",
        json_schema_extra={"unit": ""},
    )
    success: str = Field(
        "",
        max_length=500,
        title="Success",
        description="Regular expression that a line of a good run's output matches; without such a line the trial has failed.",
        json_schema_extra={"unit": ""},
    )
    failure: str = Field(
        "",
        max_length=500,
        title="Failure",
        description="Regular expression of what a bad run says: the first line of the output that matches fails the trial.",
        json_schema_extra={"unit": ""},
    )

    environment: dict[str, str] = Field(
        {},
        max_length=50,
        title="Environment",
        description="Variables of every rank by name; {name} of a placeholder is filled there too.",
        json_schema_extra={"unit": ""},
    )
    modules: list[str] = Field(
        [],
        max_length=20,
        title="Modules",
        description="Environment modules that every rank loads first, as “module load” on its host does.",
        json_schema_extra={"unit": ""},
    )
    container: str = Field(
        "",
        max_length=MAX_IMAGE,
        title="Container",
        description="Image in which Apptainer runs the program on every host; empty: no container.",
        json_schema_extra={"unit": ""},
    )
    parts: list[dict[str, Any]] = Field(
        [],
        max_length=16,
        title="Programs of further ranks",
        description="Each with from_rank and program: ranks from there on run that one instead; all are one world.",
        json_schema_extra={"unit": ""},
    )
    keep: list[str] = Field(
        [],
        max_length=20,
        title="Kept files",
        description="Patterns of files that the program writes and that stay with the trial: *.log, run*/rates.csv.",
        json_schema_extra={"unit": ""},
    )

    @field_validator(
        *("program", "placeholders", "extract", "inputs", "decks", "environment", "modules", "parts", "keep"),
        mode="before",
    )
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        """Return lists and mappings out of JSON, as a form sends them."""
        if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
            try:
                return json.loads(value)
            except ValueError as error:
                raise ValueError(f"cannot be read as JSON: {error}") from None
        return value

    # The definitions stay plain data, because parameters are stored and hashed; these checks only judge them.

    @field_validator("program")
    @classmethod
    def _is_argv(cls, program: list[str]) -> list[str]:
        if not program:
            raise ValueError("names no program")
        _judge(Definition, {"program": program})
        return program

    @field_validator("placeholders")
    @classmethod
    def _are_placeholders(cls, placeholders: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        _judge(Definition, {"program": ["true"], "placeholders": placeholders})
        return placeholders

    @field_validator("extract")
    @classmethod
    def _are_extractors(cls, extract: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for each in extract:
            _judge(Extractor, each)
        names = [each["name"] for each in extract]
        if len(set(names)) < len(names):
            raise ValueError("two figures of merit have the same name")
        return extract

    @field_validator("inputs")
    @classmethod
    def _are_files(cls, inputs: dict[str, str]) -> dict[str, str]:
        for name, text in inputs.items():
            if not re.fullmatch(FILE_NAME, name) or is_reserved(name):
                raise ValueError(f"{name!r} cannot be the name of an input file")
            if len(text) > MAX_INPUT_CHARACTERS:
                raise ValueError(f"{name} is longer than {MAX_INPUT_CHARACTERS} characters")
        return inputs

    @field_validator("decks")
    @classmethod
    def _are_decks(cls, decks: dict[str, str]) -> dict[str, str]:
        return checked_decks(decks)

    @field_validator("environment")
    @classmethod
    def _are_variables(cls, environment: dict[str, str]) -> dict[str, str]:
        return checked_environment(environment)

    @field_validator("modules")
    @classmethod
    def _are_modules(cls, modules: list[str]) -> list[str]:
        return checked_modules(modules)

    @field_validator("container")
    @classmethod
    def _is_image(cls, image: str) -> str:
        return checked_image(image)

    @field_validator("parts")
    @classmethod
    def _are_parts(cls, parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for each in parts:
            _judge(Part, each)
            _judge(Definition, {"program": each["program"]})
        if len({each["from_rank"] for each in parts}) < len(parts):
            raise ValueError("two programs begin at the same rank")
        return parts

    @field_validator("keep")
    @classmethod
    def _are_patterns(cls, keep: list[str]) -> list[str]:
        for pattern in keep:
            if not is_pattern(pattern):
                raise ValueError(
                    f"{pattern!r} is no pattern of names in the working directory, such as *.log or run*/rates.csv"
                )
        return keep

    @field_validator("success", "failure")
    @classmethod
    def _is_expression(cls, pattern: str) -> str:
        compiled(pattern)
        return pattern


def checked_environment(environment: dict[str, str]) -> dict[str, str]:
    """Return variables as they are. Raise ValueError for a name or value that cannot be one: with modules a shell reads them."""
    for name, value in environment.items():
        possible = re.fullmatch(VARIABLE, name) and name not in _NOT_OURS
        if not possible or len(value) > MAX_ITEM or not value.isprintable():
            raise ValueError(f"{name!r} cannot be a variable with this value")
    return environment


def checked_modules(modules: list[str]) -> list[str]:
    """Return modules as they are. Raise ValueError for what cannot be the name of one, such as an option of ``module``."""
    for name in modules:
        if not re.fullmatch(MODULE, name):
            raise ValueError(f"{name!r} cannot be the name of a module")
    return modules


def checked_image(image: str) -> str:
    """Return the image of a container as it is. Raise ValueError for what would be an option of Apptainer."""
    if image and (image.startswith("-") or not image.isprintable() or len(image) > MAX_IMAGE):
        raise ValueError(f"{image[:80]!r} cannot be an image")
    return image


def checked_binary(binary: str) -> str:
    """Return the path of a program as it is. Raise ValueError for what could not be the first word of one."""
    if binary:
        _judge(Definition, {"program": [binary]})
    return binary


def checked_decks(decks: dict[str, str]) -> dict[str, str]:
    """Return names and paths of input files as they are. Raise ValueError for what cannot be one."""
    for name, path in decks.items():
        if not re.fullmatch(FILE_NAME, name) or is_reserved(name):
            raise ValueError(f"{name!r} cannot be the name of an input file")
        if not path.startswith("/") or len(path) > MAX_ITEM or not path.isprintable() or ".." in path.split("/"):
            raise ValueError(f"{path!r} is no full path of a file")
        names_in(path)
    return decks


def _judge(model: type[BaseModel], data: Any) -> None:
    """Raise ValueError with the place and the reason of the first thing that ``model`` finds wrong in ``data``."""
    try:
        model.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        reason = str(first["ctx"]["error"]) if first["type"] == "value_error" else first["msg"]
        place = ".".join(str(part) for part in first["loc"] if part not in ("program", "placeholders"))
        raise ValueError(f"{place}: {reason}" if place else reason) from None
