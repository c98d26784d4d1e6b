"""Open MPI 5 starts ranks with PRRTE: other parameters, same launch."""

from __future__ import annotations

import dataclasses
import re
import subprocess

import pytest

from tests.workers.launchers.commands import RANK, SSH, WATER, words
from workers import launchers
from workers.launchers import openmpi

JOB = dataclasses.replace(WATER, environment={}, open_mpi=5)
MESSAGES = "--mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include {} "
PORTS = "--mca btl_tcp_port_min_v4 30000 --mca btl_tcp_port_range_v4 100 "
CONTROL = "--prtemca prte_if_include {} --prtemca oob_tcp_dynamic_ipv4_ports 21000-21015"


def network(interface: str) -> str:
    return (MESSAGES + PORTS + CONTROL).format(interface, interface)


def test_it_uses_our_agent_for_all_hosts_on_the_testbed() -> None:
    command = words(f"""
        mpirun --allow-run-as-root -np 4 --host n1:2,n2:2 --map-by slot --bind-to none --mca mpi_yield_when_idle 1
        --prtemca plm ssh --prtemca plm_ssh_agent /run/rankwire/rsh --prtemca plm_ssh_no_tree_spawn 1
        {network("eth0")}
    """)
    assert launchers.get("testbed").argv(JOB) == [*command, *RANK]


def test_it_stays_on_the_loopback_interface_on_this_machine_alone() -> None:
    job = dataclasses.replace(JOB, hosts=("localhost",), ranks_per_host=4)
    command = words(f"""
        mpirun --allow-run-as-root -np 4 --host localhost:4 --map-by slot --bind-to none --mca mpi_yield_when_idle 1
        {network("lo").replace("--prtemca prte_if_include lo ", "")}
    """)
    assert launchers.get("local").argv(job) == [*command, *RANK]


def test_it_leaves_slurm_out_on_real_hosts() -> None:
    command = words(f"""
        mpirun --allow-run-as-root -np 4 --host n1:2,n2:2 --map-by slot
        --prtemca plm ssh --prtemca plm_ssh_agent /trial/rsh --prtemca plm_ssh_no_tree_spawn 1 --prtemca ras ^slurm
        {network("eth2")}
    """)
    assert launchers.get("ssh", {**SSH, "interface": "eth2", "transport": "tcp"}).argv(JOB) == [*command, *RANK]


def test_without_a_known_interface_the_library_chooses() -> None:
    for version in (4, 5):
        command = launchers.get("ssh", SSH).argv(dataclasses.replace(JOB, open_mpi=version))
        assert not [word for word in command if word.endswith("if_include")]


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/\n", 4),
        ("mpirun (Open MPI) 5.0.7\n\nReport bugs to https://www.open-mpi.org/community/help/\n", 5),
        ("mpirun (Open MPI) 10.0.0rc1\n", 10),
        ("HYDRA build details:\n    Version:   4.0.2\n", None),
        ("", None),
    ],
)
def test_the_version_is_what_mpirun_says(said: str, version: int | None) -> None:
    assert openmpi.major(said) == version


def test_this_machine_is_asked_itself() -> None:
    said = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=True).stdout
    major = re.search(r"(\d+)\.", said)
    assert major is not None
    assert openmpi.installed() == int(major[1])
    assert launchers.get("testbed").argv(dataclasses.replace(JOB, open_mpi=None)) == launchers.get("testbed").argv(
        dataclasses.replace(JOB, open_mpi=int(major[1]))
    )
