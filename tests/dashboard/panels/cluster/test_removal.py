"""Switching a cluster off and on, and removing an unused one, with permission."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from lxml import html

from experiments import cluster_kinds, deletion
from experiments.errors import CannotRestore, InvalidSpec
from experiments.models import Cluster, Deleted, Experiment
from tests.dashboard.texts import text_of

pytestmark = pytest.mark.usefixtures("empty_redis")


@pytest.fixture
def set_up(page: Client, person: User) -> Client:
    """Signed in with the administration's permission to set clusters up."""
    names = ("add_cluster", "change_cluster")
    User.objects.filter(pk=person.pk).update(is_staff=True)
    person.user_permissions.set(Permission.objects.filter(codename__in=names))
    return page


@pytest.fixture
def rack(library: object) -> Cluster:
    return Cluster.objects.create(slug="rack", name="Rack", kind="ssh", settings={"hosts": ["n1", "n2"]})


def test_it_is_switched_off_and_on(set_up: Client, rack: Cluster) -> None:
    set_up.post("/clusters/rack/switch/")
    with pytest.raises(InvalidSpec, match="is switched off"):
        Cluster.require("rack")
    assert "Switch cluster on" in text_of(set_up.get("/clusters/rack/"))
    for slug, why in (("rack", "is switched off"), ("nowhere", "does not exist")):
        form = set_up.get("/experiments/new/", {"cluster": slug})
        assert any(why in str(message) for message in form.context["messages"])
        options = {o.get("value"): o for o in html.fromstring(form.content).xpath("//select[@name='cluster']/option")}
        assert {value for value, option in options.items() if option.get("disabled") is not None} == {"rack"}
    set_up.post("/clusters/rack/switch/", {"on": "1"})
    assert Cluster.require("rack") == rack


def test_it_is_removed_while_nothing_names_it(set_up: Client, rack: Cluster) -> None:
    assert "Delete Rack?" in text_of(set_up.get("/clusters/rack/"))
    set_up.post("/clusters/rack/remove/")
    assert not Cluster.objects.filter(slug="rack").exists()


def test_one_that_experiments_name_stays(set_up: Client, rack: Cluster, submit) -> None:
    submit(cluster="rack", repetitions=1, link={}, sweep={"hosts": [1]})
    assert "Delete Rack?" not in text_of(set_up.get("/clusters/rack/"))
    set_up.post("/clusters/rack/remove/")
    assert Cluster.objects.filter(slug="rack").exists()


@pytest.mark.parametrize("kind", [kind.name for kind in cluster_kinds.registry()])
def test_one_of_each_kind_is_removed_except_those_of_every_machine(set_up: Client, library: object, kind: str) -> None:
    Cluster.objects.create(slug="added", name="Added", kind=kind, settings={})
    assert not set_up.get("/clusters/added/").context["reason_to_keep"]
    for slug in ("added", "local", "testbed"):
        set_up.post(f"/clusters/{slug}/remove/")
    assert set(Cluster.objects.values_list("slug", flat=True)) == {"local", "testbed"}


def test_one_that_deleted_experiments_used_stays_and_names_them(
    set_up: Client, rack: Cluster, submit, person: User
) -> None:
    experiment: Experiment = submit(cluster="rack", repetitions=1, link={}, sweep={"hosts": [1]})
    experiment.trials.all().cancel()
    deleted = deletion.delete(experiment, by=person)
    page = set_up.get("/clusters/rack/")
    assert deleted.name in page.context["reason_to_keep"]
    assert f'href="{reverse("experiments-deleted")}"' in page.content.decode()
    person.memberships.all().delete()
    assert deleted.name not in set_up.get("/clusters/rack/").context["reason_to_keep"], "of a hidden project"
    set_up.post("/clusters/rack/remove/")
    assert deletion.restore_deleted(deleted).cluster == rack
    deleted = deletion.delete(Experiment.objects.get(slug=deleted.slug), by=person)
    Deleted.objects.all().delete()
    set_up.post("/clusters/rack/remove/")
    assert not Cluster.objects.filter(slug="rack").exists()


def test_restore_names_a_cluster_that_is_gone(rack: Cluster, submit, person: User) -> None:
    experiment: Experiment = submit(cluster="rack", repetitions=1, link={}, sweep={"hosts": [1]})
    experiment.trials.all().cancel()
    deleted = deletion.delete(experiment, by=person)
    Cluster.objects.filter(slug="rack").delete()
    with pytest.raises(CannotRestore, match="cluster"):
        deletion.restore_deleted(deleted)


def test_switching_off_asks_while_trials_wait(set_up: Client, rack: Cluster, submit) -> None:
    asks = 'id="switch-off"'
    assert asks not in set_up.get("/clusters/rack/").content.decode()
    submit(cluster="rack", repetitions=2, link={}, sweep={"hosts": [1]})
    assert asks in set_up.get("/clusters/rack/").content.decode()
    assert "2 queued trials wait" in text_of(set_up.post("/clusters/rack/switch/", follow=True))
    assert asks not in set_up.get("/clusters/rack/").content.decode()
