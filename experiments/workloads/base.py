"""What a workload is: typed parameters -> argv and input files; output -> figures of merit. Pure: no process is started here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict

from experiments.errors import OutputError


class Parameters(BaseModel):
    """Base of a workload's typed parameters. ``json_schema_extra={"unit": ...}`` names a field's unit."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class FigureOfMerit:
    """A workload's own metric. ``id`` is ``<workload>.<name_with_unit>``."""

    id: str
    label: str
    unit: str
    direction: Literal["lower", "higher", "neutral"]
    definition: str


@dataclass(frozen=True, slots=True)
class Parsed:
    """What the output said: figures of merit by id, and tables for the trial page (name -> rows)."""

    figures: Mapping[str, float]
    tables: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    ran_with: Mapping[str, int] = field(default_factory=dict)
    """What the program itself says it ran with: ``ranks``, and parameters by name, in base units. Only what it prints."""

    def contradictions(self, asked: Mapping[str, Any]) -> Iterator[tuple[str, int, Any]]:
        """Yield (name, what ran, what was asked) where ``asked`` gives another value; 0 stands for what the ranks make of it."""
        for name, ran in self.ran_with.items():
            if asked.get(name) and asked[name] != ran:
                yield name, ran, asked[name]


@dataclass(frozen=True, slots=True)
class LoadTest:
    """Which of its figures say how a service bears load: what an operating envelope is made of."""

    load: str
    """Parameter that counts the jobs at the same time."""
    wall: str
    """Figure: wall time of a job, s."""
    uses: Mapping[str, str]
    """Figures by resource: share of it in use, 0 to 1, at its largest."""
    throughput: str
    """Figure in bit/s: with the bandwidth of the link, the use of the link."""
    same_processors: tuple[str, ...] = ()
    """Of the resources those that are one where all hosts are virtual ones of one machine."""


@dataclass(frozen=True, slots=True)
class Phases:
    """Which of its figures part a run into a first step per node that loads data, and later ones that have it."""

    nodes: str
    """Figure: number of nodes."""
    first: str
    """Figure: time of the first step, s."""
    later: str
    """Figure: time of a later step, s."""
    run: str
    """Figure: time of the whole run, s."""
    aggregate: str
    """Figure: bandwidth of all nodes together, B/s."""
    steps: str
    """Parameter that counts the steps of a node."""
    method: str
    """Parameter whose values are compared."""
    baseline: str
    """Value of it that the others are compared with."""
    utilisation: str
    """Figure: share of the nodes' time in which they work, 0 to 1."""
    printed_faster: str
    """Metric that publications print instead of times: how many times shorter the run is than the baseline's."""
    printed_more_percent: str
    """Metric that publications print instead of bandwidths: how much more they are than the baseline's, %."""


@dataclass(frozen=True, slots=True)
class OwnTime:
    """Which of its figures say how long the work itself took, without starting and ending the program."""

    time: str
    """Figure, s."""
    cpu_percent: str = ""
    """Figure: CPU time of a rank over it, mean of the ranks, %; empty where the program prints none."""


class Mismatch(ValueError):
    """Values that are each allowed but do not go together; ``parameter`` is the one to change."""

    def __init__(self, parameter: str, sentence: str) -> None:
        self.parameter = parameter
        super().__init__(sentence)


class Workload(ABC):
    """A program that can be measured."""

    slug: str
    title: str
    summary: str
    programs: ClassVar[Mapping[str, str]]
    """Needed programs, each with the Debian package that holds it; a path may be a pattern."""
    python_modules: ClassVar[Mapping[str, str]] = {}
    """Needed modules of the system's Python, each with the Debian package that holds it."""
    restricted: ClassVar[bool] = False
    """Whether only the maintainers of a project may submit it, because its specification says what is executed."""
    parameters_type: type[Parameters]
    figures: tuple[FigureOfMerit, ...]
    keeps: tuple[str, ...] = ()
    """Patterns (as of a shell, `kept_files`) of further files that a run writes; they are kept."""
    outputs: tuple[str, ...] = ()
    """Names and patterns of the text files that a run writes beside its standard output; they are parsed and kept."""

    decides: str = "elapsed_s"
    """Metric by which configurations are better or worse."""
    own_time: ClassVar[OwnTime | None] = None
    load_test: ClassVar[LoadTest | None] = None
    treatments: ClassVar[tuple[str, ...]] = ()
    """Numeric parameters that are settings to choose among; other numbers say how large the problem or the load is."""
    phases: ClassVar[Phases | None] = None
    ranks_alike: ClassVar[bool] = True
    """All ranks have the same work to do; False for a server and its clients."""
    gflops: ClassVar[str | None] = None
    """Figure in GFLOP/s that a theoretical peak, a price and a power can be held against."""

    constants: tuple[str, ...] = ()
    """Names of the parameters that define the workload itself: they cannot be swept."""
    reading: ClassVar[frozenset[str]] = frozenset()
    """Names of the constants that only say how the output is read: no part of what a configuration is, and changed without a new run."""
    brought: ClassVar[tuple[str, ...]] = ()
    """Names of the parameters that tell one program of people's own from another; empty for programs that come with Rankwire."""
    pinned: ClassVar[tuple[str, ...]] = ()
    """Names of the constants whose default changes with time: a specification that is stored says them."""
    unused: frozenset[str] = frozenset()
    """Names of the parameters that change nothing of a run: a value for one of them is a mistake."""

    def bind(self, parameters: Mapping[str, Any]) -> Self:
        """Return this workload as the constants of a specification define it: most are the same for all."""
        return self

    def on(self, cluster: str) -> Self:
        """Return this workload as it is on the cluster of this name: programs lie elsewhere on every one."""
        return self

    @property
    def later_defaults(self) -> Mapping[str, Any]:
        """Defaults of the parameters that came when configurations were already stored: each means what ran before it existed."""
        return {}

    def check(self, parameters: Any, *, ranks: int) -> None:  # noqa: B027 (most run on any number of ranks)
        """Raise Mismatch when these parameters cannot run on ``ranks`` ranks."""

    @abstractmethod
    def command(self, parameters: Any, *, ranks: int) -> tuple[str, ...]:
        """Return the argv of one rank's program; it runs in a directory that holds ``files``."""

    def files(self, parameters: Any, *, ranks: int) -> Mapping[str, str]:
        """Return the input files by name."""
        return {}

    def decks(self, parameters: Any, *, ranks: int) -> Mapping[str, str]:
        """Return the paths of further input files on the first host by the names that they get; their texts go to ``filled``."""
        return {}

    def filled(self, parameters: Any, texts: Mapping[str, str], *, ranks: int) -> Mapping[str, str]:
        """Return the texts of the ``decks`` as a run reads them. Raise Mismatch for a parameter that changes nothing of it."""
        return texts

    def environment(self, parameters: Any, *, ranks: int) -> Mapping[str, str]:
        """Return the variables that every rank's program has besides."""
        return {}

    def threads(self, parameters: Any) -> int:
        """Return how many threads each rank has."""
        return 1

    @abstractmethod
    def parse(self, output: str, files: Mapping[str, str]) -> Parsed:
        """Return what a finished run printed and wrote (``files``: those of ``outputs`` that exist, by name).

        Raise OutputError when it is not what a good run prints.
        """

    def read(self, output: str, files: Mapping[str, str], asked: Mapping[str, Any]) -> Parsed:
        """Parse, and hold what the program says it ran with against ``asked``: parameters by name, and ``ranks``.

        Raise OutputError where it ran with something else, and as ``parse`` does.
        """
        parsed = self.parse(output, files)
        for name, ran, wanted in parsed.contradictions(asked):
            raise OutputError(f"its output says that it ran with {name} {ran}, and {name} {wanted} was asked for")
        return parsed

    def outside_its_work(self, elapsed_s: float, figures: Mapping[str, float]) -> dict[str, float]:
        """Return start-up and end of a run that was launched for ``elapsed_s``, by identifier of the catalogue, where its output tells."""
        own = figures.get(self.own_time.time) if self.own_time is not None else None
        if own is None or not 0 <= own <= elapsed_s:
            return {}  # a program that calls its work longer than its launch keeps another time
        seconds = elapsed_s - own
        return {"start_end_s": seconds, "start_end_share": seconds / elapsed_s if elapsed_s else 0.0}

    def curve(self, tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[tuple[int, float]]:
        """Return (message size in bytes, transfer time in s) of one run, for workloads whose tables hold such a curve."""
        return []

    @abstractmethod
    def estimate_s(self, parameters: Any, *, ranks: int) -> float:
        """Return a rough elapsed time in seconds on an unlimited link, used only until there are past trials."""

    def bottleneck_bytes(self, parameters: Any, *, ranks: int) -> float:
        """Return roughly how many bytes one host's port must carry: on a limited link they take their time as well."""
        return 0.0
