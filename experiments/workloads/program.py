"""Programs that users registered: a command with a name, in versions. Pure; `experiments.registered` hands them to the registry.

What is run has a version, which is part of every configuration, so that a trial can be shown and repeated as it was. How its output
is read has none: the latest definition reads the outputs of all versions.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model, field_validator, model_validator

from experiments.workloads.base import Parameters, WorkloadDefinition
from experiments.workloads.command import command_workload, undefined, unused
from experiments.workloads.command_parameters import (
    Argv,
    Binary,
    CommandParameters,
    Decks,
    Environment,
    Image,
    Modules,
)
from experiments.workloads.fields import parameter
from experiments.workloads.template import with_placeholders

NAME: Final = r"[a-z][a-z0-9-]{1,39}"
_READING: Final = frozenset({"extract", "success", "failure", "keep", "deciding", "title", "summary"})
"""Fields of a definition that change nothing of a run."""


class OnCluster(BaseModel):
    """What differs on one cluster."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    binary: Binary = Field(default="", description="In place of the first word of the program.")
    environment: Environment = {}
    modules: Modules | None = None
    container: Image | None = None
    decks: Decks = {}


class ProgramDefinition(CommandParameters):
    """What a maintainer writes once: the fields of a command, a name, and what differs on a cluster."""

    program: Argv = Field(
        title="Program", description="Program and arguments of each rank.", json_schema_extra={"minItems": 1}
    )
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

    @model_validator(mode="after")
    def _coherent(self) -> Self:
        if "version" in self.placeholders:
            raise ValueError("placeholders: 'version' cannot be the name of a placeholder: programs have versions")
        figures = [each["name"] for each in self.extract]
        if self.deciding and self.deciding not in figures:
            raise ValueError(
                f"deciding: {self.deciding!r} is none of the figures: {', '.join(figures) or 'there are none'}"
            )
        for _, name in (each for cluster in ("", *self.clusters) for each in undefined(self.on(cluster))):
            raise ValueError(f"program: {{{name}}} is not defined under placeholders")
        for name in () if self.decks else sorted(unused(self)):
            raise ValueError(f"placeholders: {name!r} changes nothing: nothing of the run has {{{name}}}")
        return self

    def on(self, cluster: str) -> ProgramDefinition:
        """Return the definition as it is on a cluster."""
        here = self.clusters.get(cluster, OnCluster())
        return self.model_copy(
            update={
                "program": [here.binary or self.program[0], *self.program[1:]],
                "environment": {**self.environment, **here.environment},
                "modules": self.modules if here.modules is None else here.modules,
                "container": self.container if here.container is None else here.container,
                "decks": {**self.decks, **here.decks},
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that validates to the same definition; defaults are left out."""
        return self.model_dump(mode="json", exclude_defaults=True)

    def runs_like(self, other: ProgramDefinition) -> bool:
        """Return whether ``other`` is the same run, however its output is read."""
        return self.model_dump(exclude=set(_READING)) == other.model_dump(exclude=set(_READING))


def programs_from(definitions: Iterable[tuple[int, ProgramDefinition]]) -> dict[str, WorkloadDefinition]:
    """Return the workloads by name out of (version, definition) rows."""
    by_name: dict[str, dict[int, ProgramDefinition]] = {}
    for version, definition in definitions:
        by_name.setdefault(definition.name, {})[version] = definition
    return {name: registered_workload(versions) for name, versions in sorted(by_name.items())}


def registered_workload(versions: Mapping[int, ProgramDefinition]) -> WorkloadDefinition:
    """Return a registered program in its latest version; bound to the constant ``version`` it is another one.

    Submitters may run it: a maintainer defined what is executed.
    """
    latest = versions[max(versions)]

    @functools.cache
    def workload(version: int, cluster: str = "") -> WorkloadDefinition:
        definition = versions[version]

        def bound(constants: Mapping[str, Any]) -> WorkloadDefinition | None:
            wanted = constants.get("version", version)
            return workload(wanted) if isinstance(wanted, int) and wanted in versions else None

        return command_workload(
            definition.on(cluster),
            slug=latest.name,
            output=latest,
            deciding=latest.deciding,
            title=latest.title or latest.name,
            summary=latest.summary,
            registered=True,
            parameters_type=_parameters_of(definition, version, tuple(versions)),
            constants=("version",),
            brought=("version",),
            pinned=("version",),
            variant=bound,
            variant_on=lambda cluster: workload(version, cluster) if cluster in definition.clusters else None,
        )

    return workload(max(versions))


def _parameters_of(definition: ProgramDefinition, version: int, versions: tuple[int, ...]) -> type[Parameters]:
    """Return the parameters that users give: placeholders, threads, and the version of the program."""

    def is_known(wanted: int) -> int:
        if wanted not in versions:
            raise ValueError(f"has no version {wanted}, only {', '.join(map(str, sorted(versions)))}")
        return wanted

    described = "Of the registered program; a new one begins when what is run changes."
    threads = parameter(definition.threads, "Threads", "Threads of each rank.", ge=1, le=1024)
    base = create_model(
        "ProgramParameters",
        __base__=Parameters,
        threads=(int, threads),
        version=(Annotated[int, AfterValidator(is_known)], parameter(version, "Version", described)),
    )
    return with_placeholders(base, definition.placeholders)
