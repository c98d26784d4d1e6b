"""Fields of a specification."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, FailFast, Field, ValidationInfo, WithJsonSchema, field_validator

from experiments.specification.expressions import Expression
from experiments.specification.goal import MOST_REPETITIONS, Goal, RepetitionRange, Repetitions
from experiments.specification.parameters import (
    RANKS,
    Capture,
    Count,
    Duration,
    Link,
    Part,
    canonical,
    dimension_of,
    is_text,
    known_parameters,
)
from experiments.specification.placement import WantedBind, WantedDistribution
from experiments.specification.ranges import as_written, expand_values
from experiments.specification.transport import AS_CLUSTER, TransportOrCluster, as_swept
from experiments.specification.tree import Vocabulary

_NOT_BLANK: Final[dict[str, Any]] = {"pattern": r"\S"}
_MOST_REPETITIONS: Final = 1000
EACH: Final = "each"
"""Control runs: one for each repetition."""


def _controls(value: Any) -> Any:
    """Return ``each``, which ``true`` means, or a number of control runs."""
    if isinstance(value, bool):
        return EACH if value else 0
    if value != EACH and not (isinstance(value, int) and 0 <= value <= _MOST_REPETITIONS):
        raise ValueError(
            f"must be true or each (one for each repetition), false, or a number up to {_MOST_REPETITIONS}"
        )
    return value


_Controls = Annotated[
    Literal["each"] | int,
    BeforeValidator(_controls),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": [True, False, EACH]},
                {"type": "integer", "minimum": 0, "maximum": _MOST_REPETITIONS},
            ]
        }
    ),
]


def _as_list_or_range(written: Any) -> Any:
    """Return a mapping as a list or a range; one that is wrong, or explores, stays."""
    if not isinstance(written, dict) or "explore" in written:
        return written
    try:
        return as_written(written)
    except ValueError:
        return written  # reported at the parameter


class ExperimentSpec(Part):
    """One version of an experiment. Field descriptions are the help texts of the form."""

    name: str = Field(min_length=1, max_length=120, json_schema_extra=_NOT_BLANK)
    description: str = Field("", max_length=4000)
    tags: tuple[Annotated[str, Field(min_length=1, max_length=40)], ...] = ()
    workload: str = Field(json_schema_extra=_NOT_BLANK)
    parameters: dict[str, Any] = Field(default_factory=dict)
    """Parameters that stay the same in every trial."""
    sweep: dict[str, Any] = Field(default_factory=dict)
    """Parameters that vary: a list or a range for each."""
    zip: Annotated[tuple[Annotated[tuple[str, ...], FailFast()], ...], FailFast()] = ()
    """Groups of swept parameters that advance together."""
    where: str | None = None
    """Keep only the configurations for which this holds, as in ranks <= 16 and link.delay < 8 ms."""
    scaling: Literal["strong", "weak", "throughput"] = "strong"
    grows_with_hosts: str | None = None
    """Weak scaling: the parameter that grows with the hosts."""
    deciding: str | None = None
    """The metric by which configurations are better or worse, as water.ns_per_day; otherwise the workload's own."""
    cluster: str = Field("testbed", json_schema_extra=_NOT_BLANK)
    transport: TransportOrCluster = AS_CLUSTER
    """Network of the messages: cluster (its setting), native (the MPI library chooses), tcp, or NAME: VARIABLE=value --option."""
    bind: WantedBind = AS_CLUSTER
    """Cores between which the system may move a rank; default: as the MPI library does."""
    distribution: WantedDistribution = AS_CLUSTER
    """Order in which hosts get ranks."""
    link: Link = Link()
    certificate: Literal["degrade", "require", "skip"] = "degrade"
    """If the link differs from the requested one: trials are degraded, or refused; or the link is not measured."""
    capture: Capture = Capture()  # type: ignore[call-arg]  # pydantic's plugin is not loaded beside Django's
    profile: Literal["none", "summary", "trace"] = "summary"
    """Time inside MPI: not counted, counted in every rank, or with every call in a bounded trace too."""
    goal: Goal | None = None
    """When rounds of trials end; without it: exactly the trials of the design."""
    repetitions: Repetitions = 3
    warmups: Count = Field(0, ge=0, le=100)
    control: _Controls = 0
    """Control runs without capture per configuration, to measure the capture overhead: true for one per repetition, or a number."""
    ideal: bool = False
    """One ideal-network run per configuration, without limits and delay, to measure transfer and serialisation."""
    order: Literal["sequential", "interleaved", "randomised"] = "interleaved"
    seed: Count = Field(2007, ge=0, le=2**31 - 1)
    time_limit_s: Annotated[Duration, Field(gt=0, le=7 * 86_400)] = 600.0
    allocation: Literal["cluster", "per size", "per experiment"] = "cluster"
    """If a scheduler allots hosts: a job for successive trials of one size, or one for all trials."""
    retries: Count = Field(1, ge=0, le=10)
    """New attempts for a trial whose worker was lost."""
    disturbed: Literal["repeat", "keep"] = "repeat"
    """A trial that other load disturbed: it is repeated once, or only marked."""

    @field_validator("name", "workload", "cluster")
    @classmethod
    def _no_blank(cls, value: str, info: ValidationInfo) -> str:
        if not value.strip():
            raise ValueError(f"is empty: enter a {info.field_name}")
        return value.strip()

    @field_validator("sweep")
    @classmethod
    def _in_usual_form(cls, sweep: dict[str, Any]) -> dict[str, Any]:
        plain = {name: _as_list_or_range(written) for name, written in sweep.items()}
        return {name: as_swept(written) if name == "transport" else written for name, written in plain.items()}

    @property
    def controls(self) -> int:
        """Return the control runs of a configuration."""
        return self.at_least if self.control == EACH else self.control

    @property
    def at_least(self) -> int:
        """Return the repetitions of each configuration in the design, the first round."""
        return self.repetitions.at_least if isinstance(self.repetitions, RepetitionRange) else self.repetitions

    @property
    def at_most(self) -> int:
        """Return the most repetitions that the rounds of a goal give a configuration."""
        if isinstance(self.repetitions, RepetitionRange):
            return self.repetitions.at_most
        return max(self.repetitions, MOST_REPETITIONS)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that ``parse`` reads to an equal one; defaults are left out."""
        return self.model_dump(mode="json", exclude_defaults=True)

    def values(self) -> dict[str, list[Any]]:
        """Return every swept parameter with its canonical values."""
        return {
            name: [canonical(self.workload, name, v, self.parameters) for v in self.swept(name)] for name in self.sweep
        }

    def swept(self, name: str) -> list[Any]:
        """Return the written values of a swept parameter. Raise ValueError."""
        written = self.sweep[name]
        if isinstance(written, dict) and "explore" in written and (name != "hosts" or written["explore"] is not True):
            raise ValueError("explore: true is for hosts; for other values choose the goal optimise")
        return expand_values(self.sweep[name], text=is_text(self.workload, name, self.parameters))

    @property
    def explores(self) -> bool:
        """Return whether rounds choose the numbers of hosts out of a range."""
        written = self.sweep.get("hosts")
        return isinstance(written, dict) and "explore" in written

    @property
    def optimised(self) -> str:
        """Return the metric whose best settings are searched, or ""."""
        return (self.goal.optimise if self.goal is not None else None) or ""

    def known_parameters(self) -> set[str]:
        """Return the names that ``parameters``, ``sweep`` and ``zip`` may use."""
        return known_parameters(self.workload, self.parameters)

    def condition(self) -> Expression | None:
        """Return the filter, which may use ``ranks`` too. Raise ValueError."""
        if self.where is None:
            return None
        names = self.known_parameters()
        kinds = {name: dimension_of(self.workload, name, self.parameters) for name in names}
        vocabulary = Vocabulary(
            all_names=names | {RANKS},
            dimensions={name: kind for name, kind in kinds.items() if kind is not None},
            words={name for name in names if is_text(self.workload, name, self.parameters)},
            as_stored=self._as_stored,
        )
        return Expression(self.where, vocabulary)

    def _as_stored(self, name: str, word: str) -> str:
        """Return the canonical form of a compared word; an impossible one stays."""
        try:
            return str(canonical(self.workload, name, word, self.parameters))
        except ValueError:
            return word
