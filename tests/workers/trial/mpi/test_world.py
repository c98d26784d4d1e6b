"""Ranks count only if they were one world, by program and messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from experiments.models import Cluster, State, Trial
from tests.workers.clusters.mpi_programs import exchange_over_mpich, hidden_in_script, mpi_program
from tests.workers.clusters.real_hosts import SshHosts
from workers.trial.inside_mpi import why_unseen
from workers.trial.mpi_family import World, world_of
from workers.trial.rank_usage import RankUsage

OPEN = "mpirun (Open MPI) 4.1.4"
LIBMPI, LIBMPICH, LIBPMIX = "libmpi.so.40.30.4", "libmpich.so.12.2.2", "libpmix.so.2.6.3"


def world(
    *ranks: tuple[str, Mapping[str, str]], version: str | None = OPEN, rank_count: int = 2, setting: bool = True
) -> World:
    """The judgement on ranks with these libraries (separated by spaces) and variables."""
    usages = [
        RankUsage(number, f"n{number + 1}", 1.0, 0.0, 1000, 10, 1, 0, None, 0, 1, 0.0, names.split(), answer)
        for number, (names, answer) in enumerate(ranks)
    ]
    return world_of(usages, version, ranks=rank_count, setting=setting)


def by_open_mpi(rank: int, size: int = 2) -> dict[str, str]:
    return {"OMPI_COMM_WORLD_SIZE": str(size), "OMPI_COMM_WORLD_RANK": str(rank), "PMIX_RANK": str(rank)}


def by_hydra(rank: int, size: int = 2) -> dict[str, str]:
    return {"PMI_SIZE": str(size), "PMI_RANK": str(rank)}


def by_srun(rank: int, size: int = 2) -> dict[str, str]:
    return {"PMIX_RANK": str(rank), "PMIX_NAMESPACE": "slurm.pmix.1.0", "SLURM_STEP_NUM_TASKS": str(size)}


def test_it_judges_worlds_that_srun_started() -> None:
    assert world((LIBMPI, by_srun(0)), (LIBMPI, by_srun(1)), version="slurm-wlm 22.05.8").checked
    assert "a world of 1 rank" in world((LIBMPI, by_srun(0, 1)), (LIBMPI, by_srun(1, 1))).problem
    without_pmix = world((LIBMPICH, by_srun(0)), (LIBMPICH, by_srun(1)), version="slurm-wlm 22.05.8")
    assert "it ran as one of 2 programs of one rank each" in without_pmix.problem
    assert "choose another “Launcher”" in without_pmix.problem


def test_it_reports_a_world_that_is_as_asked() -> None:
    seen = world((LIBMPI, by_open_mpi(0)), (LIBMPI, by_open_mpi(1)))
    assert seen == World(summary="2 ranks in one world, as requested (libmpi.so.40.30.4)")
    assert world((LIBMPICH, by_hydra(0)), (LIBMPICH, by_hydra(1)), version="Hydra 4.0.2").checked
    assert world((f"{LIBMPICH} {LIBPMIX}", by_open_mpi(0)), (f"{LIBMPICH} {LIBPMIX}", by_open_mpi(1))).checked


@pytest.mark.parametrize(
    ("ranks", "words"),
    [
        ([(LIBMPICH, by_open_mpi(0)), (LIBMPICH, by_open_mpi(1))], "it ran as one of 2 programs of one rank each"),
        ([(LIBMPI, by_hydra(0)), (LIBMPI, by_hydra(1))], "it ran as one of 2 programs of one rank each"),
        ([(LIBMPI, {}), (LIBMPI, {})], "et its script pass on the environment"),
        ([(LIBMPI, by_open_mpi(0, 1)), (LIBMPI, by_open_mpi(0, 1))], "in a world of 1 rank, and 2 were requested"),
        ([(LIBMPI, by_open_mpi(0)), (LIBMPI, by_open_mpi(0))], "Rank 1 on n2 ran as rank 0 of another world"),
    ],
)
def test_it_reports_why_a_world_is_another_one(ranks: list[tuple[str, Mapping[str, str]]], words: str) -> None:
    assert words in world(*ranks).problem


def test_it_reports_what_could_not_be_checked() -> None:
    assert world(("", {}), ("", {})) == World(
        summary="not checked: no MPI library was seen in any of 2 ranks", checked=False
    )
    half = world((LIBMPI, by_open_mpi(0)), ("", {}))
    assert (half.checked, half.summary.startswith("1 of 2 ranks seen with an MPI library")) == (False, True)
    assert world(("", {}), rank_count=1) == World()


def test_a_program_of_mpich_in_a_script_does_not_count_as_ranks_of_open_mpi(
    run_all: Callable[..., list[Trial]], open_path: Path
) -> None:
    name = mpi_program(open_path, "libmpich.so.12").name
    script = hidden_in_script(open_path, f"part={name[3:]}", f'{open_path}/{name[:3]}"$part"', "echo done")
    (trial,) = run_all(
        workload="command", parameters={"program": [str(script)]}, sweep={"hosts": [2]}, certificate="skip"
    )
    assert trial.state == State.FAILED
    assert "loaded MPICH or a library with its interface" in trial.message
    assert "it ran as one of 2 programs of one rank each" in trial.message
    assert trial.message.endswith("Build it with the compiler of Open MPI.")


def test_a_program_in_a_script_that_runs_as_asked_is_reported(
    run_all: Callable[..., list[Trial]], open_path: Path
) -> None:
    script = hidden_in_script(open_path, f"exec {mpi_program(open_path, 'libmpi.so.40')}")
    (trial,) = run_all(
        workload="command", parameters={"program": [str(script)]}, sweep={"hosts": [2]}, certificate="skip"
    )
    assert trial.state == State.FINISHED, trial.message
    assert trial.conditions["world"].startswith("2 ranks in one world, as requested (libmpi.so.40")


def test_a_program_without_mpi_on_two_hosts_is_not_trusted(run_all: Callable[..., list[Trial]]) -> None:
    parameters = {"program": ["/usr/bin/sleep", "0.2"]}
    (trial,) = run_all(workload="command", parameters=parameters, sweep={"hosts": [2]}, certificate="skip")
    assert trial.state == State.FINISHED, trial.message
    assert trial.trust in ("degraded", "unusable")
    assert "each may have run alone" in " ".join(trial.trust_reasons)
    assert trial.conditions["world"].startswith("not checked: no MPI library was seen in any of 2 ranks")


@pytest.mark.parametrize(("sent", "payload"), [(6_000_000, 6_100_000), (6_000_000, 5_400_000), (99_999, 0), (0, 0)])
def test_it_reports_nothing_where_all_was_seen_or_too_little_was_sent(sent: int, payload: int) -> None:
    assert why_unseen({"between_hosts_bytes": sent}, payload) is None


def test_messages_through_memory_that_hosts_share_are_reported(
    run_all: Callable[..., list[Trial]], ssh_hosts: SshHosts, tmp_path: Path
) -> None:
    """Virtual hosts share a kernel, which MPICH uses unless it is forbidden."""
    Cluster.objects.create(slug="real-ssh", name="Real", kind="ssh", settings=ssh_hosts.settings(transport="native"))
    program = [str(exchange_over_mpich(tmp_path))]
    (trial,) = run_all(workload="command", cluster="real-ssh", parameters={"hosts": 2, "program": program})
    assert trial.state == State.FINISHED, trial.message
    assert trial.conditions["world"].startswith("2 ranks in one world, as requested (libmpich")
    assert trial.trust == "good", trial.trust_reasons
    assert "shared memory" in trial.conditions["messages_by"]
    assert not trial.measurements.filter(metric="packets").exists()
    assert "another network" in trial.not_available["packets"]
    (seen,) = run_all(
        name="all over TCP",
        workload="command",
        cluster="real-ssh",
        parameters={"hosts": 2, "program": program, "environment": {"UCX_TLS": "tcp,self"}},
    )
    assert seen.trust == "good", seen.trust_reasons
    assert seen.measurements.get(metric="packets", scope="all").value > 0
