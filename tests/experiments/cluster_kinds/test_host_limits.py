"""Suggested trials never need more hosts than the cluster has.

The hosts of a cluster are those of a list, of a machine, of a Slurm partition, or of the test-bed.
"""

from __future__ import annotations

from typing import Any

import pytest

from experiments import selectors
from experiments.cluster_kinds.testbed import MOST_HOSTS
from experiments.errors import InvalidSpec
from experiments.library import built_in
from experiments.models import Cluster, Experiment, Measurement, State, Trial
from experiments.revision import add_points, plan_points
from experiments.selectors.diagnosis import cached_diagnosis, diagnosis_of
from experiments.specification import parse_yaml
from experiments.specification.parameters import MAX_RANKS
from tests.experiments import factories

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]
STILL_FALLING = ((10.0, 10.2, 9.8, 10.1, 9.9), (5.6, 5.5, 5.9, 5.5, 5.2), (4.9, 4.1, 4.6, 4.2, 4.5))
"""Seconds of the repetitions at three sizes: the best size is not decided."""


def cluster_of(kind: str, hosts: int = 0, **fields: Any) -> Cluster:
    settings = {"hosts": [f"n{number}" for number in range(1, hosts + 1)]} if kind == "ssh" else {}
    return Cluster.objects.create(slug=f"a-{kind}", name=f"A {kind}", kind=kind, **{"settings": settings, **fields})


def still_falling(cluster: Cluster, sizes: list[int], conditions: dict[str, Any] | None = None, **changes: Any) -> Any:
    """An experiment that is fastest at the largest size and asks for more."""
    experiment = factories.experiment(
        cluster=cluster.slug, sweep={"hosts": sizes}, repetitions=5, warmups=0, **{"parameters": {}, **changes}
    )
    for trial in experiment.trials.select_related("configuration"):
        Trial.objects.filter(pk=trial.pk).update(state=State.FINISHED, conditions=conditions or {})
        elapsed_s = STILL_FALLING[sizes.index(trial.configuration.hosts)][trial.repetition - 1]
        Measurement.objects.create(trial=trial, metric="elapsed_s", value=elapsed_s)
    return Experiment.objects.select_related("cluster").get(pk=experiment.pk)


def most(experiment: Experiment) -> int:
    """The largest number of hosts that is suggested; 0 where nothing is."""
    return max((parameters["hosts"] for parameters, _ in diagnosis_of(experiment).study.suggested), default=0)


def test_suggested_sizes_beyond_the_measured_ones_can_be_queued() -> None:
    experiment = still_falling(cluster_of("ssh", 6), [1, 2, 4])
    assert 4 < most(experiment) <= 6
    more = plan_points(experiment, diagnosis_of(experiment).study.suggested)
    assert more is not None
    assert add_points(experiment, more) == more.queued > 0


@pytest.mark.parametrize(
    ("kind", "hosts", "fields", "sizes", "conditions", "limit"),
    [
        ("ssh", 4, {}, [1, 2, 4], {}, 4),
        ("ssh", 5, {}, [1, 2, 4], {}, 5),
        ("local", 0, {}, [1], {}, 1),
        ("slurm", 0, {"facts": {"hosts": 5}}, [1, 2, 4], {}, 5),
        ("slurm", 0, {"facts": {"hosts": 5}}, [1, 2, 4], {"partition": {"name": "all", "hosts": 9}}, 5),
        ("slurm", 0, {"settings": {"partition": "short"}}, [1, 2, 4], {"partition": {"name": "short", "hosts": 5}}, 5),
        ("testbed", 0, {}, [50, 125, MOST_HOSTS], {}, MOST_HOSTS),
    ],
)
def test_suggestions_have_no_more_hosts_than_the_cluster(
    kind: str, hosts: int, fields: dict[str, Any], sizes: list[int], conditions: dict[str, Any], limit: int
) -> None:
    cluster = cluster_of(kind, hosts, **fields)
    experiment = still_falling(cluster, sizes, conditions)
    assert cluster.hosts_to_suggest == limit
    assert most(experiment) <= limit


def test_hosts_of_another_partition_limit_no_suggestion() -> None:
    cluster = cluster_of("slurm", settings={"partition": "long"})
    still_falling(cluster, [1, 2, 4], {"partition": {"name": "short", "hosts": 5}})
    assert cluster.hosts_to_suggest is None


@pytest.mark.parametrize(("ranks_per_host", "limit"), [(1, MAX_RANKS), (128, MAX_RANKS // 128)])
def test_suggestions_keep_the_limits_of_a_specification(ranks_per_host: int, limit: int) -> None:
    sizes = [limit // 4, limit // 2, limit]
    experiment = still_falling(cluster_of("slurm"), sizes, parameters={"ranks_per_host": ranks_per_host})
    assert 0 < most(experiment) <= limit


def test_a_suggestion_falls_when_the_cluster_loses_the_hosts_for_it() -> None:
    cluster = cluster_of("ssh", 6)
    experiment = still_falling(cluster, [1, 2, 4])
    before = diagnosis_of(experiment)
    cluster.settings = {"hosts": ["n1", "n2", "n3"]}
    cluster.save()
    experiment = Experiment.objects.get(pk=experiment.pk)
    diagnosis, fresh = cached_diagnosis(experiment)
    assert (diagnosis is not None and diagnosis.stamp) == before.stamp
    assert not fresh
    assert most(experiment) <= 3
    assert plan_points(experiment, before.study.suggested) is None, "what was suggested before can no longer be queued"


def test_a_cluster_without_hosts_is_suggested_nothing() -> None:
    cluster = cluster_of("ssh", 4)
    experiment = still_falling(cluster, [2, 3, 4])
    cluster.settings = {"hosts": ["n1"]}
    cluster.save()
    assert most(Experiment.objects.get(pk=experiment.pk)) == 0


def test_it_refuses_repetitions_of_a_size_that_the_cluster_lost_and_queues_nothing() -> None:
    cluster = cluster_of("ssh", 4)
    experiment = still_falling(cluster, [2, 4])
    points = [(c.parameters, 3) for c in experiment.configurations.order_by("position")]
    more = plan_points(experiment, points)
    assert more is not None
    cluster.settings = {"hosts": ["n1", "n2"]}
    cluster.save()
    with pytest.raises(InvalidSpec, match="the cluster A ssh has 2 hosts, not 4"):
        add_points(Experiment.objects.get(pk=experiment.pk), more)
    assert selectors.progress_of([experiment])[experiment.pk].queued == 0


def test_every_built_in_experiment_fits_the_cluster_it_names() -> None:
    factories.load_defaults()
    for file in built_in():
        factories.experiment(**parse_yaml(file.read_text()).to_dict())
