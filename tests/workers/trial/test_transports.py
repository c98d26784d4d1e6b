"""Transports on real hosts: the library's own choice, TCP, and a site's own."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

import pytest

from experiments.models import Cluster, State, Trial
from tests.workers.clusters.real_hosts import Slurm, SshHosts
from tests.workers.clusters.trials import PlainLink, run
from tests.workers.profile import newer
from workers import launchers
from workers.cluster_check.hello import LARGE_BYTES
from workers.cluster_check.world import HELLO
from workers.launchers import Job
from workers.trial.inside_mpi import profile_for, read_observed_transport
from workers.trial.rank_usage import read_rank_usage

SMALL = {"workload": "pingpong", "parameters": {"message_bytes": 8, "repetitions": 300}, "repetitions": 1}
LARGE = {"workload": "pingpong", "parameters": {"message_bytes": 1_000_000, "repetitions": 20}, "repetitions": 1}
OVER_UCX = {
    "name": "ucx",
    "environment": {"UCX_TLS": "tcp,self"},
    "arguments": ["--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any"],
}


def cluster_of(kind: str, settings: dict[str, Any]) -> str:
    return Cluster.objects.create(slug=f"real-{kind}", name="Real hosts", kind=kind, settings=settings).slug


def values_of(trial: Trial, scope: str = "all") -> dict[str, float]:
    assert trial.state == State.FINISHED, trial.message + trial.traceback
    return dict(trial.measurements.filter(scope=scope).values_list("metric", "value"))


@pytest.mark.parametrize("kind", ["ssh", "slurm"])
def test_ranks_of_one_host_share_memory_unless_tcp_is_chosen(
    kind: str, run_all: Callable[..., list[Trial]], ssh_hosts: SshHosts, request: pytest.FixtureRequest
) -> None:
    cluster: SshHosts | Slurm = ssh_hosts if kind == "ssh" else request.getfixturevalue("slurm")
    settings = cluster.settings(shared_cores=False)
    del settings["transport"], settings["interface"]
    slug = cluster_of(kind, settings)
    sweep = {"ranks_per_host": [2], "transport": ["native", "tcp"]}
    native, tcp = run_all(cluster=slug, **SMALL, sweep=sweep)
    median = "pingpong.transfer_time_median_s"
    assert values_of(native)[median] < values_of(tcp)[median]
    assert values_of(tcp, "mpi")["packets"] > 500
    assert "packets" not in values_of(native)
    assert native.trust == "good", native.trust_reasons
    assert "lo" in native.not_available["packets"]
    assert (native.conditions["transport"], tcp.conditions["transport"]) == ("native", "tcp")
    assert native.conditions["messages_by"] == "shared memory (Open MPI), by Open MPI's ob1"
    assert tcp.conditions["messages_by"].startswith("TCP (")
    assert native.configuration.parameters["transport"] == "native"


def test_packets_are_recorded_if_the_native_network_is_the_interface(
    run_all: Callable[..., list[Trial]], ssh_hosts: SshHosts
) -> None:
    slug = cluster_of("ssh", ssh_hosts.settings(transport="native"))
    (trial,) = run_all(cluster=slug, **LARGE, sweep={"hosts": [2]})
    assert values_of(trial, "mpi")["payload_bytes"] > 40_000_000
    assert trial.trust == "good", trial.trust_reasons
    assert trial.conditions["messages_by"].startswith("TCP (4")
    assert trial.environment is not None
    assert trial.environment.facts["transport"] == "native"


def test_a_transport_of_ones_own_is_recognised_by_its_packets(
    run_all: Callable[..., list[Trial]], ssh_hosts: SshHosts
) -> None:
    slug = cluster_of("ssh", ssh_hosts.settings(transport="native"))
    (trial,) = run_all(cluster=slug, **LARGE, sweep={"hosts": [2]}, transport=OVER_UCX)
    assert "pml" in trial.command
    assert values_of(trial, "mpi")["payload_bytes"] > 40_000_000
    assert trial.trust == "good", trial.trust_reasons
    assert trial.conditions["messages_by"].startswith("TCP (4")
    assert trial.conditions["messages_by"].endswith("by Open MPI's ucx")
    assert "transport" not in trial.environment.facts


def test_a_variable_without_effect_fails_the_trial(run_all: Callable[..., list[Trial]], ssh_hosts: SshHosts) -> None:
    slug = cluster_of("ssh", ssh_hosts.settings(environment={"OMPI_MCA_btl": "self,vader"}))
    (trial,) = run_all(cluster=slug, **SMALL, sweep={"hosts": [2]})
    assert trial.state == State.FAILED
    assert trial.message.startswith("The variable OMPI_MCA_btl would have no effect: the transport tcp sets it.")


@pytest.mark.parametrize(("kind", "library"), [("ssh", "openmpi"), ("ssh", "mpich"), ("slurm", "mpich")])
def test_both_libraries_share_memory_unless_tcp_is_chosen(
    kind: str, library: str, ssh_hosts: SshHosts, make_job: Callable[..., Job], request: pytest.FixtureRequest
) -> None:
    cluster: SshHosts | Slurm = ssh_hosts if kind == "ssh" else request.getfixturevalue("slurm")
    transports = {}
    for transport in ("native", "tcp"):
        settings = cluster.settings(mpi=library, transport=transport, shared_cores=False)
        with launchers.get(kind, settings).open(host_count=1, link=PlainLink()) as session:
            words = (sys.executable, "-I", "-S", "hello.py", session.usual_launch.program)
            job = make_job(session, *words, hosts=1, ranks_per_host=2)
            job = dataclasses.replace(job, profile=profile_for("summary", session)[0])
            (job.workdir / "hello.py").write_bytes(HELLO.read_bytes())
            status, _, err = run(session, job)
            assert status == 0, err
        transports[transport] = read_observed_transport(job.report_dir, read_rank_usage(job.report_dir))
    assert transports["native"].shared_memory
    assert not transports["native"].tcp_bytes
    assert not transports["tcp"].shared_memory
    assert transports["tcp"].tcp_bytes > 6 * LARGE_BYTES


def test_the_test_bed_can_leave_the_network_to_the_library(run_all: Callable[..., list[Trial]]) -> None:
    sweep = {"hosts": [2], "transport": ["native", "tcp"]}
    trials = run_all(cluster="testbed", **LARGE, sweep=sweep)
    for trial in trials:
        assert values_of(trial, "mpi")["payload_bytes"] > 40_000_000
        assert trial.trust == "good", trial.trust_reasons
    assert [trial.conditions["transport"] for trial in trials] == ["native", "tcp"]


def test_open_mpi_5_shares_memory_and_is_heard_over_tcp(
    run_all: Callable[..., list[Trial]], ssh_hosts: SshHosts
) -> None:
    prefix = newer.prefix()
    settings = ssh_hosts.settings(
        mpi="openmpi",
        mpirun=str(prefix / "bin/ompirun_wrapper"),
        environment={"OPAL_PREFIX": str(prefix), "LD_LIBRARY_PATH": str(prefix / "lib")},
        shared_cores=False,
    )
    del settings["transport"], settings["interface"]
    slug = cluster_of("ssh", settings)
    sweep = {"ranks_per_host": [2], "transport": ["native", "tcp"]}
    native, tcp = run_all(cluster=slug, **SMALL, sweep=sweep)
    median = "pingpong.transfer_time_median_s"
    assert values_of(native)[median] < values_of(tcp)[median]
    assert "--prtemca" in tcp.command
    assert "Open MPI) 5" in tcp.environment.facts["mpi"]
    assert values_of(tcp, "mpi")["packets"] > 500
    assert native.conditions["messages_by"].startswith("shared memory (Open MPI)")
    assert tcp.conditions["messages_by"].startswith("TCP (")
    (across,) = run_all(cluster=slug, **LARGE, sweep={"hosts": [2]}, bind="none", transport="tcp")
    assert values_of(across, "mpi")["payload_bytes"] > 40_000_000
    assert across.trust == "good", across.trust_reasons
