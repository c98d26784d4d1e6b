"""Offloads of real hosts are off during trials and restored afterwards."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator

import pytest

from tests.workers.clusters.real_hosts import SshHosts
from tests.workers.clusters.trials import PlainLink, output_of
from workers import launchers
from workers.launchers.remote import RemoteSession


@pytest.fixture(autouse=True)
def offloads_on(ssh_hosts: SshHosts) -> Iterator[None]:
    for state in ("on", "off"):
        for host in ("n1", "n2"):
            output_of(ssh_hosts.testbed, "ethtool", "-K", "eth0", "tso", state, "gso", state, host=host)
        if state == "on":
            yield


def is_on(hosts: SshHosts, host: str) -> bool:
    answer = output_of(hosts.testbed, "ethtool", "-k", "eth0", host=host)
    return re.search(r"^tcp-segmentation-offload: on", answer, re.MULTILINE) is not None


def opened(hosts: SshHosts, **settings: object) -> RemoteSession:
    session = launchers.get("ssh", hosts.settings(**settings)).open(host_count=2, link=PlainLink())
    assert isinstance(session, RemoteSession)
    return session


def test_offloads_are_unchanged_by_default(ssh_hosts: SshHosts) -> None:
    with opened(ssh_hosts) as session:
        assert is_on(ssh_hosts, "n1")
        assert session.environment()["interface"]["offloads"]["tcp-segmentation-offload"] == "on"


def test_they_are_off_while_trials_run_and_on_again_afterwards(ssh_hosts: SshHosts) -> None:
    with opened(ssh_hosts, offloads="off") as session:
        assert not is_on(ssh_hosts, "n1")
        assert not is_on(ssh_hosts, "n2")
        assert session.environment()["interface"]["offloads"]["generic-segmentation-offload"] == "off"
        assert "offloads_left_on" not in session.facts
    assert is_on(ssh_hosts, "n1")
    assert is_on(ssh_hosts, "n2")


def test_they_come_back_when_the_worker_is_killed(ssh_hosts: SshHosts, eventually: Callable[..., object]) -> None:
    session = opened(ssh_hosts, offloads="off")
    for agent in session.agents.values():
        os.kill(agent.pid, 9)  # the connections, as when the worker dies
    eventually(lambda: is_on(ssh_hosts, "n1") and is_on(ssh_hosts, "n2"))
    session.close()


def test_offloads_come_back_when_the_agent_is_killed(ssh_hosts: SshHosts, eventually: Callable[..., object]) -> None:
    session = opened(ssh_hosts, offloads="off")
    number = output_of(ssh_hosts.testbed, "cat", str(session.scratch / "agent-n2.pid")).strip()
    output_of(ssh_hosts.testbed, "kill", "-9", number)  # its number counts in the hosts' own namespace
    eventually(lambda: is_on(ssh_hosts, "n2"))
    session.close()
    eventually(lambda: is_on(ssh_hosts, "n1"))


def test_a_refusal_is_kept_with_the_trial_and_nothing_is_changed(ssh_hosts: SshHosts) -> None:
    with opened(ssh_hosts, offloads="off", offload_command=["no-such-tool"]) as session:
        assert is_on(ssh_hosts, "n1")
        assert set(session.facts["offloads_left_on"]) == {"n1", "n2"}
