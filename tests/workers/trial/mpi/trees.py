"""Efficiencies of any real trial must multiply to their parents."""

from __future__ import annotations

import pytest

from experiments.files import read_mpi_profile
from experiments.models import State, Trial


def tree_of(trial: Trial) -> dict[str, float]:
    """Check a trial's metrics against each other and the kernel's CPU time."""
    assert trial.state == State.FINISHED, trial.message + trial.traceback
    values = dict(trial.measurements.filter(scope="all").values_list("metric", "value"))
    stored = read_mpi_profile(trial)
    assert stored is not None, trial.not_available
    balance, communication = values["mpi_load_balance"], values["mpi_communication_efficiency"]
    parallel, window_s = values["mpi_parallel_efficiency"], values["mpi_window_s"]
    assert parallel == pytest.approx(balance * communication)
    assert parallel == pytest.approx(values["mpi_useful_s"] / len(stored["ranks"]) / window_s)
    assert 0 < parallel <= min(balance, communication) <= 1
    assert window_s < values["elapsed_s"]
    shares = [values[f"mpi_{name}_share"] for name in ("useful", "no_core", "on_cpu", "blocked")]
    assert sum(shares) == pytest.approx(1.0)
    on_processors_s = sum(rank["computing_s"] + rank["on_cpu_s"] for rank in stored["ranks"])
    assert on_processors_s < 1.02 * values["cpu_s"] + 0.02, "more than its ranks used, start and end included"
    return values
