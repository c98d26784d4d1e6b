"""Fields that define a command: program, placeholders, inputs and outputs.

A definition is inline in a specification (`CommandParameters`) or registered (`ProgramDefinition`). Values stay the plain data
that were written, because parameters are stored and hashed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Final, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic_core import core_schema

from experiments.workloads.base import Parameters
from experiments.workloads.extractors import Extractor
from experiments.workloads.fields import parameter
from experiments.workloads.kept_files import FILE_NAME, WRITTEN_PATTERN, is_pattern, is_reserved
from experiments.workloads.patterns import compiled
from experiments.workloads.template import PLACEHOLDER_NAME, RANKS, NoBool, Placeholder, names_in, names_in_text

MAX_ITEM: Final = 4096
MAX_INPUT_CHARACTERS: Final = 200_000
NAME: Final = r"[a-z][a-z0-9-]{1,39}"
"""Name of a registered program."""
READING: Final = frozenset({"extract", "success", "failure", "keep"})
"""Fields that change nothing of a run."""
_VARIABLE: Final = "^[A-Za-z_][A-Za-z0-9_]{0,99}$"
_MODULE: Final = "^[A-Za-z0-9][A-Za-z0-9_.+/-]{0,199}$"


def _refuse(refusal: str) -> Callable[[Callable[..., Any]], AfterValidator]:
    """Make a validator of a predicate of a text, a list item or a mapping entry."""

    def validator(is_good: Callable[..., Any]) -> AfterValidator:
        def check(value: Any) -> Any:
            items = [value] if isinstance(value, str) else value
            for entry in value.items() if isinstance(value, dict) else ((item,) for item in items):
                if not is_good(*entry):
                    raise ValueError(f"{entry[0][:80]!r} {refusal}")
            return value

        return AfterValidator(check)

    return validator


def _from_json(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except ValueError as error:
            raise ValueError(f"cannot be read as JSON: {error}") from None
    return value


_FROM_JSON: Final = BeforeValidator(_from_json)
"""Lists and mappings may be JSON text, as a form sends them."""


class _AsWritten:
    """Check plain data as ``kind``, with distinct rows, and return them as written."""

    def __init__(self, kind: Any, distinct: str = "") -> None:
        self.kind, self.distinct = kind, distinct

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        plain = TypeAdapter(source)

        def check(value: Any, validate: core_schema.ValidatorFunctionWrapHandler) -> Any:
            written = plain.validate_python(value)
            try:
                validate(written)
            except ValidationError as error:
                raise ValueError(_reason(error)) from None
            if self.distinct and len({row[self.distinct] for row in written}) < len(written):
                raise ValueError(f"two of them have the same {self.distinct}")
            return written

        as_it_is = core_schema.plain_serializer_function_ser_schema(lambda value: value)
        inner = handler.generate_schema(self.kind)
        return core_schema.no_info_wrap_validator_function(check, inner, serialization=as_it_is)


def _reason(error: ValidationError) -> str:
    first = error.errors()[0]
    reason = str(first["ctx"]["error"]) if first["type"] == "value_error" else first["msg"]
    loc = () if "[key]" in first["loc"] else first["loc"]  # a reason against a name has it already
    path = ".".join(part for part in loc if isinstance(part, str) and part != "program")
    return f"{path}: {reason}" if path else reason


def _argv(program: list[str]) -> list[str]:
    if not program:
        raise ValueError("names no program")
    for item in program:
        if not (0 < len(item) <= MAX_ITEM and item.isprintable()):
            raise ValueError(f"{item[:80]!r} is not a printable argument of 1 to {MAX_ITEM} characters")
        names_in(item)
    if names_in(program[0]) or program[0].startswith("-"):
        raise ValueError("the program itself is a fixed name, without placeholders")
    return program


@_refuse("cannot be the name of a parameter: use lower-case letters, digits and _, and no name such as hosts")
def _placeholder_name(name: str) -> bool:
    taken = {RANKS, "hosts", "ranks_per_host", "link", *CONSTANTS}
    return name not in taken and not hasattr(Parameters, name) and re.fullmatch(PLACEHOLDER_NAME, name) is not None


def _is_file_name(name: str) -> bool:
    return re.fullmatch(FILE_NAME, name) is not None and not is_reserved(name)


@_refuse(f"cannot be the name of an input file, or is longer than {MAX_INPUT_CHARACTERS} characters")
def _input(name: str, text: str) -> bool:
    return _is_file_name(name) and len(text) <= MAX_INPUT_CHARACTERS


@_refuse("cannot be the name of an input file, or has no full path of a file")
def _deck(name: str, path: str) -> bool:
    is_full = path.startswith("/") and ".." not in path.split("/") and len(path) <= MAX_ITEM and path.isprintable()
    return _is_file_name(name) and is_full and names_in(path) is not None


@_refuse("cannot be a variable with this value")
def _variable(name: str, value: str) -> bool:
    # OMP_NUM_THREADS is the field `threads`; with modules a shell reads the value.
    is_name = re.fullmatch(_VARIABLE, name) is not None and name != "OMP_NUM_THREADS"
    return is_name and len(value) <= MAX_ITEM and value.isprintable()


@_refuse("cannot be an image")
def _image(image: str) -> bool:
    return not image.startswith("-") and image.isprintable()


_module = _refuse("cannot be the name of a module")(re.compile(_MODULE).fullmatch)
_pattern = _refuse("is no pattern of names in the working directory, such as *.log or run*/rates.csv")(is_pattern)
_program_name = _refuse("is no name: take 2 to 40 small letters, digits and dashes, a letter first")(
    re.compile(NAME).fullmatch
)


def _list(most: int, **items: Any) -> Any:
    return Field(max_length=most, json_schema_extra={"items": {"type": "string", **items}})


def _mapping(names: str, **values: Any) -> Any:
    described: Any = {"propertyNames": {"pattern": names}, "additionalProperties": {"type": "string", **values}}
    return Field(max_length=50, json_schema_extra=described)


_Argv = Annotated[list[str], _list(200, minLength=1, maxLength=MAX_ITEM), AfterValidator(_argv)]
Argv = Annotated[_Argv, _FROM_JSON]
Inputs = Annotated[dict[str, str], _mapping(FILE_NAME, maxLength=MAX_INPUT_CHARACTERS), _FROM_JSON, _input]
Decks = Annotated[dict[str, str], _mapping(FILE_NAME, maxLength=MAX_ITEM, pattern="^/"), _FROM_JSON, _deck]
Environment = Annotated[dict[str, str], _mapping(_VARIABLE, maxLength=MAX_ITEM), _FROM_JSON, _variable]
Modules = Annotated[list[str], _list(20, pattern=_MODULE), _FROM_JSON, _module]
Image = Annotated[str, Field(max_length=500), _image]
Patterns = Annotated[list[str], _list(20, pattern=WRITTEN_PATTERN), _FROM_JSON, _pattern]
Expression = Annotated[str, Field(max_length=500), _refuse("")(compiled)]


class Part(BaseModel):
    """The program of the ranks from one on: several programs in one world (MPMD)."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    from_rank: int = Field(ge=1, strict=True)
    program: _Argv = Field(json_schema_extra={"minItems": 1})


Placeholders = Annotated[
    dict[str, dict[str, Any]],
    _AsWritten(Annotated[dict[Annotated[str, _placeholder_name], Placeholder], Field(max_length=50)]),
    _FROM_JSON,
    Field(json_schema_extra={"propertyNames": {"pattern": PLACEHOLDER_NAME}}),
]
_Rows = list[dict[str, Any]]
Extractors = Annotated[_Rows, _AsWritten(Annotated[list[Extractor], Field(max_length=100)], "name"), _FROM_JSON]
Parts = Annotated[_Rows, _AsWritten(Annotated[list[Part], Field(max_length=16)], "from_rank"), _FROM_JSON]


class CommandParameters(Parameters):
    """Definition of a command; its placeholders become further parameters."""

    program: Argv = parameter([], "Program")
    """Program and arguments; {name} is a placeholder: ["moldy", "control", "--steps={steps}"]."""
    placeholders: Placeholders = parameter({}, "Placeholders")
    """By name: type (integer, number, text), default, minimum, maximum, choices, pattern, title, unit."""
    extract: Extractors = parameter([], "Figures of merit")
    """Each with name, unit, direction, and one of regex, json_pointer, csv_column; file, pick and factor."""
    inputs: Inputs = parameter({}, "Input files")
    """Texts by file name, written to the working directory; {name} of a placeholder is filled there too."""
    decks: Decks = parameter({}, "Input files by path")
    """Full paths on the first host by file name; read and filled when a trial starts."""
    threads: Annotated[int, NoBool] = parameter(1, "Threads", ge=1, le=1024)
    """Threads of each rank, as OMP_NUM_THREADS; can be swept."""
    success: Expression = parameter("", "Success")
    """Regular expression of a line that a good run prints; without such a line the trial has failed."""
    failure: Expression = parameter("", "Failure")
    """Regular expression of a line that a bad run prints; with such a line the trial has failed."""
    environment: Environment = parameter({}, "Environment")
    """Variables of every rank by name; {name} of a placeholder is filled there too."""
    modules: Modules = parameter([], "Modules")
    """Environment modules that every rank loads first, as “module load” on its host does."""
    container: Image = parameter("", "Container")
    """Image in which Apptainer runs the program on every host; empty: no container."""
    parts: Parts = parameter([], "Programs of further ranks")
    """Each with from_rank and program: ranks from there on run that one instead; all are one world."""
    keep: Patterns = parameter([], "Kept files")
    """Patterns of files that the program writes and the trial stores: *.log, run*/rates.csv."""

    def undefined(self) -> list[tuple[str, str]]:
        """Return (field, name) of placeholders that are used and not defined."""
        return [(field, name) for field, name in self._used() if name not in {*self.placeholders, RANKS}]

    def unused(self) -> frozenset[str]:
        """Return the placeholders without effect on the run; a deck may still use them."""
        in_texts = map(names_in_text, (*self.inputs.values(), *self.environment.values()))
        return frozenset(self.placeholders).difference((name for _, name in self._used()), *in_texts)

    def _used(self) -> list[tuple[str, str]]:
        parts = [item for part in self.parts for item in part["program"]]
        templates = {"program": self.program, "parts": parts, "decks": self.decks.values()}
        return [(field, name) for field, items in templates.items() for item in items for name in names_in(item)]


CONSTANTS: Final = tuple(name for name in CommandParameters.model_fields if name != "threads")
"""Parameters that define a command: all but those that can be swept."""


_DESCRIBING: Final = {"title", "summary", "retired"}
"""Fields of a registered program that change neither its runs nor its figures."""


class OnCluster(BaseModel):
    """Differences on one cluster."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    binary: Annotated[str, Field(max_length=MAX_ITEM), AfterValidator(lambda path: path and _argv([path])[0])] = ""
    """Replaces the first word of the program."""
    environment: Environment = {}
    modules: Modules | None = None
    container: Image | None = None
    decks: Decks = {}


class ProgramDefinition(CommandParameters):
    """Registered program: a command with a name and differences on clusters."""

    program: Argv = Field(title="Program", json_schema_extra={"minItems": 1})
    """Program and arguments of each rank."""
    name: Annotated[str, _program_name] = Field(json_schema_extra={"pattern": f"^{NAME}$"})
    """In specifications: workload: NAME."""
    title: str = Field("", max_length=80)
    summary: str = Field("", max_length=200)
    deciding: str = ""
    """The figure by which configurations are better or worse."""
    clusters: dict[str, OnCluster] = Field({}, max_length=100)
    retired: bool = Field(False, strict=True)
    """No new experiment can use it; those that did stay as they are."""

    @model_validator(mode="after")
    def _coherent(self) -> Self:
        if problems := list(dict.fromkeys(self._contradictions())):
            raise ValueError("\n".join(problems))
        return self

    def _contradictions(self) -> Iterator[str]:
        """Yield sentences on fields that do not fit each other, each after its field."""
        if "version" in self.placeholders:
            yield "placeholders: 'version' cannot be the name of a parameter: programs have versions"
        figures = [extractor["name"] for extractor in self.extract]
        if self.deciding and self.deciding not in figures:
            yield f"deciding: {self.deciding!r} is none of the figures: {', '.join(figures) or 'there are none'}"
        for _, name in (pair for cluster in ("", *self.clusters) for pair in self.on(cluster).undefined()):
            yield f"program: {{{name}}} is not defined: add a parameter of this name"
        for name in () if self.decks else sorted(self.unused()):
            yield f"placeholders: {name!r} changes nothing: nothing of the run has {{{name}}}"

    def on(self, cluster: str) -> ProgramDefinition:
        """Return the definition as it is on a cluster."""
        here = self.clusters.get(cluster, OnCluster())
        changes = {
            "program": [here.binary or self.program[0], *self.program[1:]],
            "environment": {**self.environment, **here.environment},
            "decks": {**self.decks, **here.decks},
        }
        others = here.model_dump(include={"modules", "container"}, exclude_none=True)
        return self.model_copy(update={**changes, **others})

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that validates to the same definition; defaults are left out."""
        return self.model_dump(mode="json", exclude_defaults=True)

    def runs_like(self, other: ProgramDefinition) -> bool:
        """Return whether ``other`` is the same run, however its output is read."""
        reading = {*READING, "deciding", *_DESCRIBING}
        return self.model_dump(exclude=reading) == other.model_dump(exclude=reading)

    def reads_like(self, other: ProgramDefinition) -> bool:
        """Return whether ``other`` gives the same figures of the same output."""
        return self.model_dump(exclude=_DESCRIBING) == other.model_dump(exclude=_DESCRIBING)
