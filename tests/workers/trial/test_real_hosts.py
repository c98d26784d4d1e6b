"""A trial from queue to measurements on ssh hosts and a real Slurm."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

import analysis
from experiments.files import trial_directory
from experiments.models import Cluster, Lease, State, Trial
from tests.workers.clusters.real_hosts import Slurm, SshHosts
from workers.capture.stored_capture import SHARES
from workers.launchers import BTL_PORTS

WATER = {"workload": "water", "parameters": {"molecules": 64, "steps": 20}, "sweep": {"hosts": [3]}}
PINGPONG = {"workload": "pingpong", "sweep": {"hosts": [2]}}
TALK_UNTIL_STOPPED = """\
import os, time
from mpi4py import MPI
world, end = MPI.COMM_WORLD, time.monotonic() + 45
while world.bcast(not os.path.exists("{stop_file}") and time.monotonic() < end):
    world.allgather(bytes(10_000))
    time.sleep(0.005)
if world.rank == 0:
    print("answer 42", flush=True)
"""
LIVE_LIMIT_S = 40.0
MPI_PORTS = (BTL_PORTS[0], sum(BTL_PORTS) - 1)


def add_cluster(kind: str, settings: dict[str, Any]) -> str:
    return Cluster.objects.create(slug=f"real-{kind}", name="Real hosts", kind=kind, settings=settings).slug


def require_result(trial: Trial) -> None:
    assert trial.state == State.FINISHED, trial.message + trial.traceback
    values = dict(trial.measurements.filter(scope="all").values_list("metric", "value"))
    assert values["packets"] > 100
    assert values["cpu_s"] > 0
    assert 0 < values["water.loop_time_s"] < values["elapsed_s"]
    assert 0 < values["mpi_parallel_efficiency"] <= 1, trial.not_available
    assert values["mpi_messages"] > 100
    assert trial.environment is not None
    assert not Lease.objects.exists()


def test_it_measures_on_hosts_over_ssh(run_all: Callable[..., list[Trial]], ssh_hosts: SshHosts) -> None:
    slug = add_cluster("ssh", ssh_hosts.settings())
    with ssh_hosts.testbed.capture() as between:  # the switch between the hosts sees every frame once
        (trial,) = run_all(cluster=slug, **WATER)
        between.stop()
        stored = between.save(trial_directory(trial) / "between.pcapng.zst")
    require_result(trial)
    assert not (trial_directory(trial) / SHARES).exists()
    assert (trial.trust, trial.trust_reasons) == ("good", [])
    assert trial.conditions["hosts"] == ["n1", "n2", "n3"]
    names = set(trial.artifacts.filter(kind="capture").values_list("name", flat=True))
    assert names == {"capture.pcapng.zst", *(f"capture-{host}.pcapng.zst" for host in ("n1", "n2", "n3"))}
    truth = analysis.analyse(stored, mpi_ports=MPI_PORTS).mpi.metrics
    answer = dict(trial.measurements.filter(scope="mpi").values_list("metric", "value"))
    for metric in ("packets", "wire_bytes", "payload_bytes"):
        assert answer[metric] == truth[metric]
    joined = trial.conditions["joined"]
    assert joined["hosts"] == ["n1", "n2", "n3"]
    for clock in joined["clocks"].values():  # one machine, one clock
        assert abs(clock["offset_s"]) <= clock["unsure_s"] + 1e-6


def test_the_first_host_alone_sees_nothing_of_what_the_others_say_to_each_other(
    run_all: Callable[..., list[Trial]], ssh_hosts: SshHosts
) -> None:
    slug = add_cluster("ssh", ssh_hosts.settings(capture="first"))
    (trial,) = run_all(cluster=slug, **WATER)
    require_result(trial)
    assert trial.trust == "degraded"
    assert "analysed from host n1 alone" in " ".join(trial.trust_reasons)
    assert "joined" not in trial.conditions


def test_it_measures_on_nodes_of_slurm(run_all: Callable[..., list[Trial]], slurm: Slurm) -> None:
    slug = add_cluster("slurm", slurm.settings())
    (trial,) = run_all(cluster=slug, **WATER)
    require_result(trial)
    assert trial.conditions["slurm_job"].isdigit()
    # Three nodes, though the partition would let a job have four; suggestions rest on it.
    assert trial.conditions["partition"] == {"name": "short", "hosts": 3}
    assert trial.experiment.cluster.hosts_to_suggest == 3


def see_it_run(browser: Client, stop_file: Path) -> tuple[dict[str, Any], str]:
    """Return progress and page of the running trial once it has rates; then stop it."""
    deadline = time.monotonic() + LIVE_LIMIT_S
    try:
        while time.monotonic() < deadline:
            for trial in Trial.objects.filter(state=State.RUNNING):
                if trial.progress.get("pps"):
                    return trial.progress, browser.get(reverse("trial-live", args=[trial.pk])).content.decode()
            time.sleep(0.05)
        pytest.fail(
            f"no rates in {LIVE_LIMIT_S:g} s: {list(Trial.objects.values_list('state', 'progress', 'message'))}"
        )
    finally:
        stop_file.touch()
        connection.close()


@pytest.mark.parametrize("kind", ["ssh", "slurm"])
def test_it_shows_rates_of_the_interfaces_and_cpu_of_every_host_while_it_runs(
    kind: str,
    run_all: Callable[..., list[Trial]],
    script_workload: object,
    ssh_hosts: SshHosts,
    admin_client: Client,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    cluster: SshHosts | Slurm = ssh_hosts if kind == "ssh" else request.getfixturevalue("slurm")
    slug, stop_file = add_cluster(kind, cluster.settings()), tmp_path / "stop"
    parameters = {"script": TALK_UNTIL_STOPPED.format(stop_file=stop_file)}
    with ThreadPoolExecutor(1) as parallel:
        seen = parallel.submit(see_it_run, admin_client, stop_file)
        (trial,) = run_all(cluster=slug, workload="script", parameters=parameters, sweep={"hosts": [3]})
    progress, html = seen.result()
    assert trial.state == State.FINISHED, trial.message + trial.traceback
    assert (progress["packets"], progress["from"]) == (None, "interfaces")
    assert progress["Bps"] / progress["pps"] > 40  # an Ethernet header and IP's come before anything else
    assert [row["host"] for row in progress["hosts"]] == ["n1", "n2", "n3"]
    for row in progress["hosts"]:
        assert row["cpu_user_share"] + row["cpu_system_share"] > 0
        assert min(row["tx_pps"], row["rx_pps"], row["tx_Bps"], row["rx_Bps"]) > 0
        assert row["memory_bytes"] > 0
    assert progress["pps"] == pytest.approx(sum(row["tx_pps"] for row in progress["hosts"]))
    assert "packets/s</span> now" in html
    assert "sent by the interfaces of all hosts" in " ".join(html.split())
    assert all(f'<td class="mono">{host}</td>' in html for host in ("n1", "n2", "n3"))


def test_programs_of_rankwire_go_along(run_all: Callable[..., list[Trial]], ssh_hosts: SshHosts) -> None:
    slug = add_cluster("ssh", ssh_hosts.settings())
    (trial,) = run_all(cluster=slug, **PINGPONG)
    assert trial.state == State.FINISHED, trial.message + trial.traceback
    assert trial.measurements.filter(metric__startswith="pingpong.").exists()


def test_a_missing_permission_costs_the_network_metrics_only(
    run_all: Callable[..., list[Trial]], ssh_hosts: SshHosts
) -> None:
    slug = add_cluster("ssh", ssh_hosts.settings(capture_command=["no-such-recorder"]))
    (trial,) = run_all(cluster=slug, **WATER)
    assert trial.state == State.FINISHED, trial.message + trial.traceback
    assert trial.not_available["packets"] == "the program no-such-recorder is missing on host n1"


def test_a_host_that_cannot_be_recorded_is_reported_and_the_run_counts(
    run_all: Callable[..., list[Trial]], ssh_hosts: SshHosts, tmp_path: Path
) -> None:
    recorder = tmp_path / "recorder"
    recorder.write_text(
        '#!/bin/sh\nif [ "$(hostname)" = n2 ]; then echo not today >&2; exit 1; fi\nexec dumpcap "$@"\n'
    )
    recorder.chmod(0o755)
    slug = add_cluster("ssh", ssh_hosts.settings(capture_command=[str(recorder)]))
    (trial,) = run_all(cluster=slug, **WATER)
    require_result(trial)
    assert trial.conditions["not_recorded"] == ["host n2 was not recorded: on host n2 dumpcap: not today"]
    assert trial.trust == "good", "both others see all that n2 says to them"
    names = set(trial.artifacts.filter(kind="capture").values_list("name", flat=True))
    assert names == {"capture.pcapng.zst", "capture-n1.pcapng.zst", "capture-n3.pcapng.zst"}


def test_unrecorded_hosts_are_missed_together(
    run_all: Callable[..., list[Trial]], ssh_hosts: SshHosts, tmp_path: Path
) -> None:
    recorder = tmp_path / "recorder"
    recorder.write_text('#!/bin/sh\n[ "$(hostname)" = n3 ] && exec dumpcap "$@"\necho not today >&2; exit 1\n')
    recorder.chmod(0o755)
    (trial,) = run_all(cluster=add_cluster("ssh", ssh_hosts.settings(capture_command=[str(recorder)])), **WATER)
    require_result(trial)
    assert trial.trust == "degraded"
    answer = " ".join(trial.trust_reasons)
    assert "host n1 was not recorded" in answer
    assert "analysed from host n3 alone" in answer


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"port": 2299}, "Host n1 cannot be used: Connection refused."),
        ({"hots": []}, "The settings of this ssh cluster are wrong: hots"),
        ({"hosts": ["n1", "n2", "n1", "n3"]}, "hosts: named more than once: n1"),
    ],
)
def test_a_cluster_that_cannot_be_used_fails_its_trials_with_the_reason(
    settings: dict[str, Any], words: str, run_all: Callable[..., list[Trial]], ssh_hosts: SshHosts
) -> None:
    cluster = Cluster.objects.get(slug=add_cluster("ssh", ssh_hosts.settings()))
    # Set up wrong only after the experiment was submitted, which would have been refused.
    (trial,) = run_all(
        cluster=cluster.slug,
        meanwhile=lambda: Cluster.objects.filter(pk=cluster.pk).update(settings={**cluster.settings, **settings}),
        **WATER,
    )
    assert trial.state == State.FAILED
    assert words in trial.message
    assert not Lease.objects.exists()


def test_a_job_that_slurm_refuses_fails_its_trial_and_the_rest_continues(
    run_all: Callable[..., list[Trial]], slurm: Slurm
) -> None:
    slug = add_cluster("slurm", slurm.settings(partition="gpu"))
    first, second = run_all(cluster=slug, **{**WATER, "repetitions": 2})
    for trial in (first, second):
        assert trial.state == State.FAILED
        assert trial.message.startswith("Slurm did not accept the job: "), trial.message
        assert trial.message.endswith("(gpu).")
    assert not Lease.objects.exists()
    Cluster.objects.filter(slug=slug).update(settings=slurm.settings())
    (after,) = run_all(cluster=slug, **WATER)
    require_result(after)
