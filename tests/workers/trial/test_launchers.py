"""Trials whose ranks Slurm starts itself are those of mpirun."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from experiments.files import read_mpi_profile
from experiments.models import Cluster, State, Trial
from tests.workers.clusters.real_hosts import Slurm

YIELD = {"OMPI_MCA_mpi_yield_when_idle": "1"}
"""Hosts share cores here, and bound ranks that poll take them from each other."""
SIZE = {"hosts": 2, "ranks_per_host": 2, "steps": 50}
RING = {"workload": "ring", "parameters": SIZE, "repetitions": 1}


def cluster_with(launcher: str, slurm: Slurm, **settings: Any) -> str:
    settings = slurm.settings(launcher=launcher, shared_cores=False, environment=YIELD, **settings)
    return Cluster.objects.create(slug=launcher, name=launcher, kind="slurm", settings=settings).slug


def rows_of(trial: Trial) -> list[dict[str, Any]]:
    assert trial.state == State.FINISHED, trial.message + trial.traceback
    tables = read_mpi_profile(trial)
    assert tables is not None
    return tables["ranks"]


@pytest.mark.parametrize(("bind", "distribution"), [("core", "cyclic"), ("none", "block")])
def test_srun_starts_the_trials_of_mpirun(
    bind: str, distribution: str, run_all: Callable[..., list[Trial]], slurm: Slurm
) -> None:
    trials = []
    for launcher in ("mpirun", "srun-pmix"):
        slug = cluster_with(launcher, slurm, transport="native")
        trials += run_all(cluster=slug, **RING, bind=bind, distribution=distribution)
    rows, others = map(rows_of, trials)
    assert others[0].keys() == rows[0].keys()
    for name in ("rank", "host", "allowed", "calls"):
        assert [row.get(name) for row in others] == [row.get(name) for row in rows], name
    first, second = trials
    assert "--mpi=pmix" in second.command
    assert "mpirun" in first.command[0]
    assert second.conditions["world"] == first.conditions["world"]
    assert second.conditions["messages_by"].startswith("shared memory (Open MPI) and TCP")
    assert second.environment.facts["launcher"] == "srun-pmix"
    assert "launcher" not in first.environment.facts
