"""Records of a bundle; bounds are those of the database columns."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    RootModel,
    StringConstraints,
    ValidationError,
)

from experiments.common.storable import MAX_ITEMS
from experiments.errors import BadBundle
from experiments.exchange import record_schemas
from experiments.exchange.record_schemas import Items

FORMAT: Final = "rankwire-bundle/1"
_Hash = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
_Slug = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,80}$")]
_MetricName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:/@+-]{0,79}$")]
_Measured = Annotated[record_schemas.Finite, Field(strict=True)]  # neither true nor a text
_Line = Annotated[str, StringConstraints(max_length=200)]
_Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
Moment = Annotated[AwareDatetime, Field(ge=datetime(1970, 1, 1, tzinfo=UTC), lt=datetime(2200, 1, 1, tzinfo=UTC))]
"""A time that every zone, PostgreSQL and Python can hold."""


def _distinct(values: list[str]) -> list[str]:
    if len(set(values)) < len(values):
        raise ValueError("one of them is there twice")
    return values


_Directories = Annotated[Items[_Line], AfterValidator(_distinct)]
_R = TypeVar("_R", bound=BaseModel)
Captures = Literal["none", "headers", "all"]
CAPTURES: Final[tuple[Captures, ...]] = ("none", "headers", "all")
TRIAL_FIELDS: Final = (
    *("kind", "repetition", "attempt", "position", "version", "superseded", "state"),
    *("queued_at", "preparing_at", "running_at", "analysing_at", "ended_at", "message", "traceback", "command"),
    *("conditions", "certificate", "trust", "trust_reasons", "not_available", "tables"),
)
EXPERIMENT_FIELDS: Final = (
    *("uid", "slug", "name", "workload", "version", "specification", "specification_hash"),
    *("tags", "source", "published", "created_at", "origin"),
)
"""Fields of a trial and of an experiment that their records have under the same names."""
OVER: Final = ("finished", "failed", "errored", "cancelled", "lost")


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class InstallationRecord(_Record):
    """A Rankwire that measured results or passed them on."""

    uid: uuid.UUID
    name: _Line


class Contents(_Record):
    """``rankwire.json``: the contents and the maker of the bundle."""

    format: Literal["rankwire-bundle/1"]
    installation: InstallationRecord
    written_at: Moment
    written_by: _Line
    licence: Annotated[str, StringConstraints(max_length=2000)]
    captures: Captures
    anonymised: bool
    experiments: Annotated[_Directories, Field(min_length=1, max_length=20)]
    """Their directories."""


class ClusterRecord(_Record):
    """A cluster on which trials ran, without its access."""

    slug: _Slug
    name: Annotated[str, StringConstraints(max_length=120)]
    kind: _Slug
    facts: record_schemas.ClusterFacts
    elsewhere: bool


class VersionRecord(_Record):
    number: Annotated[int, Field(ge=1, le=2**31 - 1)]
    specification: record_schemas.Specification
    hash: _Hash
    created_at: Moment


class RoundRecord(_Record):
    """A round of the experiment's goal with its decision."""

    number: Annotated[int, Field(ge=1, le=2**31 - 1)]
    version: _Count
    seed: _Count
    repetitions: dict[_Hash, _Count]
    queued: _Count
    phase: Literal["", "search", "confirm"] = ""
    why: str
    started_at: Moment
    outcome: Literal[
        "continue", "answered", "precise", "at_most", "undecided", "budget", "refused", "no_result", "stopped", "error"
    ]
    reason: str
    numbers: Items[record_schemas.Facts]
    decided_at: Moment


class ConfigurationRecord(_Record):
    hash: _Hash
    parameters: record_schemas.Parameters
    hosts: _Count
    ranks: _Count
    position: _Count
    in_design: bool


class ExperimentRecord(_Record):
    """``experiment.json``: specification and cluster; its trials are other files."""

    uid: uuid.UUID
    slug: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,100}$")]
    name: Annotated[str, StringConstraints(min_length=1, max_length=120)]
    workload: Annotated[str, StringConstraints(min_length=1, max_length=80)]
    cluster: _Slug | None
    clusters: Annotated[Items[ClusterRecord], Field(max_length=50)]
    version: Annotated[int, Field(ge=1, le=2**31 - 1)]
    specification: record_schemas.Specification
    specification_hash: _Hash
    versions: Annotated[Items[VersionRecord], Field(max_length=10_000)]
    configurations: Annotated[Items[ConfigurationRecord], Field(max_length=100_000)]
    rounds: Annotated[Items[RoundRecord], Field(max_length=10_000)] = []
    """Decided rounds of its goal."""
    tags: Annotated[Items[_Line], Field(max_length=MAX_ITEMS)]
    source: record_schemas.ShortFacts
    published: bool
    owner: _Line
    created_at: Moment
    origin: record_schemas.ShortFacts
    """Origin of an imported experiment; empty for one that was measured here."""
    trials: Annotated[_Directories, Field(max_length=10_000)]
    """Their directories, in the order of the experiment."""


class FileRecord(_Record):
    """A file of a trial; ``left_out`` says why it is not in the bundle."""

    kind: Literal["stdout", "stderr", "capture", "analysis", "input", "samples", "other"]
    name: Annotated[str, StringConstraints(min_length=1, max_length=120)]
    path: Annotated[str, StringConstraints(min_length=1, max_length=300)]
    """Within the directory of the trial."""
    size_bytes: Annotated[int, Field(ge=0, le=2**62)]
    sha256: _Hash
    left_out: Annotated[str, StringConstraints(max_length=200)] = ""
    changed: Annotated[str, StringConstraints(max_length=200)] = ""
    """Difference from the trial's file; size and hash are those of the file in the bundle."""
    original_sha256: _Hash | None = None
    """Hash of the trial's file, if that differs."""


class EnvironmentRecord(RootModel[record_schemas.Facts]):
    """``environments/HASH.json``: recorded facts of hosts and programs."""


class TrialRecord(_Record):
    """``trial.json``: one trial with all measurements."""

    uid: uuid.UUID
    configuration: _Hash
    cluster: _Slug | None
    kind: Literal["measured", "warmup", "control", "ideal", "search"]
    repetition: _Count
    attempt: _Count
    position: _Count
    version: _Count
    superseded: bool
    state: Literal["finished", "failed", "errored", "cancelled", "lost"]
    queued_at: Moment
    preparing_at: Moment | None
    running_at: Moment | None
    analysing_at: Moment | None
    ended_at: Moment | None
    message: Annotated[str, StringConstraints(max_length=20_000)]
    traceback: str
    command: Items[str]
    conditions: record_schemas.Conditions
    certificate: record_schemas.Certificate
    trust: Literal["", "good", "degraded", "unusable"]
    trust_reasons: Items[str]
    not_available: dict[str, str]
    tables: record_schemas.Tables
    environment: _Hash | None
    measurements: dict[Literal["all", "mpi"], Annotated[dict[_MetricName, _Measured], Field(max_length=5000)]]
    files: Annotated[Items[FileRecord], Field(max_length=1000)]


def trial_uid(experiment: uuid.UUID, configuration: str, kind: str, repetition: int, attempt: int) -> uuid.UUID:
    """Return the identity of a trial, which is the same in every installation."""
    return uuid.uuid5(experiment, f"{configuration}/{kind}/{repetition}/{attempt}")


def checked(kind: type[_R], data: Any, refusal: str) -> _R:
    """Return the record in ``data``. Raise BadBundle that begins with ``refusal``."""
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(map(str, first["loc"]))
        raise BadBundle(f"{refusal}: {path or 'as a whole'}: {first['msg']}.") from None
    except RecursionError:
        raise BadBundle(f"{refusal}: it is nested too deeply.") from None
