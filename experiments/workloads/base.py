"""What a workload is: typed parameters -> argv and input files; output -> figures of merit. Pure: no process is started here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from experiments.errors import OutputError


class Parameters(BaseModel):
    """Base of a workload's typed parameters; `experiments.workloads.fields.parameter` makes their fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


Direction = Literal["lower", "higher", "neutral"]


@dataclass(frozen=True, slots=True)
class FigureOfMerit:
    """A workload's own metric. ``id`` is ``<workload>.<name_with_unit>``."""

    id: str
    label: str
    unit: str
    direction: Direction
    definition: str


FigureRow = tuple[str, str, str, Direction, str]
"""Name with its unit, label, unit, direction, definition."""


def figures_of(slug: str, rows: tuple[FigureRow, ...]) -> tuple[FigureOfMerit, ...]:
    """Return the figures of merit of a workload."""
    return tuple(
        FigureOfMerit(f"{slug}.{name}", label, unit, direction, definition)
        for name, label, unit, direction, definition in rows
    )


@dataclass(frozen=True, slots=True)
class Parsed:
    """What the output said: figures of merit by id, and tables for the trial page (name -> rows)."""

    figures: Mapping[str, float]
    tables: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    ran_with: Mapping[str, int] = field(default_factory=dict)
    """What the program itself says it ran with: ``ranks``, and parameters by name, in base units. Only what it prints."""

    def contradictions(self, asked: Mapping[str, Any]) -> Iterator[tuple[str, int, Any]]:
        """Yield (name, what ran, what was asked) if ``asked`` gives another value; 0 stands for what the ranks make of it."""
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


@dataclass(frozen=True, kw_only=True, eq=False)
class WorkloadDefinition:
    """A program that can be measured: built in, from a Python module, registered, or inline in a specification.

    Functions take the workload's typed parameters first and ``ranks``, the number of ranks, by name.
    """

    slug: str
    title: str
    summary: str
    programs: Mapping[str, str] = field(default_factory=dict)
    """Needed programs, each with the Debian package that holds it; a path may be a pattern."""
    python_modules: Mapping[str, str] = field(default_factory=dict)
    """Needed modules of the system's Python, each with the Debian package that holds it."""
    restricted: bool = False
    """Whether only the maintainers of a project may submit it, because its specification says what is executed."""
    registered: bool = False
    """Whether a maintainer registered it here."""

    parameters_type: type[Parameters]
    constants: tuple[str, ...] = ()
    """Names of the parameters that define the workload itself: they cannot be swept."""
    reading: frozenset[str] = frozenset()
    """Names of the constants that only say how the output is read: they are not part of a configuration, and need no new run."""
    brought: tuple[str, ...] = ()
    """Names of the parameters that tell one program of a user's own from another; empty for programs that come with Rankwire."""
    pinned: tuple[str, ...] = ()
    """Names of the constants whose default changes with time: a specification that is stored says them."""
    unused: frozenset[str] = frozenset()
    """Names of the parameters that change nothing of a run: a value for one of them is a mistake."""
    later_defaults: Mapping[str, Any] = field(default_factory=dict)
    """Defaults of the parameters that came when configurations were already stored: each means what ran before it existed."""
    variant: Callable[[Mapping[str, Any]], WorkloadDefinition | None] = lambda constants: None
    """(constants of a specification): the workload as they define it; None: as it is."""
    variant_on: Callable[[str], WorkloadDefinition | None] = lambda cluster: None
    """(name of a cluster): the workload as it is there, if it differs."""

    command: Callable[..., tuple[str, ...]]
    """The argv of one rank's program; it runs in a directory that holds ``files``."""
    check: Callable[..., None] = lambda parameters, *, ranks: None
    """Raises Mismatch if these parameters cannot run on ``ranks`` ranks."""
    files: Callable[..., Mapping[str, str]] = lambda parameters, *, ranks: {}
    """The texts of the input files by name."""
    decks: Callable[..., Mapping[str, str]] = lambda parameters, *, ranks: {}
    """The paths of further input files on the first host by the names that they get; their texts go to ``filled``."""
    filled: Callable[..., Mapping[str, str]] = lambda parameters, texts, *, ranks: texts
    """(parameters, texts): the texts of the ``decks`` as a run reads them. Raises Mismatch for a parameter that changes nothing of it."""
    environment: Callable[..., Mapping[str, str]] = lambda parameters, *, ranks: {}
    """The variables that every rank's program has besides."""
    threads: Callable[[Any], int] = lambda parameters: 1
    """How many threads each rank has."""
    estimate_s: Callable[..., float]
    """A rough elapsed time in seconds on an unlimited link, used only until there are past trials."""
    bottleneck_bytes: Callable[..., float] = lambda parameters, *, ranks: 0.0
    """Roughly how many bytes one host's port must carry: on a limited link they take their time as well."""

    parse: Callable[[str, Mapping[str, str]], Parsed]
    """(output, files): what a finished run printed and wrote (``files``: those of ``outputs`` that exist, by name).

    Raises OutputError if it is not what a good run prints.
    """
    outputs: tuple[str, ...] = ()
    """Names and patterns of the text files that a run writes beside its standard output; they are parsed and kept."""
    keeps: tuple[str, ...] = ()
    """Patterns (as of a shell, `kept_files`) of further files that a run writes; they are kept."""
    curve: Callable[[Mapping[str, Sequence[Mapping[str, Any]]]], list[tuple[int, float]]] = lambda tables: []
    """(tables of a run): (message size in bytes, transfer time in s), for workloads whose tables hold such a curve."""

    figures: tuple[FigureOfMerit, ...]
    decides: str = "elapsed_s"
    """Metric by which configurations are better or worse."""
    own_time: OwnTime | None = None
    breakdown: tuple[str, ...] = ()
    """Figures, s: the parts of the program's time that it prints itself."""
    load_test: LoadTest | None = None
    phases: Phases | None = None
    treatments: tuple[str, ...] = ()
    """Numeric parameters that are settings to choose among; other numbers say how large the problem or the load is."""
    ranks_alike: bool = True
    """All ranks have the same work to do; False for a server and its clients."""
    gflops: str | None = None
    """Figure in GFLOP/s that a theoretical peak, a price and a power can be held against."""

    def bind(self, constants: Mapping[str, Any]) -> WorkloadDefinition:
        """Return this workload as the constants of a specification define it: most are the same for all."""
        return self.variant(constants) or self

    def on(self, cluster: str) -> WorkloadDefinition:
        """Return this workload as it is on the cluster of this name."""
        return self.variant_on(cluster) or self

    def with_own_program(self) -> WorkloadDefinition:
        """Return this workload with constants that name a program on the hosts, which only maintainers may give."""
        own = replace(self, programs={}, restricted=True, brought=self.constants)
        return replace(self, variant=lambda given: own if any(given.get(name) for name in own.constants) else None)

    def read(self, output: str, files: Mapping[str, str], asked: Mapping[str, Any]) -> Parsed:
        """Parse, and compare what the program says it ran with against ``asked``: parameters by name, and ``ranks``.

        Raise OutputError if it ran with something else, and as ``parse`` does.
        """
        parsed = self.parse(output, files)
        for name, ran, wanted in parsed.contradictions(asked):
            raise OutputError(f"its output says that it ran with {name} {ran}, and {name} {wanted} was asked for")
        return parsed

    def outside_its_work(self, elapsed_s: float, figures: Mapping[str, float]) -> dict[str, float]:
        """Return start-up and end of a run of ``elapsed_s`` by metric identifier, if its output shows them."""
        own = figures.get(self.own_time.time) if self.own_time is not None else None
        if own is None or not 0 <= own <= elapsed_s:
            return {}  # a program that calls its work longer than its launch keeps another time
        seconds = elapsed_s - own
        return {"start_end_s": seconds, "start_end_share": seconds / elapsed_s if elapsed_s else 0.0}
