"""POP efficiencies by size as numbers, for the page and REST."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from analysis.mpi.efficiencies import Counts, Scaled, Size, Split, scaled
from dashboard.help.terms import with_labels
from dashboard.panels.experiment.axes import groups_without
from dashboard.panels.experiment.scaling import IN_WINDOW
from dashboard.panels.parts.measured import Measured
from experiments import workloads
from experiments.metrics import find
from experiments.selectors import ConfigurationRow, swept_parameters

GLOBAL: Final = "global_efficiency"
COMPUTATION: Final = "computation_scalability"
SERIALISATION: Final = "mpi_serialisation_efficiency"
TRANSFER: Final = "mpi_transfer_efficiency"
COMMUNICATION: Final = "mpi_communication_efficiency"
WINDOW: Final = "mpi_window_s"
COST: Final = "mpi_profile_cost_share"
SHARES: Final = IN_WINDOW
_OF_EACH_TRIAL: Final = (
    (1, "mpi_parallel_efficiency"),
    (2, "mpi_load_balance"),
    (2, COMMUNICATION),
    (3, SERIALISATION),
    (3, TRANSFER),
)
"""(Depth in the tree, metric): each is the product of those one level deeper."""
_AGAINST_THE_SMALLEST: Final = {
    GLOBAL: ("Global efficiency", "Parallel efficiency × computation scalability."),
    COMPUTATION: (
        "Computation scalability",
        "Time outside MPI of all ranks at the smallest size / here: below 100 % ranks do more work, are slower, or lack cores.",
    ),
}
"""Label and definition of metrics that need several sizes."""
_FACTORS: Final[Mapping[str, tuple[str, str, Callable[[Split], float]]]] = {
    "instruction_scalability": (
        "Instruction scalability",
        "Instructions outside MPI at the smallest size / here: below 100 % ranks repeat work.",
        lambda split: split.instructions,
    ),
    "ipc_scalability": (
        "IPC scalability",
        "Instructions per cycle here / at the smallest size: below 100 % cores wait for memory more.",
        lambda split: split.ipc,
    ),
    "frequency_scalability": (
        "Frequency scalability",
        "Clock of the cores outside MPI here / at the smallest size.",
        lambda split: split.frequency,
    ),
    "core_scalability": (
        "Core scalability",
        "Share of the time outside MPI on a CPU core here / at the smallest size; POP has it in the frequency.",
        lambda split: split.core,
    ),
}
"""Factors of the computation scalability, if the processors' counters were read."""


@dataclass(frozen=True, slots=True)
class Branch:
    """One line of the tree; ``values`` are those of every counted trial by size."""

    depth: int
    name: str
    label: str
    definition: str
    values: Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class Tree:
    """The efficiencies of one combination of the other parameters, smallest first."""

    name: str
    rows: Sequence[ConfigurationRow]
    branches: Sequence[Branch]

    @property
    def sizes_differ(self) -> bool:
        """Return True if the sizes have different numbers of ranks."""
        return len({row.ranks for row in self.rows}) == len(self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Return medians as JSON for REST, None without a measurement."""
        return {
            "name": self.name,
            "sizes": [
                {
                    "parameters": row.parameters,
                    "hosts": row.hosts,
                    "ranks": row.ranks,
                    "trials": len(row.values[WINDOW]),
                    **{branch.name: _median(branch.values[index]) for branch in self.branches},
                    **{metric: row.median(metric) for metric in (*SHARES, WINDOW, COST)},
                }
                for index, row in enumerate(self.rows)
            ],
        }


def efficiency_trees(measured: Measured) -> list[Tree]:
    """Return a tree per combination of the other parameters; none without profiles."""
    rows = measured.main.with_metric(WINDOW)
    if not rows or measured.main.experiment.published:
        return []
    experiment = measured.main.experiment
    weak = workloads.scaling_of(experiment.workload, experiment.specification) == "weak"
    groups = groups_without(rows, swept_parameters(measured.main.rows), "hosts", measured.main.experiment.workload)
    return [_tree(name, group, weak=weak) for name, group in groups.items()]


def metric_branch(depth: int, metric: str, rows: Sequence[ConfigurationRow]) -> Branch:
    """Return a metric of the trials as a line."""
    description = find(metric)
    values = [row.values.get(metric, ()) for row in rows]
    return Branch(depth, metric, description.label, with_labels(description.definition), values)


def _tree(name: str, rows: Sequence[ConfigurationRow], *, weak: bool) -> Tree:
    ordered = sorted(rows, key=lambda row: (row.ranks, row.hosts))
    compared = _against_the_smallest(ordered, weak=weak)
    nothing: Sequence[Sequence[float]] = [()] * len(ordered)
    factors = [
        Branch(2, key, label, definition, [[factor(size.split)] if size.split else () for size in compared] or nothing)
        for key, (label, definition, factor) in _FACTORS.items()
    ]
    branches = [
        Branch(0, GLOBAL, *_AGAINST_THE_SMALLEST[GLOBAL], [[size.whole] for size in compared] or nothing),
        *(metric_branch(depth, metric, ordered) for depth, metric in _OF_EACH_TRIAL),
        Branch(
            1, COMPUTATION, *_AGAINST_THE_SMALLEST[COMPUTATION], [[size.computation] for size in compared] or nothing
        ),
        *factors,
    ]
    return Tree(name, ordered, branches)


def _against_the_smallest(rows: Sequence[ConfigurationRow], *, weak: bool) -> Sequence[Scaled]:
    """Return each row against the smallest; empty if their ranks do not differ."""
    sizes = [
        Size(
            row.ranks,
            row.median("mpi_useful_s") or 0.0,
            row.median("mpi_parallel_efficiency") or 0.0,
            _counts(row),
        )
        for row in rows
    ]
    if len({size.ranks for size in sizes}) < len(sizes) or len(sizes) < 2 or not sizes[0].useful_s:
        return ()
    return scaled(sizes, weak=weak)


def _counts(row: ConfigurationRow) -> Counts | None:
    sums = [row.median(f"processor_{name}") for name in ("instructions", "cycles", "cpu_s")]
    return Counts(*filter(None, sums)) if all(sums) else None


def _median(values: Sequence[float]) -> float | None:
    return median(values) if values else None
