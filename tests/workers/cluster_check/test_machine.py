"""A test of clusters of this machine, from the request to what is kept."""

from __future__ import annotations

import dataclasses
import io
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections, transaction

from experiments.library import load_defaults
from experiments.models import Cluster, ClusterTest, Lease, Trial
from tests.experiments import factories
from tests.workers.cluster_check.steps import steps_by_name
from workers import reaper, tasks
from workers.cluster_check import run as cluster_test
from workers.cluster_check.step import ok

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def testbed_cluster(empty_redis: object) -> Cluster:
    load_defaults()
    return Cluster.objects.get(slug="testbed")


def kept_of(cluster: Cluster) -> dict[str, Any]:
    return {step["name"]: step for step in ClusterTest.objects.get(cluster=cluster).steps}


def test_two_virtual_hosts_meet_and_are_recorded(testbed_cluster: Cluster) -> None:
    assert ClusterTest.ask(testbed_cluster)
    assert not ClusterTest.ask(testbed_cluster)
    tasks.test_cluster(testbed_cluster.pk)
    steps = kept_of(testbed_cluster)
    assert steps["MPI hello across two hosts"]["state"] == "ok", steps
    assert steps["Capture permission"]["state"] == "ok", steps
    assert steps["Offloads"]["value"] == "Off"
    assert steps["Ping-pong between two hosts"]["state"] == "ok"
    testbed_cluster.refresh_from_db()
    assert "mtu" not in testbed_cluster.facts, "each trial makes its own link"
    test = ClusterTest.objects.get()
    assert test.is_over
    assert test.begun_at is not None
    assert "problem" not in test.counts
    assert not Lease.objects.exists()
    assert not test.is_outdated


def test_one_host_has_no_wire(testbed_cluster: Cluster) -> None:
    steps = steps_by_name("local", {})
    assert steps["MPI hello on one host"].state == "ok", steps
    assert steps["Link"].state == "skipped"
    assert steps["Ping-pong between two hosts"].state == "skipped"


def test_check_waits_for_the_trial_that_has_the_hosts_and_passes_the_next(testbed_cluster: Cluster) -> None:
    factories.experiment()
    trial = factories.claimed()
    ClusterTest.ask(testbed_cluster)
    tasks.test_cluster(testbed_cluster.pk)
    test = ClusterTest.objects.get()
    assert (test.is_waiting, test.running_trial) == (True, trial)
    assert trial.requeue()
    assert Trial.claim_next(testbed_cluster, "host:1:1") is None
    local = Cluster.objects.get(slug="local")
    assert ClusterTest.waits_for(local.resources()), "both are this machine"
    assert ClusterTest.begin(testbed_cluster, "host:1:1") is not None


def test_cancelled_check_leaves_the_last_results_and_lets_trials_pass(testbed_cluster: Cluster) -> None:
    factories.experiment()
    assert not ClusterTest.cancel(testbed_cluster)
    ClusterTest.ask(testbed_cluster)
    assert ClusterTest.cancel(testbed_cluster)
    assert not ClusterTest.objects.exists(), "it was the first"
    ClusterTest.ask(testbed_cluster)
    test = ClusterTest.begin(testbed_cluster, "host:1:1")
    assert test is not None
    assert not ClusterTest.cancel(testbed_cluster), "it runs"
    test.end([ok("Start", "1 host").to_dict()])
    ClusterTest.ask(testbed_cluster)
    assert ClusterTest.cancel(testbed_cluster)
    last = ClusterTest.objects.get()
    assert (last.is_over, last.ended_at, last.counts) == (True, test.ended_at, {"ok": 1})
    assert Trial.claim_next(testbed_cluster, "host:1:1") is not None


def test_cancellation_leaves_a_check_that_a_worker_begins_meanwhile(testbed_cluster: Cluster) -> None:
    def cancel() -> bool:
        try:
            return ClusterTest.cancel(testbed_cluster)
        finally:
            connections.close_all()

    ClusterTest.ask(testbed_cluster)
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic(), connection.cursor() as cursor:
            assert ClusterTest.begin(testbed_cluster, "host:1:1") is not None
            cancelled, deadline = pool.submit(cancel), time.monotonic() + 20
            waiting = 0
            while not waiting:
                cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
                (waiting,) = cursor.fetchone()
                assert time.monotonic() < deadline, "the cancellation waits for nothing"
        assert not cancelled.result(20)
    test = ClusterTest.objects.get()
    assert (test.worker, test.leases.count()) == ("host:1:1", len(testbed_cluster.resources()))


def test_no_trial_is_claimed_while_it_runs(testbed_cluster: Cluster) -> None:
    factories.experiment()
    ClusterTest.ask(testbed_cluster)
    test = ClusterTest.begin(testbed_cluster, "elsewhere:1:1")
    assert test is not None
    assert Trial.claim_next(testbed_cluster, "host:1:1") is None
    test.end([])
    assert Trial.claim_next(testbed_cluster, "host:1:1") is not None


def test_a_test_whose_worker_died_is_ended_and_gives_the_hosts_back(testbed_cluster: Cluster) -> None:
    ClusterTest.ask(testbed_cluster)
    test = ClusterTest.begin(testbed_cluster, f"{socket.gethostname()}:999999:1")
    assert test is not None
    reaper.reap()
    assert kept_of(testbed_cluster)["Check"]["seen"] == "Its worker process ended in the middle of the check."
    assert not Lease.objects.exists()


def test_check_that_was_given_up_leaves_its_successor_the_hosts(testbed_cluster: Cluster) -> None:
    ClusterTest.ask(testbed_cluster)
    given_up = ClusterTest.begin(testbed_cluster, "elsewhere:1:1")
    assert given_up is not None
    ClusterTest.objects.get().give_up("Its worker stopped reporting.")
    ClusterTest.ask(testbed_cluster)
    assert ClusterTest.begin(testbed_cluster, "elsewhere:2:1") is not None
    given_up.end([ok("Start", "1 host").to_dict()])
    assert set(Lease.objects.values_list("resource", flat=True)) == set(testbed_cluster.resources())
    test = ClusterTest.objects.get()
    assert (test.worker, test.ended_at, test.steps) == ("elsewhere:2:1", None, [])


def test_changed_settings_make_it_outdated(testbed_cluster: Cluster) -> None:
    cluster = Cluster.objects.create(slug="rack", name="Rack", kind="ssh", settings={"host": ["n1"]})
    ClusterTest.ask(cluster)
    tasks.test_cluster(cluster.pk)
    assert kept_of(cluster)["Settings"]["seen"].startswith("The settings of this ssh cluster are wrong")
    cluster.set_up(name="Rack", settings={"hosts": ["n1"]}, enabled=True)
    assert ClusterTest.objects.get(cluster=cluster).is_outdated


def test_check_fills_in_facts_that_are_not_stated(testbed_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster.objects.create(
        slug="rack", name="Rack", kind="ssh", facts={"link_bandwidth_bps": 4e10, "hosts": 2}
    )
    facts = {"link_bandwidth_bps": 1e10, "mtu": 9000, "offloads": "tso, gro"}
    monkeypatch.setattr(cluster_test, "steps_of", lambda *_: [dataclasses.replace(ok("Link", "well"), facts=facts)])
    ClusterTest.ask(cluster)
    tasks.test_cluster(cluster.pk)
    cluster.refresh_from_db()
    assert cluster.facts == {"link_bandwidth_bps": 4e10, "hosts": 2, "mtu": 9000, "offloads": "tso, gro"}


def test_the_command_prints_every_step_and_fails_with_a_problem(testbed_cluster: Cluster) -> None:
    out = io.StringIO()
    call_command("test_cluster", "testbed", stdout=out)
    assert "ok       MPI hello across two hosts: 2 ranks" in out.getvalue()
    Cluster.objects.create(slug="rack", name="Rack", kind="ssh", settings={"hosts": ["no-such-host.invalid"]})
    out = io.StringIO()
    with pytest.raises(CommandError, match="rack: 1 of"):
        call_command("check_cluster", "rack", stdout=out)
    assert "its name cannot be resolved" in out.getvalue()
    with pytest.raises(CommandError, match="there is no cluster 'moon'"):
        call_command("check_cluster", "moon")
