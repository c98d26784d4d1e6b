"""What transfer and serialisation cost, from trials and their twins on an ideal network."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final

from analysis.mpi.efficiencies import efficiencies
from experiments.models import Experiment, Kind, Measurement

SERIALISATION: Final = "mpi_serialisation_efficiency"
TRANSFER: Final = "mpi_transfer_efficiency"
WINDOW: Final = "mpi_window_s"
BUSIEST: Final = "mpi_useful_max_rank_s"


def ideal_windows(experiment: Experiment) -> Mapping[int, float]:
    """Return the time between MPI_Init and MPI_Finalize of the twins by configuration, in one query."""
    if not experiment.specification.get("ideal"):
        return {}
    rows = Measurement.objects.counted(Kind.IDEAL).filter(trial__experiment=experiment, metric=WINDOW, scope="all")
    windows: dict[int, list[float]] = defaultdict(list)
    for configuration, value in rows.values_list("trial__configuration_id", "value"):
        windows[configuration].append(value)
    return {configuration: median(values) for configuration, values in windows.items()}


def against_twins(values: Mapping[str, Sequence[float]], ideal_s: float | None) -> dict[str, list[float]]:
    """Return the two efficiencies of each counted trial of a configuration; nothing without a twin or a profile."""
    windows, busiest = values.get(WINDOW, ()), values.get(BUSIEST, ())
    if ideal_s is None or not windows or len(windows) != len(busiest):
        return {}
    split = [efficiencies([most], window, ideal_s) for most, window in zip(busiest, windows, strict=True)]
    return {
        SERIALISATION: [each.serialisation or 0.0 for each in split],
        TRANSFER: [each.transfer or 0.0 for each in split],
    }
