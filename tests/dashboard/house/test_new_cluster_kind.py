"""A new kind of cluster needs its two modules and the registry only."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from dashboard.panels.parts.measured import Measured
from experiments.common.processors import usable_cores
from experiments.library import load_defaults
from experiments.models import Cluster, Experiment, Project, Trial
from experiments.selectors.study import study_of
from experiments.specification import parse
from tests.dashboard.api.clients import EXPERIMENTS, client_of
from tests.dashboard.laboratory import specification
from tests.new_kinds.registration import register
from tests.workers.clusters.trials import PlainLink
from workers import launchers
from workers.errors import ClusterUnavailable

pytestmark = pytest.mark.usefixtures("empty_redis")
REGION = {"region": "north", "quota": 2}


@pytest.fixture(autouse=True)
def new_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch)


@pytest.fixture
def rented(library: Project) -> Cluster:
    return Cluster.objects.create(slug="rented", name="Rented", kind="cloud", settings=REGION)


@pytest.fixture
def pods(library: Project) -> Cluster:
    """As `load_library` makes it on every machine."""
    load_defaults()
    return Cluster.objects.get(slug="pods")


def submitted(cluster: Cluster, hosts: list[int]) -> Experiment:
    spec = parse(specification(cluster=cluster.slug, sweep={"hosts": hosts}, repetitions=1))
    return Experiment.submit(spec, project=Project.objects.get(slug="default"))


def preview(page: Client, **changes: Any) -> str:
    form = {"name": "Water", "workload": "water", "cluster": "rented", "sweep_name": "hosts", "sweep_values": "1, 2"}
    return page.post(reverse("new-preview"), {**form, **changes}).content.decode()


def test_it_exists_from_the_start_where_its_class_says_so(pods: Cluster) -> None:
    assert (pods.kind, pods.name) == ("pods", "Pods")
    assert not Cluster.objects.filter(kind="cloud").exists()


def test_the_form_offers_it_and_proposes_no_more_hosts_than_it_has(
    page: Client, rented: Cluster, pods: Cluster
) -> None:
    response = page.get(reverse("new"), {"cluster": "rented"})
    assert "Rented (rented hosts)" in response.content.decode()
    assert response.context["form"].draft["sweep"] == {"hosts": "1, 2"}
    assert page.get(reverse("new"), {"cluster": "pods"}).context["form"].draft["sweep"] == {"hosts": "1, 2"}


def test_the_preview_shows_the_command_of_its_launcher_and_what_is_recorded(page: Client, rented: Cluster) -> None:
    html = preview(page)
    assert "cloudrun" in html
    assert "north-1" in html
    assert "of every packet on the gateway." in html


def test_rest_refuses_more_hosts_than_it_has_at_the_field_and_takes_what_it_has(pods: Cluster, person: User) -> None:
    client = client_of(person)
    data = specification(cluster="pods", sweep={"hosts": [2, 4]})
    answer = client.post(EXPERIMENTS, json.dumps(data), "application/json")
    assert answer.status_code == 400
    (error,) = answer.json()["errors"]
    assert (error["path"], error["message"]) == ("sweep.hosts", "the cluster Pods has 3 hosts, not 4")
    data["sweep"] = {"hosts": [2, 3]}
    answer = client.post(EXPERIMENTS, json.dumps(data), "application/json")
    assert (answer.status_code, answer.json()["cluster"]) == (201, "pods")


def test_trials_take_what_its_hosts_share(rented: Cluster, pods: Cluster) -> None:
    assert pods.resources() == Cluster.objects.get(slug="testbed").resources()
    assert rented.resources() == ["cluster:rented"]
    assert pods.cores_to_suggest == usable_cores()
    assert rented.cores_to_suggest is None


def test_elapsed_times_of_its_virtual_hosts_name_the_shared_cores(page: Client, pods: Cluster) -> None:
    experiment = submitted(pods, [2])
    conditions = {"cores": 2, "oversubscription": "2 pods on 2 cores"}
    Trial.objects.filter(experiment=experiment).update(state="finished", conditions=conditions)
    assert "2 pods on 2 cores" in page.get(experiment.get_absolute_url()).content.decode()
    assert Measured.alone(experiment).hosts_share_a_machine
    study = study_of(experiment)
    assert (study.cores, study.most_hosts, study.capture_at) == (2, 3, "bridge")


def test_findings_take_hosts_with_cores_of_their_own_for_such(rented: Cluster) -> None:
    experiment = submitted(rented, [2])
    Trial.objects.filter(experiment=experiment).update(state="finished", conditions={"cores": 64})
    assert not Measured.alone(experiment).hosts_share_a_machine
    study = study_of(experiment)
    assert (study.cores, study.most_hosts, study.capture_at) == (None, 2, "host")


def test_it_makes_of_a_link_what_its_class_says_and_refuses_the_rest() -> None:
    launcher = launchers.get("cloud", REGION)
    delayed = dataclasses.replace(PlainLink(), delay_s=0.004)
    assert launcher.refusals(delayed) == []
    with pytest.raises(ClusterUnavailable) as refused:
        launcher.open(host_count=1, link=dataclasses.replace(delayed, loss=0.01))
    assert (
        str(refused.value)
        == "Only the test-bed can set these properties of a link; here the network is taken as it is: loss."
    )


def test_its_launcher_is_found_by_its_name() -> None:
    assert type(launchers.get("cloud", REGION)).__name__ == "CloudLauncher"
    assert type(launchers.get("pods")).__name__ == "PodsLauncher"
