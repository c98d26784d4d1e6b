"""A real Slurm with one slurmd per virtual host, over ssh."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from operator import itemgetter
from pathlib import Path

import pytest

from tests.workers.clusters.mpi_programs import sum_over_mpich
from tests.workers.clusters.real_hosts import Slurm
from tests.workers.clusters.trials import PlainLink, run
from tests.workers.profile import newer
from workers import launchers
from workers.cluster_check.world import HELLO as MPI_HELLO
from workers.errors import ClusterUnavailable, HostsLost
from workers.launchers import Job, Session
from workers.launchers.slurm import SlurmQueue
from workers.trial.inside_mpi import inside_mpi, profile_for, read_observed_transport
from workers.trial.mpi_family import world_of
from workers.trial.rank_usage import read_rank_usage

HELLO = "from mpi4py import MPI; MPI.COMM_WORLD.Barrier(); print(MPI.Get_processor_name())"


@pytest.fixture(scope="module")
def session(slurm: Slurm) -> Iterator[Session]:
    with launchers.get("slurm", slurm.settings()).open(host_count=3, link=PlainLink()) as session:
        yield session


def refusal(settings: dict[str, object], **options: object) -> str:
    with pytest.raises(ClusterUnavailable) as caught:
        launchers.get("slurm", settings).open(host_count=1, link=PlainLink(), **options).close()
    return str(caught.value)


def test_it_runs_trials_on_the_nodes_that_slurm_allots(session: Session, make_job: Callable[..., Job]) -> None:
    for _ in range(2):
        job = make_job(session, "/usr/bin/python3", "-c", HELLO)
        with session.capture() as capture:
            status, out, err = run(session, job)
            assert capture.stop().captured > 0
        assert status == 0, err
        assert sorted(out.split()) == ["n1", "n2", "n3"]
        assert [usage.host for usage in read_rank_usage(job.report_dir)] == ["n1", "n2", "n3"]
    assert session.facts["slurm_job"].isdigit()


def test_it_shows_a_pending_job_and_cancels_it_when_cancelled(session: Session, slurm: Slurm) -> None:
    heard: list[str] = []

    class Enough(Exception):
        pass

    def listen(what: str) -> None:
        heard.append(what)
        if "Resources" in what or "Priority" in what:
            raise Enough

    with pytest.raises(Enough):  # all nodes are taken by the module's session
        launchers.get("slurm", slurm.settings()).open(host_count=3, link=PlainLink(), tell=listen)
    assert any("PENDING" in what for what in heard)
    assert slurm.ask("squeue", "-h", "-t", "PENDING") == ""


def test_it_gives_the_nodes_back(session: Session, slurm: Slurm, eventually: Callable[..., object]) -> None:
    session.close()
    eventually(lambda: slurm.ask("squeue", "-h") == "", explain=slurm.logs)


@pytest.mark.parametrize("mpi", ["mpich", "intelmpi"])
def test_hydra_makes_one_world_of_two_nodes(
    mpi: str, slurm: Slurm, make_job: Callable[..., Job], tmp_path: Path
) -> None:
    settings = slurm.settings(mpi=mpi, mpirun="mpiexec.hydra")
    with launchers.get("slurm", settings).open(host_count=2, link=PlainLink()) as session:
        job = make_job(session, str(sum_over_mpich(tmp_path)))
        status, out, stderr = run(session, job)
    assert status == 0, stderr
    assert sorted(out.splitlines()) == ["rank 0 of 2, sum 3", "rank 1 of 2, sum 3"]
    usages = read_rank_usage(job.report_dir)
    assert [usage.host for usage in usages] == ["n1", "n2"]
    assert world_of(usages, "Hydra 4.0.2", ranks=2, setting=True).problem == ""
    controller = (slurm.hosts.directory / "slurmctld.log").read_text()
    assert "-x" not in [word for line in controller.splitlines() for word in line.split()]


def open_mpi_5() -> dict[str, str]:
    """Variables by which a program of its interface uses the package of the tests."""
    prefix = newer.prefix()
    return {
        "OPAL_PREFIX": str(prefix),
        "LD_LIBRARY_PATH": str(prefix / "lib"),
        "LD_PRELOAD": str(prefix / "lib/libmpi.so.40"),
        "PMIX_MCA_mca_base_component_show_load_errors": "0",  # it was built without munge
    }


@pytest.mark.parametrize(
    ("launcher", "library", "variables"),
    [
        ("srun-pmix", "Open MPI v4", {}),
        ("srun-pmix", "Open MPI v5", open_mpi_5()),
        ("srun-pmi2", "MPICH 4.0", {}),
        ("srun-pmi2", "MPICH 4.3", {"LD_LIBRARY_PATH": str(newer.prefix() / "lib")}),
    ],
)
def test_srun_makes_one_world_with_each_library(
    launcher: str, library: str, variables: dict[str, str], slurm: Slurm, make_job: Callable[..., Job]
) -> None:
    settings = slurm.settings(launcher=launcher, environment=variables, transport="native", bind="none")
    with launchers.get("slurm", settings).open(host_count=2, link=PlainLink()) as session:
        job = make_job(session, sys.executable, "-I", "-S", "hello.py", "mpirun", ranks_per_host=2)
        job = dataclasses.replace(job, profile=profile_for("summary", session)[0])
        (job.workdir / "hello.py").write_bytes(MPI_HELLO.read_bytes())
        status, out, err = run(session, job)
    assert status == 0, err
    ranks = sorted((json.loads(line) for line in out.splitlines() if line.startswith("{")), key=itemgetter("rank"))
    assert [(rank["size"], rank["host"]) for rank in ranks] == [(4, "n1"), (4, "n1"), (4, "n2"), (4, "n2")]
    assert all(rank["library"].startswith(library) for rank in ranks)
    usages = read_rank_usage(job.report_dir)
    assert [usage.host for usage in usages] == ["n1", "n1", "n2", "n2"]
    world = world_of(usages, "slurm-wlm 22.05.8", ranks=4, setting=True)
    assert (world.problem, world.checked) == ("", True)
    assert inside_mpi(job.profile, job.report_dir, usages, 4).metrics
    transport = read_observed_transport(job.report_dir, usages)
    assert transport is not None
    assert transport.shared_memory, "ranks of one host"


def test_ranks_that_srun_started_end_with_the_trial(slurm: Slurm, make_job: Callable[..., Job]) -> None:
    settings = slurm.settings(launcher="srun-pmi2")
    with launchers.get("slurm", settings).open(host_count=2, link=PlainLink()) as session:
        job = make_job(session, "sh", "-c", 'test "$PMI_RANK" = 0 || exec sleep 983; sleep 2; exit 3')
        begun = time.monotonic()
        assert run(session, job)[0] not in (0, None)
        assert 3 in [usage.exit_status for usage in read_rank_usage(job.report_dir)]
        assert time.monotonic() - begun < 60.0, "the other rank does not end by itself"
        process = session.launch(make_job(session, "sleep", "982"), stdout=job.workdir / "o", stderr=job.workdir / "e")
        process.terminate(5.0)
        assert process.wait(30.0) is not None
        left = [agent.output(["pgrep", "-f", "sleep 98[23]"]) for agent in session.agents.values()]
    assert left == ["", ""]


def test_the_nodes_come_back_when_the_worker_is_killed(
    slurm: Slurm, make_job: Callable[..., Job], eventually: Callable[..., object]
) -> None:
    session = launchers.get("slurm", slurm.settings()).open(host_count=2, link=PlainLink())
    assert run(session, make_job(session, "sleep", "2"))[0] == 0  # meanwhile the batch script has seen the agent
    session.launcher.queue.cancel = lambda job: None  # no process remains to do it
    for agent in session.agents.values():
        os.kill(agent.pid, 9)
    session.close()
    eventually(lambda: slurm.ask("squeue", "-h") == "", explain=slurm.logs)


def test_it_reports_that_slurm_took_the_job_away(slurm: Slurm, make_job: Callable[..., Job]) -> None:
    with launchers.get("slurm", slurm.settings()).open(host_count=2, link=PlainLink()) as session:
        job = make_job(session, "sleep", "984")
        process = session.launch(job, stdout=job.workdir / "out", stderr=job.workdir / "err")
        number = session.facts["slurm_job"]
        slurm.ask("scancel", number)
        with pytest.raises(HostsLost, match=rf"^Slurm job {number} on n\[1-2\] ended: CANCELLED"):
            process.wait(30.0)


def test_it_does_not_take_a_job_that_continues_for_one_that_ended(slurm: Slurm) -> None:
    with launchers.get("slurm", slurm.settings()).open(host_count=2, link=PlainLink()) as session:
        answer = session.why_lost(ClusterUnavailable("The connection to n2 ended."))
    number = session.facts["slurm_job"]
    assert answer == f"The connection to n2 ended. State of Slurm job {number} on n[1-2]: RUNNING."


CHATTY = """\
echo '*** Welcome to the laboratory ***'
echo 42
export SBATCH_RESERVATION=nowhere SBATCH_NODELIST=n9 SLURM_HOSTFILE=/nowhere SLURM_JOB_ID=1 SQUEUE_FORMAT=%j
"""


@pytest.fixture
def chatty_logins(slurm: Slurm) -> Iterator[None]:
    slurm.hosts.login_script.write_text(CHATTY)
    yield
    slurm.hosts.login_script.unlink()


def test_it_runs_trials_through_logins_that_print_and_have_options_of_an_outer_job(
    slurm: Slurm, chatty_logins: None, make_job: Callable[..., Job], eventually: Callable[..., object]
) -> None:
    assert "42" in subprocess.run(
        [*launchers.get("slurm", slurm.settings()).settings.login.ssh("n1"), "true"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=60,
    ).stdout.split()  # fmt: skip
    with launchers.get("slurm", slurm.settings()).open(host_count=2, link=PlainLink()) as session:
        assert session.hosts == ("n1", "n2")
        assert session.facts["partition"]["name"] == "short"
        status, out, err = run(session, make_job(session, "/usr/bin/python3", "-c", HELLO))
    assert status == 0, err
    assert sorted(word for word in out.split() if word.startswith("n")) == ["n1", "n2"]
    eventually(lambda: slurm.ask("squeue", "-h") == "", explain=slurm.logs)


def test_it_leaves_no_job_whose_number_it_cannot_read(
    slurm: Slurm, monkeypatch: pytest.MonkeyPatch, eventually: Callable[..., object]
) -> None:
    monkeypatch.setattr(SlurmQueue, "job_line", re.compile("never"))
    sentence = refusal(slurm.settings())
    assert re.search(r"“\d+”\. Job rankwire-\w{6} was cancelled\.$", sentence), sentence
    eventually(lambda: slurm.ask("squeue", "-h") == "", explain=slurm.logs)


def test_it_names_an_unknown_partition(slurm: Slurm) -> None:
    sentence = refusal(slurm.settings(partition="gpu"))
    assert "Slurm did not accept the job: " in sentence
    assert "invalid partition" in sentence.lower()
    assert "gpu" in sentence


def test_it_names_a_login_host_that_cannot_be_reached(slurm: Slurm) -> None:
    settings = slurm.settings()
    sentence = refusal({**settings, "login": {**settings["login"], "port": 2299}})
    assert "Connection refused" in sentence or "Connection closed" in sentence
    assert Path("/etc/slurm/slurm.conf").exists() is False, "the tests' Slurm is their own"
