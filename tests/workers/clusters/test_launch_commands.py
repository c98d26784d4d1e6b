"""The exact command of each launcher: what the preview shows is what runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from workers import launchers
from workers.errors import ClusterUnavailable
from workers.launchers import Job
from workers.launchers.base import WRAPPER

WATER = Job(
    program=("lmp", "-in", "in.water"),
    ranks=4,
    ranks_per_host=2,
    hosts=("n1", "n2"),
    workdir=Path("/trial/work"),
    report_dir=Path("/trial/ranks"),
    environment={"OMP_NUM_THREADS": "1", "A": "two words"},
    btl_ports=(30000, 100),
)
RANK = ["/usr/bin/python3", "-I", "-S", str(WRAPPER), "/trial/ranks", "lmp", "-in", "in.water"]


def words(command: str) -> list[str]:
    return command.split()


def test_the_testbed_launcher_pins_mpi_to_the_virtual_network() -> None:
    command = words("""
        mpirun --allow-run-as-root -np 4 --host n1:2,n2:2 --map-by slot --bind-to none --mca mpi_yield_when_idle 1
        --mca plm rsh --mca plm_rsh_agent /run/rankwire/rsh --mca plm_rsh_no_tree_spawn 1
        --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include eth0
        --mca btl_tcp_port_min_v4 30000 --mca btl_tcp_port_range_v4 100
        --mca oob_tcp_if_include eth0 --mca oob_tcp_dynamic_ipv4_ports 21000-21015
    """)
    exports = ["-x", "A=two words", "-x", "OMP_NUM_THREADS=1"]
    assert launchers.get("testbed").argv(WATER) == [*command, *exports, *RANK]


def test_the_local_launcher_pins_mpi_to_the_loopback_interface() -> None:
    job = Job(
        program=WATER.program,
        ranks=4,
        ranks_per_host=4,
        hosts=launchers.get("local").host_names(1),
        workdir=WATER.workdir,
        report_dir=WATER.report_dir,
    )
    command = words("""
        mpirun --allow-run-as-root -np 4 --host localhost:4 --map-by slot --bind-to none --mca mpi_yield_when_idle 1
        --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include lo
        --mca btl_tcp_port_min_v4 20000 --mca btl_tcp_port_range_v4 1000
        --mca oob_tcp_if_include lo --mca oob_tcp_dynamic_ipv4_ports 21000-21015
    """)
    assert launchers.get("local").argv(job) == [*command, *RANK]


def test_the_registry_knows_its_kinds_and_says_so() -> None:
    assert launchers.kinds() == ("testbed", "local")
    assert [launchers.get(kind).kind for kind in launchers.kinds()] == list(launchers.kinds())
    with pytest.raises(ClusterUnavailable, match="“cloud”, only testbed, local"):
        launchers.get("cloud")


def test_host_names_follow_the_kind() -> None:
    assert launchers.get("testbed").host_names(3) == ("n1", "n2", "n3")
    assert launchers.get("local").host_names(1) == ("localhost",)
