"""Submissions and trials beside an outer job and logins that print."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.workers.clusters.trials import PlainLink, run
from workers import launchers
from workers.agent import machine
from workers.agent.variables import without_job
from workers.errors import ClusterUnavailable
from workers.hosts.remote_agent import RemoteAgent
from workers.launchers import Job
from workers.launchers.schedulers.launcher import SchedulerLauncher

OUTER = {
    "SBATCH_PARTITION": "nowhere", "SQUEUE_FORMAT": "%j", "SLURM_HOSTFILE": "/outer/hosts", "SLURM_JOB_ID": "7",
    "SALLOC_QOS": "x", "SCANCEL_VERBOSE": "1",
    "SCONTROL_ALL": "1", "SLURM_TIME_FORMAT": "relative", "PBS_NODEFILE": "/outer/nodes", "PBS_JOBID": "7.head", "LSB_HOSTS": "a b",
    "BSUB_QUIET": "Y", "SGE_TASK_ID": "3", "PE_HOSTFILE": "/outer/pe", "OMPI_COMM_WORLD_RANK": "5", "OMPI_MCA_btl": "self",
    "PMIX_RANK": "5", "PMI_RANK": "5", "PRTE_MCA_plm": "x", "HYDRA_HOST_FILE": "/outer/hydra", "MPIEXEC_TIMEOUT": "1",
    "I_MPI_HYDRA_BOOTSTRAP": "slurm", "FLUX_JOB_ID": "7", "PALS_RANKID": "3", "JSM_NAMESPACE_RANK": "3", "FLUX_KVS_NAMESPACE": "job-7",
}  # fmt: skip
SITE = {"SLURM_CONF": "/etc/site/slurm.conf", "SGE_ROOT": "/opt/sge", "PBS_SERVER": "head", "FLUX_URI": "local:///x"}
SUBMITS = {"slurm": "sbatch", "pbs": "qsub", "lsf": "bsub", "gridengine": "qsub", "flux": "flux"}
ANSWERS = {"slurm": "4711", "pbs": "4711.head", "lsf": "Job <4711> is submitted to queue <long>.", "gridengine": "4711"}


@pytest.fixture(autouse=True)
def outer_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**OUTER, **SITE}.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """Put a command in front of PATH; return the directory in which it runs."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)

    def make(name: str, text: str) -> Path:
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
        return tmp_path

    return make


def launcher_of(kind: str, **settings: object) -> SchedulerLauncher:
    needed = {"parallel_environment": "whole"} if kind == "gridengine" else {}
    launcher = launchers.get(kind, {**needed, **settings})
    assert isinstance(launcher, SchedulerLauncher)
    return launcher


def variables_in(file: Path) -> dict[str, str]:
    pairs = (line.partition("=") for line in file.read_text().splitlines())
    return {name: value for name, _, value in pairs if name in OUTER or name in SITE}


def test_the_table_keeps_what_names_a_site() -> None:
    assert without_job({**OUTER, **SITE, "HOME": "/root", "SLURMX": "1"}) == {**SITE, "HOME": "/root", "SLURMX": "1"}


@pytest.mark.parametrize("kind", ANSWERS)
def test_submissions_inherit_nothing_of_an_outer_job(kind: str, commands: Callable[[str, str], Path]) -> None:
    directory = commands(SUBMITS[kind], f"env >variables; cat >script; echo '*** Welcome ***'; echo '{ANSWERS[kind]}'")
    queue = launcher_of(kind).queue
    assert queue.submit(2, "the script\n", "rankwire-1").startswith("4711")
    assert variables_in(directory / "variables") == SITE
    assert (directory / "script").read_text() == "the script\n"


LOGIN = """\
printf 'G\\374nther: 2 jobs, motd without an end of line 42'
SBATCH_ACCOUNT=theirs; SQUEUE_SORT=n; export SBATCH_ACCOUNT SQUEUE_SORT
for word; do :; done
{how} "$word"
status=$?
echo 4712
exit $status"""


@pytest.mark.parametrize("kind", ANSWERS)
@pytest.mark.parametrize("how", ["sh -c", "bash -c"])
def test_a_login_adds_nothing_to_an_answer(kind: str, how: str, commands: Callable[[str, str], Path]) -> None:
    commands("ssh", LOGIN.format(how=how))
    directory = commands(SUBMITS[kind], f"env >variables; cat >script; echo '{ANSWERS[kind]}'; echo a warning >&2")
    queue = launcher_of(kind, login={"host": "gate"}).queue
    assert queue.submit(2, "the script\n", "rankwire-1").startswith("4711")
    seen = variables_in(directory / "variables")
    assert seen == SITE
    assert "SBATCH_ACCOUNT" not in (directory / "variables").read_text()
    assert (directory / "script").read_text() == "the script\n"


def test_the_status_of_a_command_comes_through_a_login(commands: Callable[[str, str], Path]) -> None:
    commands("ssh", LOGIN.format(how="sh -c"))
    commands("sbatch", "echo 'sbatch: error: Batch job submission failed: Invalid qos' >&2; exit 3")
    with pytest.raises(ClusterUnavailable, match=r"^Slurm did not accept the job: Invalid qos\.$"):
        launcher_of("slurm", login={"host": "gate"}).queue.submit(1, "", "rankwire-1")


def test_a_login_that_runs_no_command_gives_no_answer(commands: Callable[[str, str], Path]) -> None:
    commands("ssh", "echo 4711; echo This account is currently not available.")
    with pytest.raises(
        ClusterUnavailable, match=r"not available\. Job rankwire-1 may remain if ssh reached the host: cancel it\.$"
    ):
        launcher_of("slurm", login={"host": "gate"}).queue.submit(1, "", "rankwire-1")
    (reached,) = launcher_of("slurm", login={"host": "gate"}).reach()
    assert "not available" in reached.problem


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ("ssh: Could not resolve hostname gate: Name or service not known", "its name cannot be resolved"),
        ("ssh: connect to host gate port 22: Connection refused", "Connection refused"),
        ("Host key verification failed.", "known_hosts"),
        ("me@gate: Permission denied (publickey).", "it refuses the key"),
    ],
)
def test_a_login_host_that_ssh_never_reached_is_the_reason(
    message: str, why: str, commands: Callable[[str, str], Path]
) -> None:
    directory = commands("ssh", f"echo >>calls; echo '{message}' >&2; exit 255")
    with pytest.raises(ClusterUnavailable) as caught:
        launcher_of("slurm", login={"host": "gate"}).queue.submit(1, "", "rankwire-1")
    assert why in str(caught.value)
    assert "Slurm" not in str(caught.value)
    assert "rankwire-1" not in str(caught.value)
    assert (directory / "calls").read_text() == "\n", "no job that could be cancelled"


def test_an_ssh_of_the_submit_command_itself_may_leave_a_job(commands: Callable[[str, str], Path]) -> None:
    commands("ssh", LOGIN.format(how="sh -c"))
    commands("sbatch", "echo 'ssh: connect to host head port 22: Connection refused' >&2; exit 255")
    with pytest.raises(ClusterUnavailable, match=r"^Slurm did not accept the job: "):
        launcher_of("slurm", login={"host": "gate"}).queue.submit(1, "", "rankwire-1")


def test_time_left_and_states_are_read_beside_other_text(commands: Callable[[str, str], Path]) -> None:
    commands(
        "squeue", "echo '*** Welcome ***'; echo '4711|59:07'; echo '4711|RUNNING|None|n[1-2]'; echo '7|RUNNING|None|x'"
    )
    queue = launcher_of("slurm").queue
    assert queue.left_s("4711", 0.0) == 3547.0
    assert {job: queue.nodes(state) for job, state in queue.states(["4711"]).items()} == {"4711": ("n1", "n2")}


@pytest.mark.parametrize("settings", [{}, {"login": {"host": "gate"}}])
def test_the_connection_to_a_node_inherits_nothing(
    settings: dict[str, object], commands: Callable[[str, str], Path], tmp_path: Path
) -> None:
    commands("ssh", LOGIN.format(how="sh -c"))
    directory = commands("srun", "env >variables; exit 1")
    launcher = launcher_of("slurm", **settings)
    connection = launcher.queue.clean(["srun", "--jobid=12"])
    with RemoteAgent("n1", connection) as agent, pytest.raises(ClusterUnavailable):
        agent.connect(tmp_path / "scratch")
    assert variables_in(directory / "variables") == SITE
    assert "SQUEUE_SORT" not in (directory / "variables").read_text()


def test_a_launch_command_is_asked_for_its_version_without_an_outer_job(commands: Callable[[str, str], Path]) -> None:
    directory = commands("odd-mpirun", "env >variables; echo 'mpirun (Open MPI) 4.1.4'")
    assert machine.mpi_version("odd-mpirun", {"PATH": os.environ["PATH"]}) == "mpirun (Open MPI) 4.1.4"
    assert variables_in(directory / "variables") == SITE


def test_trials_inherit_nothing_but_see_what_the_specification_sets(make_job: Callable[..., Job]) -> None:
    show = "import os; print(sorted(name for name in os.environ if name.startswith(('SLURM_', 'SBATCH_', 'PBS_', 'LSB_', 'I_MPI_'))))"
    with launchers.get("local").open(host_count=1, link=PlainLink()) as session:
        plain = make_job(session, "/usr/bin/python3", "-c", show)
        job = dataclasses.replace(plain, environment={"SLURM_HINT": "x", "I_MPI_DEBUG": "5"})
        status, out, err = run(session, job)
    assert status == 0, err
    assert out.splitlines() == ["['I_MPI_DEBUG', 'SLURM_HINT']"] * job.ranks
