"""Check of a cluster over a real sshd and a real Slurm: each fault."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.workers.cluster_check.steps import states, steps_by_name
from tests.workers.clusters.real_hosts import Slurm, SshHosts
from tests.workers.clusters.trials import output_of

WELL = {
    "Settings": "ok",
    "Reach": "ok",
    "Python": "ok",
    "Start": "ok",
    "Launch command": "ok",
    "MPI hello across two hosts": "ok",
    "Ping-pong between two hosts": "ok",
    "MPI hello across all hosts": "ok",
    "Capture permission": "ok",
    "MPI calls": "ok",
    "Equal hosts": "ok",
    "Offloads": "ok",
    "Link": "ok",
    "Path MTU": "ok",
    "Free disk": "ok",
    "Clocks": "ok",
    "Counters of devices that hosts lack": "skipped",
}


@pytest.fixture
def changed_interface(ssh_hosts: SshHosts) -> Iterator[None]:
    """Offloads on and a smaller MTU on n2."""
    output_of(ssh_hosts.testbed, "ethtool", "-K", "eth0", "tso", "on", "gso", "on", host="n2")
    output_of(ssh_hosts.testbed, "ip", "link", "set", "eth0", "mtu", "1400", host="n2")
    yield
    output_of(ssh_hosts.testbed, "ethtool", "-K", "eth0", "tso", "off", "gso", "off", host="n2")
    output_of(ssh_hosts.testbed, "ip", "link", "set", "eth0", "mtu", "1500", host="n2")


def test_all_is_well_on_hosts_over_ssh(ssh_hosts: SshHosts) -> None:
    steps = steps_by_name("ssh", ssh_hosts.settings(capture="every"))
    assert states(steps) == WELL, steps
    assert steps["Reach"].value == "3 of 3"
    hello = steps["MPI hello across two hosts"]
    assert hello.value.startswith("2 ranks, ")
    assert hello.seen == "Open MPI v4.1.4 on n1, n2: every rank reached all others."
    assert steps["MPI hello across all hosts"].value.startswith("3 ranks, ")
    assert "n1 " in steps["Capture permission"].seen
    assert "n3 " in steps["Capture permission"].seen
    assert "MTU n1 1500 B, n2 1500 B, n3 1500 B" in steps["Link"].seen
    assert steps["Path MTU"].value == "1500 B"
    times = steps["Ping-pong between two hosts"]
    assert re.fullmatch(r"[\d.]+\s.s, [\d.]+\s[MG]bit/s", times.value), times
    assert (steps["Link"].facts["mtu"], steps["Offloads"].facts) == (1500, {"offloads": "off"})
    assert not any(step.remedy or step.commands for step in steps.values())


def test_mpich_meets_too(ssh_hosts: SshHosts) -> None:
    steps = steps_by_name("ssh", ssh_hosts.settings(mpi="mpich"))
    assert states(steps)["MPI hello across two hosts"] == "ok", steps
    assert "MPICH" in steps["MPI hello across two hosts"].seen
    assert states(steps)["Ping-pong between two hosts"] == "ok"
    assert steps["Launch command"].seen == "Hydra 4.0.2."


@pytest.mark.parametrize("launcher", ["mpirun", "srun-pmix"])
def test_all_is_well_on_nodes_of_slurm(launcher: str, slurm: Slurm) -> None:
    steps = steps_by_name("slurm", slurm.settings(launcher=launcher))
    expected = {name: state for name, state in WELL.items() if name != "MPI hello across all hosts"}
    assert states(steps) == {**expected, "Launcher": "ok"}, steps
    assert steps["MPI hello across two hosts"].value.startswith("2 ranks, ")
    assert steps["Launcher"].value == launcher
    assert (
        steps["Launch command"].seen
        == {"mpirun": "mpirun (Open MPI) 4.1.4.", "srun-pmix": "slurm-wlm 22.05.8."}[launcher]
    )
    assert "pmix_v4" not in steps["Launcher"].seen
    assert ("srun-pmix can start ranks too" in steps["Launcher"].seen) == (launcher == "mpirun")


def test_unknown_host_name_is_reported_and_the_others_are_checked(ssh_hosts: SshHosts) -> None:
    steps = steps_by_name(
        "ssh", ssh_hosts.settings(hosts=["n1", "n2", "no-such-host.invalid"], config=None, agent=None)
    )
    assert steps["Reach"].state == "problem"
    assert "cannot be used: its name cannot be resolved." in steps["Reach"].seen
    assert "no-such-host.invalid" in steps["Reach"].seen
    assert "getent hosts no-such-host.invalid" in steps["Reach"].commands
    mixed = steps_by_name("ssh", ssh_hosts.settings(hosts=["n1", "n2", "n9"]))
    assert mixed["Reach"].value == "1 of 3 failed"
    assert "Host n9" in mixed["Reach"].seen
    assert mixed["MPI hello across two hosts"].state == "ok"


def test_refused_key_is_reported_with_a_suggested_fix(ssh_hosts: SshHosts, tmp_path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-N", "", "-f", str(tmp_path / "wrong")], check=True, timeout=60)
    steps = steps_by_name("ssh", ssh_hosts.settings(key=str(tmp_path / "wrong")))
    assert "it refuses the key of this user" in steps["Reach"].seen
    assert steps["Reach"].commands[0] == f"ssh-copy-id -i {tmp_path / 'wrong'} root@n1"
    assert steps["MPI hello across two hosts"].state == "skipped"
    assert steps["MPI hello across two hosts"].seen == "Because no host can be used."


def test_a_host_without_python_is_reported(ssh_hosts: SshHosts) -> None:
    steps = steps_by_name("ssh", ssh_hosts.settings(python="python9"))
    assert steps["Reach"].state == "ok"
    assert steps["Python"].value == "Missing on n1, n2, n3"


def test_a_missing_launch_command_is_reported_with_its_host(ssh_hosts: SshHosts) -> None:
    steps = steps_by_name("ssh", ssh_hosts.settings(mpirun="mpirun-9"))
    assert steps["Launch command"].value == "Missing on 3 hosts"
    assert "on n1, n2, n3" in steps["Launch command"].seen
    assert "“Launch command”" in steps["Launch command"].remedy
    assert steps["MPI hello across two hosts"].state == "skipped"
    assert steps["Link"].state == "ok"


def test_hosts_that_cannot_log_in_to_each_other_are_reported(ssh_hosts: SshHosts) -> None:
    steps = steps_by_name("ssh", ssh_hosts.settings(agent=["ssh", "-o", "BatchMode=yes", "-o", "IdentityFile=none"]))
    hello = steps["MPI hello across two hosts"]
    assert hello.state == "problem"
    assert "log in to the others without a password" in hello.remedy, hello
    assert "ssh -o BatchMode=yes n2 hostname" in hello.commands
    assert steps["MPI hello across all hosts"].seen == "Because it failed on two."


def test_a_launcher_of_another_library_makes_no_world(ssh_hosts: SshHosts, tmp_path: Path) -> None:
    """It starts the ranks side by side, as one of another library does."""
    alone = tmp_path / "mpirun"
    alone.write_text(
        '#!/bin/sh\nwhile [ $# -gt 0 ] && [ "${1##*/}" != python3 ]; do shift; done\n'
        'for rank in 0 1; do OMPI_COMM_WORLD_RANK=$rank "$@"; done\n'
    )
    alone.chmod(0o755)
    hello = steps_by_name("ssh", ssh_hosts.settings(mpirun=str(alone)))["MPI hello across two hosts"]
    assert hello.value == "Not one world", hello
    assert "each found itself in a world of 1" in hello.seen


def test_a_host_that_may_not_record_is_reported_with_what_to_do(ssh_hosts: SshHosts, tmp_path: Path) -> None:
    closed = tmp_path / "dumpcap"
    closed.write_text('#!/bin/sh\n[ "$(hostname)" = n2 ] || exec dumpcap "$@"\necho "not permitted" >&2; exit 1\n')
    closed.chmod(0o755)
    step = steps_by_name("ssh", ssh_hosts.settings(capture="every", capture_command=[str(closed)]))[
        "Capture permission"
    ]
    assert (step.state, step.value) == ("warning", "Missing on n2")
    assert "not permitted" in step.seen
    assert "setcap" in step.commands[0]


@pytest.mark.usefixtures("changed_interface")
def test_offloads_and_different_mtus_are_reported(ssh_hosts: SshHosts) -> None:
    steps = steps_by_name("ssh", ssh_hosts.settings())
    assert (steps["Offloads"].state, steps["Offloads"].value) == ("warning", "On, 1 host")
    assert steps["Offloads"].commands == ("sudo ethtool -K eth0 tso off gso off",)
    assert (steps["Link"].state, steps["Link"].value) == ("warning", "MTU differs")
    assert steps["Link"].facts["mtu"] == 1400
    assert steps["Offloads"].facts == {"offloads": "tso, gso"}
    assert steps["Path MTU"].state == "warning", steps["Path MTU"]
    assert 1400 <= int(steps["Path MTU"].value.partition(" ")[0].replace("\u202f", "")) < 1500


@pytest.mark.usefixtures("changed_interface")
def test_offloads_that_trials_switch_off_are_well_and_back_on_afterwards(ssh_hosts: SshHosts) -> None:
    assert steps_by_name("ssh", ssh_hosts.settings(offloads="off"))["Offloads"].value == "Off"
    assert "tcp-segmentation-offload: on" in output_of(ssh_hosts.testbed, "ethtool", "-k", "eth0", host="n2")


@pytest.mark.usefixtures("changed_interface")
def test_a_host_where_they_cannot_be_switched_off_is_reported(ssh_hosts: SshHosts) -> None:
    step = steps_by_name("ssh", ssh_hosts.settings(offloads="off", offload_command=["sudo-9", "ethtool"]))["Offloads"]
    assert (step.state, step.value) == ("warning", "Cannot be switched off on n1, n2, n3")
    assert "No such file" in step.seen
    assert "sudo -n ethtool" in step.remedy


def test_a_partition_that_slurm_does_not_know_is_reported(slurm: Slurm) -> None:
    steps = steps_by_name("slurm", slurm.settings(partition="gpu"))
    assert steps["Start"].state == "problem"
    assert steps["Start"].seen.startswith("Slurm did not accept the job: ")
    assert steps["MPI hello across two hosts"].seen == "Because the hosts could not be kept ready."


def test_a_login_host_that_refuses_is_reported(slurm: Slurm) -> None:
    settings: dict[str, Any] = slurm.settings()
    steps = steps_by_name("slurm", {**settings, "login": {**settings["login"], "port": 2299}})
    assert "Host n1 cannot be used: Connection refused." in steps["Reach"].seen
    assert steps["Start"].state == "skipped" if "Start" in steps else True
