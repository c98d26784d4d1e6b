"""Clusters of real hosts for the tests of workers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.workers.clusters.real_hosts import Slurm, SshHosts
from tests.workers.clusters.trials import PlainLink
from workers import launchers


@pytest.fixture(scope="module")
def ssh_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHosts]:
    """Three hosts with an sshd."""
    with launchers.get("testbed").open(host_count=3, link=PlainLink()) as session:
        yield SshHosts(session, tmp_path_factory.mktemp("ssh"))


@pytest.fixture(scope="module")
def slurm(ssh_hosts: SshHosts) -> Slurm:
    """A Slurm on them."""
    return Slurm(ssh_hosts)
