"""The migration that ends checks of clusters that no worker started."""

from importlib import import_module

import pytest
from django.apps import apps
from django.utils import timezone

from experiments.models import Cluster, ClusterTest

MIGRATION = import_module("experiments.migrations.0041_checks_without_worker")


@pytest.mark.parametrize(
    ("begun", "ended", "waits"),
    [(False, True, False), (False, False, True), (True, True, True)],
    ids=["given up", "first", "again"],
)
def test_checks_that_were_given_up_before_a_worker_began_do_not_wait(
    db: None, begun: bool, ended: bool, waits: bool
) -> None:
    cluster, now = Cluster.objects.create(slug="rack", name="Rack", kind="ssh"), timezone.now()
    ClusterTest.objects.create(
        cluster=cluster, asked_at=now, begun_at=now if begun else None, ended_at=now if ended else None
    )
    MIGRATION.end_unstarted(apps, None)
    test = ClusterTest.objects.get()
    assert (test.is_waiting, test.is_over) == (waits, not waits)
    assert ClusterTest.ask(cluster) is not waits
