"""Any program as a workload: its specification holds the argv template, typed placeholders and where the results stand.

It says itself what is executed, so only the maintainers of a project may submit it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar, Final, Self, TypeVar

from pydantic import BaseModel, Field, ValidationError, field_validator

from experiments.errors import OutputError
from experiments.workloads.base import FigureOfMerit, Mismatch, Parameters, Parsed, Workload
from experiments.workloads.extractors import FILE_NAME, MAX_LINE, Extractor, is_reserved
from experiments.workloads.patterns import compiled, first_line
from experiments.workloads.template import (
    RANKS,
    Definition,
    Placeholder,
    fill,
    fill_text,
    names_in,
    names_in_text,
    with_placeholders,
)

__all__ = ["Command", "CommandParameters", "Extractor", "Placeholder"]

MAX_INPUT_CHARACTERS: Final = 200_000

_Kind = TypeVar("_Kind", bound="Command")


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

    @field_validator("program", "placeholders", "extract", "inputs", mode="before")
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
            if not re.match(FILE_NAME, name) or is_reserved(name):
                raise ValueError(f"{name!r} cannot be the name of an input file")
            if len(text) > MAX_INPUT_CHARACTERS:
                raise ValueError(f"{name} is longer than {MAX_INPUT_CHARACTERS} characters")
        return inputs

    @field_validator("success", "failure")
    @classmethod
    def _is_expression(cls, pattern: str) -> str:
        compiled(pattern)
        return pattern


class Command(Workload):
    """A program that the specification defines. Unbound it has no placeholders; ``bind`` gives it those of a specification."""

    slug = "command"
    title = "Any command"
    summary = "A program of your own with placeholders and figures of merit; for maintainers"
    programs: ClassVar[Mapping[str, str]] = {}
    restricted = True
    constants = tuple(name for name in CommandParameters.model_fields if name != "threads")
    parameters_type: type[Parameters] = CommandParameters
    figures: tuple[FigureOfMerit, ...] = ()

    def __init__(self, definition: CommandParameters | None = None) -> None:
        self._extractors: tuple[Extractor, ...] = ()
        self._success = self._failure = ""
        self._own_threads = False
        if definition is None:
            return
        placeholders = {name: Placeholder.model_validate(each) for name, each in definition.placeholders.items()}
        self._extractors = tuple(Extractor.model_validate(each) for each in definition.extract)
        self._own_threads = "threads" in placeholders
        self._success, self._failure = definition.success, definition.failure
        self.parameters_type = with_placeholders(CommandParameters, placeholders)
        used = {name for item in definition.program for name in names_in(item)}
        self.unused = frozenset(placeholders).difference(used, *map(names_in_text, definition.inputs.values()))
        self.figures = tuple(extractor.figure(self.slug) for extractor in self._extractors)
        self.decides = next((figure.id for figure in self.figures if figure.direction != "neutral"), "elapsed_s")
        self.outputs = tuple(dict.fromkeys(e.file for e in self._extractors if e.file is not None))

    def bind(self, parameters: Mapping[str, Any]) -> Self:
        """Return the command that these constants define; without a valid definition this very workload."""
        definition = {name: value for name, value in parameters.items() if name in self.constants}
        if "program" not in definition:
            return self
        return _bound(type(self), json.dumps(definition, sort_keys=True, default=str)) or self

    @property
    def later_defaults(self) -> Mapping[str, Any]:
        words = {"success": "", "failure": ""}
        return words if self._own_threads else {**words, "threads": 1}

    def command(self, parameters: Any, *, ranks: int) -> tuple[str, ...]:
        return fill(parameters.program, self._values(parameters, ranks))

    def files(self, parameters: Any, *, ranks: int) -> Mapping[str, str]:
        values = self._values(parameters, ranks)
        return {name: fill_text(text, values) for name, text in parameters.inputs.items()}

    @staticmethod
    def _values(parameters: Any, ranks: int) -> dict[str, Any]:
        return {**{name: getattr(parameters, name) for name in parameters.placeholders}, RANKS: ranks}

    def threads(self, parameters: Any) -> int:
        # A placeholder of this name takes the place of the parameter: what the program is told is what counts.
        return max(parameters.threads, 1) if isinstance(parameters.threads, int) else 1

    def check(self, parameters: Any, *, ranks: int) -> None:
        known = {*parameters.placeholders, RANKS}
        unknown = [name for item in parameters.program for name in names_in(item) if name not in known]
        if unknown:
            raise Mismatch("program", f"{{{unknown[0]}}} is not defined under placeholders")
        self.command(parameters, ranks=ranks)

    def parse(self, output: str, files: Mapping[str, str]) -> Parsed:
        self._require_good_words(output)
        figures: dict[str, float] = {}
        for extractor in self._extractors:
            text = output if extractor.file is None else files.get(extractor.file, "")
            value = extractor.read(text)
            if value is not None:
                figures[f"{self.slug}.{extractor.name}"] = value
            elif extractor.required:
                where = extractor.file or "the output"
                raise OutputError(f"{extractor.name} is not in {where}")
        return Parsed(figures)

    def _require_good_words(self, output: str) -> None:
        """Raise OutputError for a program that says that it failed and returns 0 all the same."""
        failed = _first_line(self._failure, output) if self._failure else None
        if failed is not None:
            raise OutputError(f"the program said that it failed: {failed.strip().rstrip('.')}")
        if self._success and _first_line(self._success, output) is None:
            raise OutputError(f"no line of the output matches /{self._success}/, which a good run prints")

    def estimate_s(self, parameters: Any, *, ranks: int) -> float:
        return 10.0  # nothing is known of the program before its first trial


@lru_cache(
    maxsize=64
)  # asked for every value and every configuration of a sweep, and building a model takes a millisecond
def _bound(kind: type[_Kind], definition: str) -> _Kind | None:
    try:
        return kind(CommandParameters.model_validate_json(definition))
    except ValidationError:
        return None  # each wrong constant is told at its own field


def _first_line(pattern: str, output: str) -> str | None:
    try:
        return first_line(pattern, (line[:MAX_LINE] for line in output.splitlines()))
    except ValueError as error:
        raise OutputError(f"/{pattern}/ in the output: {error}") from None


def _judge(model: type[BaseModel], data: Any) -> None:
    """Raise ValueError with the place and the reason of the first thing that ``model`` finds wrong in ``data``."""
    try:
        model.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        reason = str(first["ctx"]["error"]) if first["type"] == "value_error" else first["msg"]
        place = ".".join(str(part) for part in first["loc"] if part not in ("program", "placeholders"))
        raise ValueError(f"{place}: {reason}" if place else reason) from None
