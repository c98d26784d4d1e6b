"""Trials whose ranks Slurm starts itself are those of mpirun."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiments.files import read_mpi_profile
from experiments.models import Cluster, State, Trial
from tests.workers.clusters.mpi_programs import exchange_over_mpich
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


def equal_trials(launcher: str, run_all: Callable[..., list[Trial]], slurm: Slurm, **fields: Any) -> list[Trial]:
    """Return a trial of mpirun and one of another launcher, with equal ranks."""
    trials = []
    for name in ("mpirun", launcher):
        slug = cluster_with(name, slurm, transport="native")
        trials += run_all(cluster=slug, **fields)
    rows, others = map(rows_of, trials)
    assert others[0].keys() == rows[0].keys()
    for name in ("rank", "host", "allowed", "calls"):
        assert [row.get(name) for row in others] == [row.get(name) for row in rows], name
    first, second = trials
    assert second.conditions["world"] == first.conditions["world"]
    return trials


@pytest.mark.parametrize(("bind", "distribution"), [("core", "cyclic"), ("none", "block")])
def test_srun_starts_the_trials_of_mpirun(
    bind: str, distribution: str, run_all: Callable[..., list[Trial]], slurm: Slurm
) -> None:
    first, second = equal_trials("srun-pmix", run_all, slurm, **RING, bind=bind, distribution=distribution)
    assert "--mpi=pmix" in second.command
    assert "mpirun" in first.command[0]
    assert second.conditions["messages_by"].startswith("shared memory (Open MPI) and TCP")
    assert second.environment.facts["launcher"] == "srun-pmix"
    assert "launcher" not in first.environment.facts


def test_srun_starts_the_trials_of_mpich_by_pmi2(
    run_all: Callable[..., list[Trial]], slurm: Slurm, tmp_path: Path
) -> None:
    parameters = {"hosts": 2, "ranks_per_host": 2, "program": [str(exchange_over_mpich(tmp_path))]}
    placed = {"bind": "core", "distribution": "cyclic"}
    first, second = equal_trials("srun-pmi2", run_all, slurm, workload="command", parameters=parameters, **placed)
    assert first.command[0] == "mpiexec.hydra"
    assert "--mpi=pmi2" in second.command
    assert second.conditions["world"].startswith("4 ranks in one world, as requested (libmpich")
    assert "shared memory (UCX)" in second.conditions["messages_by"]
    assert [row["host"] for row in rows_of(second)] == ["n1", "n2", "n1", "n2"]
