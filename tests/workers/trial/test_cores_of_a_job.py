"""Contention in a job of a real Slurm that has a part of the machine's cores."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator

import pytest

from tests.workers.clusters.real_hosts import CPUSETS, FIRST_CORE, Slurm, SshHosts
from tests.workers.clusters.trials import PlainLink
from tests.workers.trial.pinned_loops import run_beside_a_loop
from workers import launchers
from workers.launchers import Job, Session
from workers.trial.rank_usage import read_rank_usage

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not os.access(CPUSETS, os.W_OK) or (os.cpu_count() or 1) < 2,
    reason="only root makes cpusets, in version 1 of control groups",
)
BURN = "import time; end = time.monotonic() + 4; any(iter(lambda: time.monotonic() > end, True))"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with launchers.get("testbed").open(host_count=1, link=PlainLink()) as testbed:
        slurm = Slurm(SshHosts(testbed, tmp_path_factory.mktemp("ssh")), FIRST_CORE)
        settings = slurm.settings(transport="native", shared_cores=False, bind="none")
        with launchers.get("slurm", settings).open(host_count=1, link=PlainLink()) as session:
            yield session
    for directory, _, _ in os.walk(CPUSETS / "slurm_n1", topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(directory)  # noqa: PTH106 - a control group goes with its files


def test_cores_of_a_job_are_those_of_its_cpuset(session: Session) -> None:
    (machine,) = session.machines()
    assert machine.allowed == {0}
    assert session.facts["cores"] == 1
    sample = session.sample().machine
    assert (sample.cpus, sample.cores) == (1, 1)


@pytest.mark.parametrize("is_inside", [False, True])
def test_load_counts_inside_of_the_cpuset_of_a_job_alone(
    is_inside: bool, session: Session, make_job: Callable[..., Job], eventually: Callable[..., object]
) -> None:
    """Bounds that hold beside any load: what the loop used, what the rank left."""
    core = 0 if is_inside else 1
    job = make_job(session, "/usr/bin/python3", "-c", BURN)
    first, last, used_s, elapsed_s = run_beside_a_loop(session, job, core, eventually)
    (usage,) = read_rank_usage(job.report_dir)
    cores_s, taken_s = last.rank_cores_s - first.rank_cores_s, last.rank_cores_taken_s - first.rank_cores_taken_s
    assert 3.0 < cores_s < elapsed_s + 1.0, "the job's core alone"
    assert taken_s <= cores_s - usage.cpu_s + 0.05 * cores_s + 0.3
    if is_inside:
        assert taken_s >= used_s - (elapsed_s - 4) - 0.05 * cores_s
