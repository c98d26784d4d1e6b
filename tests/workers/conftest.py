"""Real clusters for the tests of workers, jobs on them, and waiting for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.workers.clusters.real_hosts import Slurm, SshHosts
from tests.workers.clusters.trials import PlainLink
from workers import launchers
from workers.launchers import Job, Session


@pytest.fixture(scope="module")
def ssh_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHosts]:
    """Three hosts with an sshd."""
    with launchers.get("testbed").open(host_count=3, link=PlainLink()) as session:
        yield SshHosts(session, tmp_path_factory.mktemp("ssh"))


@pytest.fixture(scope="module")
def slurm(ssh_hosts: SshHosts) -> Slurm:
    """A Slurm on them."""
    return Slurm(ssh_hosts)


@pytest.fixture(scope="module")
def testbed() -> Iterator[Session]:
    """Four virtual hosts on gigabit links."""
    with launchers.get("testbed").open(host_count=4, link=PlainLink()) as session:
        yield session


@pytest.fixture
def make_job(tmp_path: Path) -> Callable[..., Job]:
    """Return a job: `make_job(session, "program", "argument", hosts=2)`."""

    def make(session: Session, *program: str, hosts: int | None = None, ranks_per_host: int = 1) -> Job:
        names = session.hosts[:hosts]
        return Job(
            program=program,
            ranks=len(names) * ranks_per_host,
            ranks_per_host=ranks_per_host,
            hosts=names,
            workdir=tmp_path,
            report_dir=tmp_path / "ranks",
        )

    return make


@pytest.fixture
def eventually() -> Callable[..., Any]:
    """Wait until a condition holds, at most so many seconds."""

    def wait(condition: Callable[[], Any], limit_s: float = 60.0, explain: Callable[[], Any] | None = None) -> Any:
        deadline = time.monotonic() + limit_s
        while not (value := condition()):
            assert time.monotonic() < deadline, f"still {explain() if explain else value} after {limit_s} s"
            time.sleep(0.02)
        return value

    return wait
