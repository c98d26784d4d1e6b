"""Link settings that a cluster refuses, and link rates of real networks."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.cluster_kinds.port_speed import port_speed_bps
from experiments.errors import InvalidSpec
from experiments.models import Cluster, Environment, Experiment, Measurement, State, Trial
from experiments.selectors.study import study_of
from tests.experiments import factories
from workers import launchers
from workers.errors import ClusterUnavailable

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]
CARD = {"interface": {"name": "eth0", "driver": "ixgbe", "speed": "10000Mb/s"}}
HOSTS = {"hosts": ["n1", "n2"]}


@pytest.fixture
def rack() -> Cluster:
    factories.load_defaults()
    return Cluster.objects.create(slug="rack", name="Rack", kind="ssh", settings=HOSTS)


def refused(**changes: Any) -> dict[str, list[str]]:
    with pytest.raises(InvalidSpec) as error:
        factories.experiment(**changes)
    return error.value.by_path()


def measured(cluster: str, environment: dict[str, Any] | None = None) -> Experiment:
    experiment = factories.experiment(cluster=cluster)
    stored_environment = Environment.store(environment) if environment else None
    experiment.trials.update(state=State.FINISHED, environment=stored_environment)
    for trial in Trial.objects.filter(experiment=experiment):
        Measurement.objects.create(trial=trial, metric="elapsed_s", value=1.0)
    return experiment


def bandwidths(experiment: Experiment) -> set[float | None]:
    study = study_of(experiment)
    return {item.bandwidth_of(point) for item in (study, *study.slices()) for point in item.points}


@pytest.mark.usefixtures("rack")
@pytest.mark.parametrize(
    ("link", "field"),
    [
        ({"bandwidth": "10 Mbit/s"}, "link.bandwidth"),
        ({"mtu": 9000}, "link.mtu"),
        ({"topology": "star"}, "link.topology"),
    ],
)
def test_it_refuses_what_it_cannot_make(link: dict[str, Any], field: str) -> None:
    sentence = "only the test-bed can set it; the network of hosts over ssh is taken as it is"
    assert refused(cluster="rack", link=link) == {field: [sentence]}


@pytest.mark.usefixtures("rack")
def test_it_refuses_a_sweep_of_what_it_cannot_make() -> None:
    assert list(refused(cluster="rack", sweep={"hosts": [1, 2], "link.bandwidth": ["10 Mbit/s", "1 Gbit/s"]})) == [
        "sweep.link.bandwidth"
    ]


@pytest.mark.usefixtures("rack")
def test_it_takes_a_link_that_asks_for_nothing_and_the_test_bed_takes_all() -> None:
    factories.experiment(cluster="rack", link={"bandwidth": None, "delay": 0, "loss": 0})
    factories.experiment(link={"bandwidth": "10 Mbit/s", "mtu": 9000, "delay": "1 ms"})


@pytest.mark.parametrize(("kind", "settings"), [("ssh", HOSTS), ("slurm", {}), ("local", {})])
def test_a_stored_trial_with_a_link_rate_does_not_run(kind: str, settings: dict[str, Any]) -> None:
    link = factories.specification(link={"bandwidth": "10 Mbit/s"}).link
    launcher = launchers.get(kind, settings)
    assert "bandwidth" in launcher.refusals(link)[0]
    assert launcher.refusals(factories.specification().link) == []
    with pytest.raises(ClusterUnavailable, match="bandwidth"):
        launcher.open(host_count=1, link=link)


def test_the_default_is_not_the_bandwidth_of_real_hosts(rack: Cluster) -> None:
    experiment = measured(rack.slug)
    assert bandwidths(experiment) == {None}
    assert bandwidths(measured("testbed")) == {1e9}


def test_stated_facts_precede_reported_card_speeds(rack: Cluster) -> None:
    experiment = measured(rack.slug, CARD)
    assert bandwidths(experiment) == {10e9}
    rack.describe({"link_bandwidth_bps": 2.5e9})
    assert bandwidths(Experiment.objects.get(pk=experiment.pk)) == {2.5e9}


@pytest.mark.parametrize(
    ("changes", "speed"),
    [
        ({}, 10e9),
        ({"other_hosts": {"n2": {"interface": {"speed": "1000Mb/s"}}}}, 1e9),
        ({"other_hosts": {"n2": {"interface": {"speed": "none"}}}}, None),
        ({"interface": {"driver": "veth", "speed": "10000Mb/s"}}, None),
        ({"interface": {"driver": "virtio_net", "speed": "Unknown!"}}, None),
        ({"interface": None}, None),
    ],
)
def test_port_speed_is_that_of_the_slowest_known_card(changes: dict[str, Any], speed: float | None) -> None:
    assert port_speed_bps({**CARD, **changes}) == speed
