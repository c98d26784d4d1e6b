"""A trial from the queue to its measurements on hosts reached with ssh, and on nodes that a real Slurm allots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from experiments.models import Cluster, Lease, State, Trial
from tests.workers.clusters.real_hosts import Slurm, SshHosts

WATER = {"workload": "water", "parameters": {"molecules": 64, "steps": 100}, "sweep": {"hosts": [3]}}
PINGPONG = {"workload": "pingpong", "sweep": {"hosts": [2]}}


def add_cluster(kind: str, settings: dict[str, Any]) -> str:
    return Cluster.objects.create(slug=f"real-{kind}", name="Real hosts", kind=kind, settings=settings).slug


def require_result(trial: Trial) -> None:
    assert trial.state == State.FINISHED, trial.message + trial.traceback
    values = dict(trial.measurements.filter(scope="all").values_list("metric", "value"))
    assert values["packets"] > 100
    assert values["cpu_s"] > 0
    assert 0 < values["water.loop_time_s"] < values["elapsed_s"]
    assert trial.environment is not None
    assert not Lease.objects.exists()


def test_it_measures_on_hosts_over_ssh(run_all: Callable[..., list[Trial]], ssh_hosts: SshHosts) -> None:
    slug = add_cluster("ssh", ssh_hosts.settings(capture="every"))
    (trial,) = run_all(cluster=slug, **WATER)
    require_result(trial)
    assert trial.trust == "degraded"
    assert "analysed from host n1 alone" in " ".join(trial.trust_reasons)
    assert trial.conditions["hosts"] == ["n1", "n2", "n3"]
    names = set(trial.artifacts.filter(kind="capture").values_list("name", flat=True))
    assert names == {"capture.pcapng.zst", "capture-n2.pcapng.zst", "capture-n3.pcapng.zst"}


def test_it_measures_on_nodes_of_slurm(run_all: Callable[..., list[Trial]], slurm: Slurm) -> None:
    slug = add_cluster("slurm", slurm.settings())
    (trial,) = run_all(cluster=slug, **WATER)
    require_result(trial)
    assert trial.conditions["slurm_job"].isdigit()


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


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"port": 2299}, "Host n1 cannot be used: Connection refused."),
        ({"hots": []}, "The settings of this ssh cluster are wrong: hots"),
    ],
)
def test_a_cluster_that_cannot_be_used_fails_its_trials_with_the_reason(
    settings: dict[str, Any], words: str, run_all: Callable[..., list[Trial]], ssh_hosts: SshHosts
) -> None:
    slug = add_cluster("ssh", {**ssh_hosts.settings(), **settings})
    (trial,) = run_all(cluster=slug, **WATER)
    assert trial.state == State.FAILED
    assert words in trial.message
    assert not Lease.objects.exists()


def test_a_job_that_slurm_refuses_fails_its_trial_and_the_rest_goes_on(
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
