"""Claiming: exactly one of several workers gets a trial."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from experiments.cluster_kinds import machines
from experiments.models import Cluster, Lease, State, Trial
from tests.experiments import factories
from tests.experiments.races import at_once


@pytest.mark.django_db
def test_the_queue_of_a_cluster_that_is_switched_off_waits() -> None:
    factories.experiment()
    cluster = Cluster.objects.get(slug="testbed")
    Cluster.objects.update(enabled=False)
    assert Trial.claim_next(cluster, "host:1:1") is None
    Cluster.objects.update(enabled=True)
    assert Trial.claim_next(cluster, "host:1:1") is not None


@pytest.mark.django_db
def test_it_takes_the_first_waiting_trial_of_the_oldest_experiment() -> None:
    first, _ = factories.experiment(), factories.experiment()
    trial = factories.claimed("host:1:1")
    assert (trial.experiment_id, trial.position) == (first.pk, 1)
    assert (trial.state, trial.worker) == (State.PREPARING, "host:1:1")


@pytest.mark.django_db
def test_it_leaves_the_queue_alone_while_the_machine_is_taken() -> None:
    factories.experiment()
    trial = factories.claimed()
    testbed = Cluster.objects.get(slug="testbed")
    assert Trial.claim_next(testbed, "host:2:2") is None
    assert Trial.objects.filter(state=State.QUEUED).count() == 3
    trial.fail("It ended.")
    assert Trial.claim_next(testbed, "host:2:2") is not None


@pytest.mark.django_db
def test_it_holds_the_machine_against_other_clusters_of_this_machine() -> None:
    factories.experiment()
    factories.experiment(cluster="local", sweep={"ranks_per_host": [1, 2]})
    factories.claimed()
    assert Trial.claim_next(Cluster.objects.get(slug="local"), "host:2:2") is None


@pytest.mark.django_db
def test_it_lets_clusters_with_other_hosts_run_side_by_side() -> None:
    factories.experiment()
    farm = Cluster.objects.create(slug="farm", name="Farm", kind="ssh", settings={"hosts": ["n2", "n1"]})
    factories.experiment(cluster="farm")
    factories.claimed()
    trial = Trial.claim_next(farm, "host:2:2")
    assert trial is not None
    assert list(trial.leases.values_list("resource", flat=True)) == ["host:n1", "host:n2"]


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "::1", "LOCALHOST.", socket.gethostname()])
def test_it_holds_the_machine_against_hosts_over_ssh_that_are_this_machine(name: str) -> None:
    factories.experiment()
    here = Cluster.objects.create(slug="here", name="Here", kind="ssh", settings={"hosts": [name]})
    factories.experiment(cluster="here", sweep={"hosts": [1]})
    factories.claimed()
    assert Trial.claim_next(here, "host:2:2") is None


@pytest.mark.django_db
def test_claim_identifies_this_machine_by_its_boot_id() -> None:
    factories.experiment()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    held = set(factories.claimed().leases.values_list("resource", flat=True))
    assert held == {f"machine:{boot}", f"host:{socket.gethostname().lower()}"}


def test_it_knows_a_host_by_its_address_too(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"node1": "192.0.2.7", "node1.lab.example": "192.0.2.7", "node2": "192.0.2.8"}
    resources = {name: (float("inf"), frozenset({address})) for name, address in names.items()}
    monkeypatch.setattr("experiments.cluster_kinds.machines._remembered", resources)
    taken = {name: machines.hosts([name]) for name in names}
    assert taken["node1"] & taken["node1.lab.example"] == taken["node1"] & machines.hosts(["192.0.2.7"])
    assert taken["node1"] & taken["node1.lab.example"] == {"address:192.0.2.7"}
    assert not taken["node1"] & taken["node2"]


def test_it_waits_little_for_a_name_service_that_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    speak, spoken = threading.Event(), threading.Event()

    def silent(name: str, *_: object, **__: object) -> list[tuple[object, ...]]:
        assert speak.wait(50)
        return [(0, 0, 0, "", ("192.0.2.7", 0))]

    monkeypatch.setattr(machines, "_remembered", {})
    monkeypatch.setattr(machines, "LOOK_UP_LIMIT_S", 0.05)
    monkeypatch.setattr(socket, "getaddrinfo", silent)
    look_up = machines._look_up
    monkeypatch.setattr(machines, "_look_up", lambda name: (look_up(name), spoken.set()))
    assert machines.hosts(["node1"]) == machines.hosts(["NODE1"]) == {"host:node1"}
    speak.set()
    assert spoken.wait(50)
    assert machines.hosts(["node1"]) == {"host:node1", "address:192.0.2.7"}


@pytest.mark.django_db(transaction=True)
def test_it_gives_the_machine_to_one_of_eight_workers() -> None:
    factories.experiment()
    testbed = Cluster.objects.get(slug="testbed")
    won = [trial for trial in at_once(lambda n: Trial.claim_next(testbed, f"host:{n}:1"), 8) if trial is not None]
    assert len(won) == 1
    assert Trial.objects.active().get() == won[0]
    assert {lease.trial for lease in Lease.objects.all()} == set(won)


@pytest.mark.django_db(transaction=True)
def test_it_ends_once_when_worker_and_reaper_end_it_together() -> None:
    factories.experiment()
    trial = factories.analysing()

    def end(number: int) -> str:
        mine = Trial.objects.get(pk=trial.pk)
        try:
            mine.finish(factories.RESULT) if number else mine.mark_lost("Silent.")
        except Exception as error:
            return type(error).__name__
        return mine.state

    answers = at_once(end, 2)
    assert "StaleTrial" in answers
    state = Trial.objects.get(pk=trial.pk).state
    assert state in answers
    assert trial.measurements.exists() == (state == State.FINISHED)
    assert Trial.objects.filter(attempt=2).exists() == (state == State.LOST)
