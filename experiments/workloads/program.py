"""Programs that people registered: a command with a name, in versions. Pure; who stores them hands them to the registry.

What is run has a version, which is part of every configuration, so that a trial can be told and repeated as it was. How its output
is read has none: the latest definition reads the outputs of all versions.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Final, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model, field_validator, model_validator

from experiments.workloads.base import Parameters
from experiments.workloads.command import Command
from experiments.workloads.command_parameters import (
    MAX_INPUT_CHARACTERS,
    MODULE,
    VARIABLE,
    CommandParameters,
    Part,
    checked_binary,
    checked_decks,
    checked_environment,
    checked_image,
    checked_modules,
)
from experiments.workloads.extractors import Extractor
from experiments.workloads.kept_files import FILE_NAME, WRITTEN_PATTERN
from experiments.workloads.template import (
    MAX_ITEM,
    MOST_PLACEHOLDERS,
    MOST_WORDS,
    PLACEHOLDER_NAME,
    RANKS,
    Placeholder,
    names_in,
    with_placeholders,
)

NAME: Final = r"[a-z][a-z0-9-]{1,39}"
_DECKS: Final[dict[str, Any]] = {
    "propertyNames": {"pattern": FILE_NAME},
    "additionalProperties": {"type": "string", "pattern": "^/", "maxLength": MAX_ITEM},
}
_VARIABLES: Final[dict[str, Any]] = {
    "propertyNames": {"pattern": VARIABLE},
    "additionalProperties": {"type": "string", "maxLength": MAX_ITEM},
}
_READING: Final = frozenset({"extract", "success", "failure", "keep", "deciding", "title", "summary"})
"""Fields of a definition that change nothing of a run."""


class OnCluster(BaseModel):
    """What is other on one cluster."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    binary: Annotated[str, AfterValidator(checked_binary)] = Field(
        "", max_length=MAX_ITEM, description="In place of the first word of the program."
    )
    environment: Annotated[dict[str, str], AfterValidator(checked_environment)] = Field(
        {}, max_length=50, json_schema_extra=_VARIABLES
    )
    modules: Annotated[list[str], AfterValidator(checked_modules)] | None = Field(None, max_length=20)
    container: Annotated[str, AfterValidator(checked_image)] | None = None
    decks: Annotated[dict[str, str], AfterValidator(checked_decks)] = Field({}, json_schema_extra=_DECKS)


def _described(schema: dict[str, Any]) -> None:
    """Say in a JSON schema what the validators ask of a definition, as far as JSON schemas can."""
    fields = schema["properties"]
    schema["required"].append("program")
    word = {"type": "string", "minLength": 1, "maxLength": MAX_ITEM}
    part = Part.model_json_schema()
    part["properties"]["program"] |= {"maxItems": MOST_WORDS, "items": word}
    fields["program"] |= {"minItems": 1, "maxItems": MOST_WORDS, "items": word}
    fields["placeholders"] |= {
        "propertyNames": {"pattern": PLACEHOLDER_NAME},
        "additionalProperties": Placeholder.model_json_schema(),
        "maxProperties": MOST_PLACEHOLDERS,
    }
    fields["extract"]["items"] = Extractor.model_json_schema()
    fields["parts"]["items"] = part
    fields["keep"]["items"] |= {"pattern": WRITTEN_PATTERN}
    fields["decks"] |= _DECKS
    fields["inputs"] |= {
        "propertyNames": {"pattern": FILE_NAME},
        "additionalProperties": {"type": "string", "maxLength": MAX_INPUT_CHARACTERS},
    }
    fields["environment"] |= _VARIABLES
    fields["modules"]["items"] |= {"pattern": MODULE}


class ProgramDefinition(CommandParameters):
    """What a maintainer writes once: the fields of a command, a name, and what is other on which cluster."""

    model_config = ConfigDict(json_schema_extra=_described)

    name: str = Field(description="In specifications: workload: NAME.", json_schema_extra={"pattern": f"^{NAME}$"})
    title: str = Field("", max_length=80)
    summary: str = Field("", max_length=200)
    deciding: str = Field("", description="The figure by which configurations are better or worse.")
    clusters: dict[str, OnCluster] = Field({}, max_length=100)

    @field_validator("name")
    @classmethod
    def _is_name(cls, name: str) -> str:
        if not re.fullmatch(NAME, name):
            raise ValueError("a name has 2 to 40 small letters, digits and dashes, a letter first")
        return name

    @field_validator("placeholders")
    @classmethod
    def _none_is_ours(cls, placeholders: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        if "version" in placeholders:
            raise ValueError("'version' cannot be the name of a placeholder: programs have versions")
        return placeholders

    @model_validator(mode="after")
    def _coherent(self) -> Self:
        if not self.program:
            raise ValueError("program: names no program")
        figures = [each["name"] for each in self.extract]
        if self.deciding and self.deciding not in figures:
            raise ValueError(
                f"deciding: {self.deciding!r} is none of the figures: {', '.join(figures) or 'there are none'}"
            )
        known = {*self.placeholders, RANKS}
        elsewhere = (path for here in self.clusters.values() for path in here.decks.values())
        paths = [*self.decks.values(), *elsewhere]
        words = [*self.program, *paths, *(word for part in self.parts for word in part["program"])]
        if unknown := [name for word in words for name in names_in(word) if name not in known]:
            raise ValueError(f"program: {{{unknown[0]}}} is not defined under placeholders")
        workload = Command(self)
        if workload.unused:
            raise ValueError(
                f"placeholders: {min(workload.unused)!r} changes nothing: nothing of the run has {{{min(workload.unused)}}}"
            )
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that validates to the same definition; defaults are left out."""
        return self.model_dump(mode="json", exclude_defaults=True)

    def run_alike(self, other: ProgramDefinition) -> bool:
        """Return whether ``other`` is the same run, however its output is read."""
        return self.model_dump(exclude=set(_READING)) == other.model_dump(exclude=set(_READING))


class ProgramParameters(Parameters):
    """What every registered program has; its placeholders come besides."""

    threads: int = Field(
        1, ge=1, le=1024, title="Threads", description="Threads of each rank.", json_schema_extra={"unit": ""}
    )


class Program(Command):
    """A registered program in one of its versions. Submitters may run it: a maintainer said what is executed."""

    programs: ClassVar[Mapping[str, str]] = {}
    restricted = False
    reading = frozenset()
    brought = ("version",)
    constants = ("version",)
    pinned = ("version",)

    def __init__(
        self, versions: Mapping[int, ProgramDefinition], version: int | None = None, cluster: str = ""
    ) -> None:
        self._versions = versions
        latest = versions[max(versions)]
        self.version = max(versions) if version is None else version
        self.definition = _on_cluster(versions[self.version], cluster)
        self.slug = latest.name
        self.title = latest.title or latest.name
        self.summary = latest.summary
        super().__init__(self.definition)
        self.parameters_type = _parameters_of(self.definition, self.version, tuple(versions))
        self._read_as(latest)
        if latest.deciding:
            self.decides = f"{self.slug}.{latest.deciding}"

    def bind(self, parameters: Mapping[str, Any]) -> Self:
        """Return the version that these parameters name; without one, or with one that there is not, the latest."""
        version = parameters.get("version", self.version)
        if not isinstance(version, int) or version == self.version or version not in self._versions:
            return self
        return self._in_version(version)

    @functools.cache  # noqa: B019 - few programs with few versions, asked for with every value of a sweep
    def _in_version(self, version: int) -> Self:
        return type(self)(self._versions, version)

    @functools.cache  # noqa: B019
    def on(self, cluster: str) -> Self:
        return type(self)(self._versions, self.version, cluster) if cluster in self.definition.clusters else self

    @property
    def later_defaults(self) -> Mapping[str, Any]:
        return {}

    def _definition(self, parameters: Any) -> Any:
        return self.definition


def programs_from(definitions: Iterable[tuple[int, Mapping[str, Any]]]) -> dict[str, Program]:
    """Return the workloads by name out of stored (version, definition) rows."""
    by_name: dict[str, dict[int, ProgramDefinition]] = {}
    for version, stored in definitions:
        definition = ProgramDefinition.model_validate(stored)
        by_name.setdefault(definition.name, {})[version] = definition
    return {name: Program(versions) for name, versions in sorted(by_name.items())}


def _on_cluster(definition: ProgramDefinition, cluster: str) -> ProgramDefinition:
    here = definition.clusters.get(cluster)
    if here is None:
        return definition
    return definition.model_copy(
        update={
            "program": [here.binary or definition.program[0], *definition.program[1:]],
            "environment": {**definition.environment, **here.environment},
            "modules": definition.modules if here.modules is None else here.modules,
            "container": definition.container if here.container is None else here.container,
            "decks": {**definition.decks, **here.decks},
        }
    )


def _parameters_of(definition: ProgramDefinition, version: int, versions: tuple[int, ...]) -> type[Parameters]:
    """The parameters that people give: placeholders, threads, and which version of the program."""

    def is_known(wanted: int) -> int:
        if wanted not in versions:
            raise ValueError(f"has no version {wanted}, only {', '.join(map(str, sorted(versions)))}")
        return wanted

    described = "Of the registered program; a new one begins when what is run changes."
    threads = ProgramParameters.model_fields["threads"]
    base = create_model(
        "ProgramParameters",
        __base__=ProgramParameters,
        threads=(
            int,
            Field(
                definition.threads,
                ge=1,
                le=1024,
                title=threads.title,
                description=threads.description,
                json_schema_extra={"unit": ""},
            ),
        ),
        version=(
            Annotated[int, AfterValidator(is_known)],
            Field(version, title="Version", description=described, json_schema_extra={"unit": ""}),
        ),
    )
    placeholders = {name: Placeholder.model_validate(each) for name, each in definition.placeholders.items()}
    return with_placeholders(base, placeholders)
