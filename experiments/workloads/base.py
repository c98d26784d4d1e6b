"""Definitions of workloads: typed parameters give commands, outputs give figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict

from analysis import numbers
from experiments.common import budget
from experiments.errors import OutputError
from experiments.workloads.outputs import Line, require_few_lines

READING_CPU_S: Final = 60.0
"""Limit of the CPU time of reading an output, with all figures; one of 16 MiB takes a few seconds."""


class Parameters(BaseModel):
    """Base of typed parameters; `experiments.workloads.fields.parameter` makes fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


Direction = Literal["lower", "higher", "neutral"]
FigureRow = tuple[str, str, str, Direction, str]
"""Name with its unit, label, unit, direction, definition."""


@dataclass(frozen=True, slots=True)
class FigureOfMerit:
    """A workload's own metric. ``id`` is ``<workload>.<name_with_unit>``."""

    id: str
    label: str
    unit: str
    direction: Direction
    definition: str


def figures_of(slug: str, rows: tuple[FigureRow, ...]) -> tuple[FigureOfMerit, ...]:
    """Return the figures of merit of a workload."""
    return tuple(FigureOfMerit(f"{slug}.{name}", *described) for name, *described in rows)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Parsed:
    """Results of an output: figures of merit by id, and tables for the trial page."""

    figures: Mapping[str, float]
    tables: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    ran_with: Mapping[str, float | str] = field(default_factory=dict)
    """Settings that the program itself prints: ``ranks``, and parameters by name, in base units.

    ``message_bytes`` is the largest timed size, ``benchmark`` the operation of the table.
    """
    others: Sequence[Parsed] = ()
    """Further results of the same output, which may be those of the requested settings."""
    refusal: OutputError | None = None
    """The reason if the program itself says that this one is wrong."""


def alternatives(results: Sequence[Parsed]) -> Parsed:
    """Return the results of one output, the first by default."""
    return replace(results[0], others=tuple(results[1:]))


class Contradiction(OutputError):
    """The output is of another run than requested; ``name`` is the setting."""

    def __init__(self, name: str, ran: float | str, requested: Any) -> None:
        self.name = name
        words = f"it ran with {name} {_written(ran)}, not {_written(requested)}"
        if name == "message_bytes":
            words = f"the largest timed size is {numbers.size(int(ran))}, not {numbers.size(int(requested))}"
        elif name == "benchmark":
            words = f"the table is of {ran}, not {requested}"
        lines: Sequence[Line] = getattr(ran, "lines", ())
        self.words = f"{words}, in {lines[0]}" if lines else words
        super().__init__(f"its output says that {self.words}")


def _written(value: Any) -> str:
    return numbers.plain(value, 3) if isinstance(value, float) else str(value)


@dataclass(frozen=True, slots=True)
class LoadTest:
    """Figures of a service under load, of which an operating envelope is made."""

    load: str  # parameter: number of simultaneous jobs
    wall: str  # figure: wall time of a job, s
    uses: Mapping[str, str]  # figures by resource: largest share in use, 0 to 1
    throughput: str  # figure in bit/s: with the bandwidth of the link, the use of the link
    same_processors: tuple[str, ...] = ()  # resources that are one if all hosts are virtual hosts of one machine


@dataclass(frozen=True, slots=True)
class Phases:
    """Figures of a run whose nodes load data in their first step; times are in s."""

    nodes: str
    first: str
    later: str
    run: str
    aggregate: str  # bandwidth of all nodes together, B/s
    steps: str  # parameter: number of steps of a node
    method: str  # parameter whose values are compared
    baseline: str  # its value that the others are compared with
    utilisation: str  # share of the nodes' time in which they work, 0 to 1
    printed_faster: str  # metric of publications instead of times: ratio of the baseline's run to this one
    printed_more_percent: str  # metric of publications instead of bandwidths: gain over the baseline's, %


@dataclass(frozen=True, slots=True)
class OwnTime:
    """Figures of the program's own timing, without launch overhead."""

    time: str  # figure, s
    cpu_percent: str = ""  # figure: CPU time of a rank over it, mean of the ranks, %; empty if the program prints none


class Mismatch(ValueError):
    """Values that do not go together; ``parameter`` is the one to change."""

    def __init__(self, parameter: str, sentence: str) -> None:
        self.parameter = parameter
        super().__init__(sentence)


@dataclass(frozen=True, kw_only=True, eq=False)
class WorkloadDefinition:
    """A program that can be measured.

    It is built in, from a Python module, registered, or inline in a specification. Functions take the workload's typed parameters first
    and ``ranks``, the number of ranks, by name.
    """

    slug: str
    title: str
    summary: str
    programs: Mapping[str, str] = field(default_factory=dict)
    """Required programs with the Debian packages that hold them; a path may be a pattern."""
    python_modules: Mapping[str, str] = field(default_factory=dict)
    """Required modules of the system's Python with the Debian packages that hold them."""
    restricted: bool = False
    """Only maintainers of a project may submit it, because its specification says what is executed."""
    registered: bool = False  # a maintainer registered it here
    retired: bool = False  # no new experiment can use it

    parameters_type: type[Parameters]
    constants: tuple[str, ...] = ()  # parameters that define the workload itself: they cannot be swept
    reading: frozenset[str] = frozenset()
    """Constants that say only how the output is read: they are not part of a configuration, and need no new run."""
    brought: tuple[str, ...] = ()
    """Parameters that identify a program of the user's own; empty for programs that come with Rankwire."""
    pinned: tuple[str, ...] = ()  # constants whose default changes with time: a stored specification holds their value
    unused: frozenset[str] = frozenset()
    """Parameters that change nothing of a run: a value for one of them is a mistake."""
    later_defaults: Mapping[str, Any] = field(default_factory=dict)
    """Defaults of parameters added after configurations were stored: each means what ran before it existed."""
    variant: Callable[[Mapping[str, Any], str], WorkloadDefinition | None] = lambda constants, cluster: None
    """(constants of a specification, name of a cluster or ''): the workload that they define; None: this one."""

    command: Callable[..., tuple[str, ...]]
    """The argv of one rank's program; it runs in a directory that holds ``files``."""
    check: Callable[..., None] = lambda parameters, *, ranks: None
    """Raises Mismatch if these parameters cannot run on ``ranks`` ranks."""
    files: Callable[..., Mapping[str, str]] = lambda parameters, *, ranks: {}  # the texts of the input files by name
    decks: Callable[..., Mapping[str, str]] = lambda parameters, *, ranks: {}
    """The paths of further input files on the first host by name; their texts go to ``filled``."""
    filled: Callable[..., Mapping[str, str]] = lambda parameters, texts, *, ranks: texts
    """(parameters, texts): the texts of the ``decks`` as a run reads them. Raises Mismatch for a parameter without effect."""
    environment: Callable[..., Mapping[str, str]] = lambda parameters, *, ranks: {}
    """Additional variables of every rank's program."""
    threads: Callable[[Any], int] = lambda parameters: 1  # threads of each rank
    estimate_s: Callable[..., float]
    """A rough elapsed time in seconds on an unlimited link, used until there are past trials."""
    bottleneck_bytes: Callable[..., float] = lambda parameters, *, ranks: 0.0
    """Roughly the bytes that one host's port carries: a limited link adds their time."""

    parse: Callable[[str, Mapping[str, str]], Parsed]
    """(output, files): the results of a finished run (``files``: those of ``outputs`` that exist, by name).

    Raises OutputError if it is not what a good run prints.
    """
    times_largest: Callable[[Any, Mapping[str, Any]], bool] = lambda ran, requested: bool(
        ran == requested["message_bytes"]
    )
    """(largest timed size, requested parameters): whether a whole run with them ends there."""
    outputs: tuple[str, ...] = ()
    """Names and patterns of text files that a run writes beside its standard output; they are parsed and stored."""
    keeps: tuple[str, ...] = ()  # patterns (`kept_files`) of further files that a run writes; they are stored
    output_checks: tuple[str, ...] = ()  # what holds for the output of every finished run, in words
    curve: Callable[[Mapping[str, Sequence[Mapping[str, Any]]]], list[tuple[int, float]]] = lambda tables: []
    """(tables of a run): (message size in bytes, transfer time in s), if the tables hold such a curve."""

    figures: tuple[FigureOfMerit, ...]
    decides: str = "elapsed_s"  # deciding metric
    decides_of: str = ""  # figure, s: the part of a longer run that the deciding figure measures
    own_time: OwnTime | None = None
    breakdown: tuple[str, ...] = ()  # figures, s: the parts of the program's time that it prints itself
    load_test: LoadTest | None = None
    phases: Phases | None = None
    treatments: tuple[str, ...] = ()
    """Numeric parameters that are settings to choose among; other numbers give the size of the problem or the load."""
    first_sweep: tuple[str, str] | None = None
    """Parameter and values of a first experiment of a program between two ranks; None: a sweep over hosts."""
    work_grows: bool = False
    """Each rank has the same work, however many there are: a sweep over hosts is weak scaling."""
    ranks_alike: bool = True  # all ranks have the same work; False for a server and its clients
    gflops: str | None = None  # figure in GFLOP/s to compare with a theoretical peak, a price and a power

    def bind(self, constants: Mapping[str, Any], cluster: str = "") -> WorkloadDefinition:
        """Return this workload as the constants of a specification define it on a cluster."""
        return self.variant(constants, cluster) or self

    def with_own_program(self) -> WorkloadDefinition:
        """Return this workload with a program of the hosts, for maintainers."""
        restricted = replace(self, programs={}, restricted=True, brought=self.constants)
        return replace(
            self, variant=lambda constants, _: restricted if any(map(constants.get, restricted.constants)) else None
        )

    def read(self, output: str, files: Mapping[str, str], requested: Mapping[str, Any]) -> Parsed:
        """Return the result of the requested settings. Raise OutputError."""
        require_few_lines(output, *files.values())
        try:
            with budget.seconds(READING_CPU_S):
                first = self.parse(output, files)
        except budget.Exhausted:
            budget.check()  # the time of the request may be used up instead
            raise OutputError(f"reading it takes more than {READING_CPU_S:.0f} s of CPU time") from None
        compared = [(self._contradictions(parsed, requested), parsed) for parsed in (first, *first.others)]
        contradictions, parsed = min(compared, key=lambda pair: len(pair[0]))
        if refusal := next(iter(contradictions), parsed.refusal):
            raise refusal
        return parsed

    def _contradictions(self, parsed: Parsed, requested: Mapping[str, Any]) -> list[Contradiction]:
        """Return the printed settings that differ from requested ones."""
        fields = self.parameters_type.model_fields
        sentences = []
        for name, ran in parsed.ran_with.items():
            value = requested.get(name)
            if value is None or (value == 0 and name in fields and fields[name].default == 0):
                continue  # not said, or a default that follows the ranks
            if not (self.times_largest(ran, requested) if name == "message_bytes" else ran == value):
                sentences.append(Contradiction(name, ran, value))
        return sentences

    def outside_its_work(self, elapsed_s: float, figures: Mapping[str, float]) -> dict[str, float]:
        """Return the launch overhead by metric, if the output shows the own time."""
        own_s = figures.get(self.own_time.time) if self.own_time is not None else None
        if own_s is None or not 0 <= own_s <= elapsed_s:
            return {}  # a program that calls its work longer than its launch measures another time
        seconds = elapsed_s - own_s
        return {"start_end_s": seconds, "start_end_share": seconds / elapsed_s if elapsed_s else 0.0}
