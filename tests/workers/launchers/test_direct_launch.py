"""The exact commands of srun, flux run and PALS, and what they refuse."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from experiments import cluster_kinds
from tests.workers.launchers.commands import RANK, SSH, WATER, words
from workers import launchers
from workers.errors import ClusterUnavailable
from workers.launchers import Job

JOB = dataclasses.replace(WATER, environment={"A": "two words"}, scheduler_job="12", open_mpi=None)
RANKS = ["env", "A=two words", *RANK]
STEP = "--jobid=12 --overlap --mem=0 --kill-on-bad-exit=1 --nodes=2 --nodelist=n1,n2 --ntasks=4 --ntasks-per-node=2"
FLUX = "flux proxy 12 flux run --exclusive --nodes=2 --ntasks=4 --cores-per-task=1 --requires=hosts:n1,n2"
PALS = "env PBS_JOBID=12 mpiexec -n 4 --ppn 2 --hosts n1,n2"
KINDS = {"srun-pmix": "slurm", "srun-pmi2": "slurm", "flux-run": "flux", "pals": "pbs"}


def argv(launcher: str, job: Job = JOB, **settings: Any) -> list[str]:
    return launchers.get(KINDS[launcher], {"launcher": launcher, **settings}).argv(job)


@pytest.mark.parametrize(
    ("launcher", "changes", "expected"),
    [
        ("srun-pmix", {}, f"srun {STEP} --mpi=pmix --distribution=block"),
        ("srun-pmi2", {"distribution": "cyclic"}, f"srun {STEP} --mpi=pmi2 --distribution=cyclic"),
        ("srun-pmix", {"bind": "core"}, f"srun {STEP} --mpi=pmix --distribution=block:block --cpu-bind=cores"),
        ("srun-pmix", {"bind": "numa"}, f"srun {STEP} --mpi=pmix --distribution=block:block --cpu-bind=ldoms"),
        ("srun-pmix", {"threads": 2}, f"srun {STEP} --mpi=pmix --distribution=block --cpus-per-task=2"),
        (
            "srun-pmix",
            {"threads": 2, "bind": "core"},
            f"srun {STEP} --mpi=pmix --distribution=block:block --cpus-per-task=2 --threads-per-core=1 --cpu-bind=cores",
        ),
        ("flux-run", {}, FLUX),
        ("flux-run", {"bind": "core"}, f"{FLUX} --setopt=cpu-affinity=per-task"),
        ("flux-run", {"bind": "none", "distribution": "cyclic"}, f"{FLUX} --taskmap=cyclic --setopt=cpu-affinity=off"),
        ("pals", {}, PALS),
        ("pals", {"bind": "hwthread"}, f"{PALS} --cpu-bind thread"),
        ("pals", {"threads": 2, "bind": "core"}, f"{PALS} --depth 2 --cpu-bind depth"),
    ],
)
def test_a_launcher_starts_placed_ranks(launcher: str, changes: dict[str, Any], expected: str) -> None:
    job = dataclasses.replace(JOB, **changes)
    assert argv(launcher, job) == [*words(expected), *RANKS]
    assert launchers.get(KINDS[launcher], {"launcher": launcher}).launch_refusals(job) == []


def test_shared_cores_are_overcommitted_and_ranks_yield() -> None:
    command = argv("srun-pmix", shared_cores=True)
    assert {"--overcommit", "--cpu-bind=none", "OMPI_MCA_mpi_yield_when_idle=1"} <= {*command}
    assert "I_MPI_PIN=off" in argv("srun-pmi2", shared_cores=True, mpi="intelmpi")


def test_a_launch_command_with_a_path_is_used() -> None:
    assert argv("srun-pmix", mpirun="/opt/slurm/bin/srun")[0] == "/opt/slurm/bin/srun"
    assert argv("flux-run", mpirun="/opt/bin/flux")[3:5] == ["/opt/bin/flux", "run"]


def test_transports_are_variables_of_the_ranks() -> None:
    native = argv("srun-pmix", interface="eth2")
    assert not [word for word in native if "pml" in word or "btl" in word or "UCX" in word]
    over_tcp = argv("srun-pmix", interface="eth2", transport="tcp")
    messages = {"OMPI_MCA_pml=ob1", "OMPI_MCA_btl=tcp,self", "OMPI_MCA_btl_tcp_if_include=eth2"}
    assert {*messages, "OMPI_MCA_btl_tcp_port_min_v4=30000", "OMPI_MCA_btl_tcp_port_range_v4=100"} <= {*over_tcp}
    hydra = argv("srun-pmi2", interface="eth2", transport="tcp", mpi="mpich")
    assert {"UCX_TLS=tcp,self", "UCX_NET_DEVICES=eth2", "MPIR_CVAR_NOLOCAL=1"} <= {*hydra}
    command = argv("srun-pmix", transport="ucx: UCX_TLS=rc --network=x")
    assert command[command.index("env") - 1 :][:4] == ["--network=x", "env", "A=two words", "UCX_TLS=rc"]


@pytest.mark.parametrize(
    ("launcher", "changes", "part"),
    [
        ("flux-run", {"bind": "socket"}, "The launcher flux-run cannot keep “socket”: "),
        ("pals", {"distribution": "cyclic"}, "The launcher pals cannot keep “cyclic”: "),
        ("srun-pmix", {"transport": "ucx: --mca pml ucx"}, "The argument --mca of the transport ucx is mpirun's: "),
    ],
)
def test_what_a_launcher_cannot_keep_is_refused(launcher: str, changes: dict[str, Any], part: str) -> None:
    (refusal,) = launchers.get(KINDS[launcher], {"launcher": launcher}).launch_refusals(
        dataclasses.replace(JOB, **changes)
    )
    assert refusal.startswith(part)


@pytest.mark.parametrize(
    ("kind", "launcher", "settings"),
    [("ssh", "srun-pmix", SSH), ("slurm", "pals", {}), ("lsf", "flux-run", {}), ("pbs", "srun-pmi2", {})],
)
def test_a_launcher_of_another_batch_system_is_refused_at_its_field(
    kind: str, launcher: str, settings: dict[str, Any]
) -> None:
    written = {**settings, "launcher": launcher}
    (error,) = cluster_kinds.get(kind).errors_in(written)
    assert error.path == "launcher"
    assert error.message.startswith(f"{launcher} starts no ranks on this kind of cluster; choose mpirun")
    with pytest.raises(ClusterUnavailable, match=f"launcher: {launcher} starts no ranks"):
        launchers.get(kind, written)


def test_the_preview_shows_the_command_with_a_placeholder_for_the_job() -> None:
    rehearsal = launchers.get("slurm", {"launcher": "srun-pmix"}).rehearse(dataclasses.replace(JOB, scheduler_job=""))
    assert rehearsal.argv[:2] == ["srun", "--jobid=JOB"]
    assert any("JOB is the number" in note for note in rehearsal.notes)
