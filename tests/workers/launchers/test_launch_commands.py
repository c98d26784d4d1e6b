"""The exact command of each launcher: the preview shows the command that runs."""

from __future__ import annotations

import dataclasses
import ipaddress
import subprocess
from pathlib import Path

import pytest

from experiments import cluster_kinds
from experiments.cluster_kinds.testbed import MOST_HOSTS
from tests.workers.launchers.commands import RANK, SSH, WATER, words
from workers import launchers
from workers.errors import ClusterUnavailable
from workers.launchers import Job
from workers.launchers.job import Launch
from workers.launchers.local import capture_filter
from workers.launchers.mpi import over_tcp
from workers.launchers.schedulers.launcher import Allocation
from workers.launchers.slurm import SlurmLauncher, sbatch_argv, squeue_argv
from workers.launchers.ssh import SshLauncher
from workers.testbed.plan import address

FIRST_HOST = words("""
    mpirun --allow-run-as-root -np 4 --host n1:2,n2:2 --map-by slot
    --mca plm rsh --mca plm_rsh_agent /trial/rsh --mca plm_rsh_no_tree_spawn 1 --mca ras ^slurm
""")
OVER_TCP = words("""
    --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include eth2
    --mca btl_tcp_port_min_v4 30000 --mca btl_tcp_port_range_v4 100
""")
CONTROL = words("--mca oob_tcp_if_include eth2 --mca oob_tcp_dynamic_ipv4_ports 21000-21015")
EXPORTS = ["-x", "A=two words", "-x", "OMP_NUM_THREADS=1"]


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
        open_mpi=4,
    )
    command = words("""
        mpirun --allow-run-as-root -np 4 --host localhost:4 --map-by slot --bind-to none --mca mpi_yield_when_idle 1
        --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include lo
        --mca btl_tcp_port_min_v4 20000 --mca btl_tcp_port_range_v4 1000
        --mca oob_tcp_if_include lo --mca oob_tcp_dynamic_ipv4_ports 21000-21015
    """)
    assert launchers.get("local").argv(job) == [*command, *RANK]


def test_the_ssh_launcher_starts_the_first_host_which_reaches_the_others() -> None:
    launcher = launchers.get("ssh", {**SSH, "interface": "eth2", "transport": "tcp"})
    assert launcher.argv(WATER) == [*FIRST_HOST, *OVER_TCP, *CONTROL, *EXPORTS, *RANK]


@pytest.mark.parametrize("kind", ["ssh", "slurm", "pbs", "lsf", "flux", "gridengine"])
def test_real_hosts_leave_the_network_to_the_library(kind: str) -> None:
    settings = {"ssh": SSH, "gridengine": {"parallel_environment": "whole"}}.get(kind, {})
    launcher = launchers.get(kind, {**settings, "interface": "eth2"})
    assert launcher.argv(WATER) == [*FIRST_HOST, *CONTROL, *EXPORTS, *RANK]
    job = dataclasses.replace(WATER, transport="tcp")
    assert launcher.argv(job) == [*FIRST_HOST, *OVER_TCP, *CONTROL, *EXPORTS, *RANK]


def test_a_transport_of_ones_own_adds_its_variables_and_arguments() -> None:
    job = dataclasses.replace(WATER, transport="ucx: UCX_TLS=tcp,self --mca pml ucx")
    launcher = launchers.get("ssh", {**SSH, "interface": "eth2"})
    exports = ["-x", "A=two words", "-x", "OMP_NUM_THREADS=1", "-x", "UCX_TLS=tcp,self"]
    assert launcher.argv(job) == [*FIRST_HOST, *CONTROL, "--mca", "pml", "ucx", *exports, *RANK]
    over_hydra = launchers.get("ssh", {**SSH, "mpi": "mpich"}).argv(dataclasses.replace(job, transport="x: A=b -v"))
    assert over_hydra[-len(RANK) - 1 :] == ["-v", *RANK]


def test_native_hydra_shares_memory_and_over_tcp_it_does_not() -> None:
    launcher = launchers.get("ssh", {**SSH, "mpi": "mpich", "interface": "eth2"})
    assert not {"MPIR_CVAR_NOLOCAL", "UCX_TLS", "FI_PROVIDER"} & {*launcher.argv(WATER)}
    command = launcher.argv(dataclasses.replace(WATER, transport="tcp"))
    assert command[command.index("MPIR_CVAR_NOLOCAL") + 1] == "1"
    assert command[command.index("UCX_NET_DEVICES") + 1] == "eth2"


@pytest.mark.parametrize(
    ("transport", "variable", "part"),
    [
        ("tcp", "OMPI_MCA_btl", "the transport tcp sets it"),
        ("ucx: --mca pml ucx", "OMPI_MCA_pml", "the transport ucx sets it"),
        ("ucx: UCX_TLS=rc", "UCX_TLS", "the transport ucx sets it to another value"),
        ("native", "OMPI_MCA_plm", "Rankwire starts the library's daemons itself"),
    ],
)
def test_a_variable_without_effect_is_refused(transport: str, variable: str, part: str) -> None:
    launcher = launchers.get("ssh", {**SSH, "environment": {variable: "x"}})
    (refusal,) = launcher.launch_refusals(dataclasses.replace(WATER, transport=transport))
    assert refusal.startswith(f"The variable {variable} would have no effect: ")
    assert part in refusal


@pytest.mark.parametrize(
    ("library", "version", "bind", "threads", "expected"),
    [
        ("openmpi", 4, "socket", 1, "--map-by node --bind-to socket"),
        ("openmpi", 5, "socket", 1, "--map-by node --bind-to package"),
        ("openmpi", 4, "core", 2, "--map-by node:PE=2 --bind-to core"),
        ("openmpi", 4, "none", 1, "--map-by node --bind-to none"),
        ("openmpi", 4, "default", 2, "--map-by node --bind-to none"),
        ("openmpi", 4, "default", 1, "--map-by node"),
        ("mpich", 4, "numa", 1, "-ppn 1 -n 4 -bind-to numa"),
        ("mpich", 4, "core", 2, "-ppn 1 -n 4 -bind-to core:2"),
        ("mpich", 4, "default", 2, "-ppn 1 -n 4"),
    ],
)
def test_ranks_are_bound_and_distributed(library: str, version: int, bind: str, threads: int, expected: str) -> None:
    launcher = launchers.get("ssh", {**SSH, "mpi": library, "distribution": "cyclic"})
    job = dataclasses.replace(WATER, environment={}, bind=bind, threads=threads, open_mpi=version)
    command = launcher.argv(job)
    assert f" {expected} " in f" {' '.join(command)} "
    assert ("bind-to" in " ".join(command)) == ("bind-to" in expected)
    assert launcher.launch_refusals(job) == []


def test_a_binding_that_the_launch_command_cannot_keep_is_refused() -> None:
    launcher = launchers.get("ssh", {**SSH, "mpi": "intelmpi"})
    (refusal,) = launcher.launch_refusals(dataclasses.replace(WATER, bind="core"))
    assert refusal.startswith("Ranks of intelmpi cannot be bound by “bind”.")
    assert launcher.launch_refusals(WATER) == []


def test_variables_of_the_user_win_over_native() -> None:
    variables = {"OMPI_MCA_btl": "self,vader", "UCX_TLS": "rc", "OMPI_MCA_oob_tcp_if_include": "ib0"}
    launcher = launchers.get("ssh", {**SSH, "interface": "eth2"})
    job = dataclasses.replace(WATER, environment=variables)
    assert launcher.launch_refusals(job) == []
    assert not {"btl", "oob_tcp_if_include"} & {*launcher.argv(job)}


def test_hydra_launches_mpich_and_its_relatives() -> None:
    command = words("mpiexec.hydra -launcher ssh -launcher-exec /trial/rsh -hosts n1,n2 -ppn 2 -n 4")
    exports = ["-genv", "A", "two words", "-genv", "OMP_NUM_THREADS", "1"]
    for library in ("mpich", "intelmpi", "mvapich2"):
        assert launchers.get("ssh", {**SSH, "mpi": library}).argv(WATER) == [*command, *exports, *RANK]


def test_hydra_on_this_machine_sends_over_tcp_alone() -> None:
    job = dataclasses.replace(WATER, launch=Launch("mpich", "/opt/mpich/bin/mpiexec.hydra"))
    command = launchers.get("testbed").argv(job)
    agent = "/opt/mpich/bin/mpiexec.hydra -launcher ssh -launcher-exec /run/rankwire/rsh -iface eth0 -hosts n1,n2 -ppn 2 -n 4"
    assert command[:13] == words(agent)
    answer = {
        name: value for word, name, value in zip(command, command[1:], command[2:], strict=False) if word == "-genv"
    }
    assert (answer["A"], answer["UCX_TLS"], answer["FI_PROVIDER"]) == ("two words", "tcp,self", "tcp")
    assert (answer["UCX_NET_DEVICES"], answer["UCX_TCP_PORT_RANGE"]) == ("eth0", "30000-30099")
    assert command[-len(RANK) :] == RANK
    alone = dataclasses.replace(job, hosts=("localhost",))
    here = launchers.get("local").argv(alone)
    assert here[:5] == words("/opt/mpich/bin/mpiexec.hydra -launcher fork -iface lo")


@pytest.mark.parametrize("kind", ["local", "testbed", "ssh"])
def test_variables_that_lead_away_from_tcp_are_refused(kind: str) -> None:
    launcher = launchers.get(kind, SSH if kind == "ssh" else {})
    hydra = dataclasses.replace(WATER, launch=Launch("mpich", "mpiexec.hydra"), transport="tcp")
    for name in over_tcp(hydra.btl_ports, "eth0"):
        job = dataclasses.replace(hydra, environment={name: "other"})
        (refusal,) = launcher.launch_refusals(job)
        assert refusal.startswith(f"The variable {name} would have no effect: the transport tcp sets it.")
        for other in (dataclasses.replace(job, transport="native"), dataclasses.replace(job, launch=Launch())):
            assert launcher.launch_refusals(other) == []


def test_hosts_are_reached_by_an_ssh_that_never_asks() -> None:
    launcher = launchers.get("ssh", {**SSH, "user": "lab", "port": 2222, "key": "/k", "config": "/c"})
    assert isinstance(launcher, SshLauncher)
    *ssh, start = launcher.connection("n1")
    assert ssh == words("""
        ssh -T -F /c -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=5 -o ServerAliveCountMax=3
        -o IdentitiesOnly=yes -p 2222 -l lab -i /k -a n1
    """)
    assert start.startswith("exec python3 -I -S -c 'import os, sys")
    assert launcher.settings.between_hosts == ("ssh", "-x", "-o", "BatchMode=yes", "-p", "2222", "-l", "lab")


def test_slurm_is_requested_nodes_of_our_own() -> None:
    settings = {"partition": "short", "account": "lab", "time_limit": "30", "options": ["--nice=10"]}
    launcher = launchers.get("slurm", settings)
    assert isinstance(launcher, SlurmLauncher)
    assert sbatch_argv(launcher.settings, 4, "rankwire-1") == words("""
        sbatch --parsable --job-name=rankwire-1 --no-requeue --exclusive --nodes=4 --output=/dev/null --chdir=/
        --partition=short --account=lab --time=30 --nice=10
    """)
    allocation = Allocation(launcher.queue, "12", ("n3", "n4"), Path("/scratch/rankwire-1"))
    assert launcher.connection(allocation, "n3")[:-2] == words("""
        srun --jobid=12 --overlap --nodes=1 --ntasks=1 --nodelist=n3 --cpu-bind=none --mpi=none --mem=0
        python3 -I -S
    """)
    assert squeue_argv(["7", "12"]) == words("squeue --noheader --states=all --jobs=7,12 --format=%i|%T|%r|%N")
    assert launcher.remote_shell(allocation).splitlines()[-1] == (
        'exec srun --jobid=12 --overlap --nodes=1 --ntasks=1 --nodelist="$node" --cpu-bind=none --mpi=none --mem=0 '
        '--input=none sh -c "$*"'
    )


def test_the_preview_of_slurm_shows_what_is_asked_of_it_and_what_only_the_nodes_know() -> None:
    settings = {"partition": "short", "account": "lab", "time_limit": "30", "scratch": "/scratch"}
    rehearsal = launchers.get("slurm", settings).rehearse(dataclasses.replace(WATER, open_mpi=None))
    assert rehearsal.preparation == [
        words("""
        sbatch --parsable --job-name=rankwire-RANDOM --no-requeue --exclusive --nodes=2 --output=/dev/null --chdir=/
        --partition=short --account=lab --time=30
    """)
    ]
    assert rehearsal.argv[-8:] == words(
        "python3 -I -S /scratch/rankwire-RANDOM/rank.py /scratch/rankwire-RANDOM/ranks lmp -in in.water"
    )
    assert "--mca plm_rsh_agent /scratch/rankwire-RANDOM/rsh" in " ".join(rehearsal.argv)
    assert "--mca oob_tcp_if_include INTERFACE" in " ".join(rehearsal.argv)
    assert rehearsal.notes == [
        "n1 to n2 are the nodes that Slurm allocates and names.",
        "/scratch/rankwire-RANDOM is made on every host, under a random name.",
        "INTERFACE is the one through which the first host reaches the second.",
        "The first host determines the program's MPI library and its launch command; these are the arguments for "
        "Open MPI 4.",
    ]


def test_the_preview_of_a_login_host_shows_how_slurm_is_reached() -> None:
    launcher = launchers.get("slurm", {"login": {"host": "gate", "user": "lab"}, "interface": "ib0", "mpi": "mpich"})
    rehearsal = launcher.rehearse(dataclasses.replace(WATER, hosts=("node1",)))
    ((ssh, *_, host, command),) = rehearsal.preparation
    assert (ssh, host) == ("ssh", "gate")
    assert command.startswith("exec sbatch --parsable")
    assert rehearsal.notes == [
        "node1 is the node that Slurm allocates and names.",
        "/tmp/rankwire-RANDOM is made on every host, under a random name.",  # noqa: S108 - the default of the setting
    ]


def test_the_registry_knows_its_kinds_and_reports_it() -> None:
    settings = {"ssh": SSH, "gridengine": {"parallel_environment": "whole"}}
    for kind in cluster_kinds.registry():
        assert isinstance(launchers.get(kind.name, settings.get(kind.name)).kind, type(kind))
    with pytest.raises(ClusterUnavailable, match="“cloud”, only testbed, local, ssh, slurm"):
        launchers.get("cloud")


def test_a_test_bed_has_an_address_for_every_host_that_it_may_have() -> None:
    broadcast = ipaddress.ip_interface(f"{address(1)}/24").network.broadcast_address
    assert ipaddress.ip_address(address(1)) < ipaddress.ip_address(address(MOST_HOSTS)) < broadcast


@pytest.mark.parametrize(
    "words",
    [
        ["n2", "proxy --id 1"],
        ["-x", "n2", "proxy", "--id", "1"],
        ["-q", "-x", "n2", "proxy", "--id", "1"],
        ["-x", "-l", "mpi", "-o", "BatchMode=yes", "n2", "proxy", "--id", "1"],
    ],
    ids=["Open MPI", "MPICH", "Intel MPI", "options with values"],
)
def test_the_agent_of_slurm_finds_the_node_behind_the_options_of_an_ssh(words: list[str], tmp_path: Path) -> None:
    agent, srun = tmp_path / "rsh", tmp_path / "srun"
    launcher = launchers.get("slurm")
    assert isinstance(launcher, SlurmLauncher)
    agent.write_text(launcher.remote_shell(Allocation(launcher.queue, "12", ("n1", "n2"), tmp_path)))
    srun.write_text('#!/bin/sh\nfor word; do echo "$word"; done\n')
    for script in (agent, srun):
        script.chmod(0o755)
    answer = subprocess.run(
        [str(agent), *words], env={"PATH": f"{tmp_path}:/bin"}, capture_output=True, text=True, check=True, timeout=60
    ).stdout.splitlines()
    assert "--nodelist=n2" in answer
    assert answer[-3:] == ["sh", "-c", "proxy --id 1"]


@pytest.mark.parametrize(
    ("known_ports", "confined", "is_bounded"), [(True, True, True), (False, True, False), (False, False, True)]
)
def test_other_traffic_of_a_shared_loopback_is_never_recorded(
    known_ports: bool, confined: bool, is_bounded: bool
) -> None:
    assert ("portrange" in capture_filter(known_ports=known_ports, confined=confined)) is is_bounded
