"""Submitting an experiment in one transaction."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from django.db import IntegrityError
from django.test.utils import CaptureQueriesContext

from experiments.errors import InvalidSpec
from experiments.library import load_defaults
from experiments.models import Cluster, Configuration, Experiment, ExperimentVersion, State, Trial
from experiments.specification import design, parse
from tests.experiments import factories
from tests.experiments.races import at_once
from tests.experiments.specifications import specification, written


@pytest.mark.django_db
def test_it_stores_all_configurations_and_queued_trials_in_running_order() -> None:
    spec = specification(warmups=1, control=True, tags=["scaling"])
    experiment = Experiment.submit(spec, project=load_defaults())
    plan = design.expand(spec)
    assert [(c.hash, c.hosts, c.ranks) for c in experiment.configurations.all()] == [
        (c.hash, c.hosts, c.ranks) for c in plan.configurations
    ]
    stored = experiment.trials.order_by("position").values_list("configuration__hash", "kind", "repetition")
    assert list(stored) == [(plan.configurations[t.configuration].hash, t.kind, t.repetition) for t in plan.trials]
    assert set(experiment.trials.values_list("state", "attempt", "cluster__slug")) == {(State.QUEUED, 1, "testbed")}
    assert experiment.tags == ["scaling"]
    assert experiment.spec == spec


@pytest.mark.django_db
def test_it_keeps_the_first_version_as_it_was_submitted() -> None:
    user = factories.person("ada")
    experiment = factories.experiment(owner=user)
    version = experiment.versions.get()
    assert (version.number, version.author) == (1, user)
    assert version.specification == experiment.specification == specification().to_dict()
    assert version.hash == experiment.specification_hash


@pytest.mark.django_db(transaction=True)
def test_it_stores_nothing_when_one_insert_fails() -> None:
    project = load_defaults()
    doubled = design.expand(specification())
    doubled = design.Design(doubled.configurations, doubled.trials * 2)
    with patch.object(design, "expand", return_value=doubled), pytest.raises(IntegrityError):
        Experiment.submit(specification(), project=project)
    for model in (Experiment, ExperimentVersion, Configuration, Trial):
        assert not model._default_manager.exists()


@pytest.mark.django_db
@pytest.mark.parametrize("slug", ["nowhere", "local"])
def test_it_refuses_clusters_that_are_unknown_or_switched_off(slug: str) -> None:
    project = load_defaults()
    Cluster.objects.filter(slug="local").update(enabled=False)
    with pytest.raises(InvalidSpec) as caught:
        Experiment.submit(specification(cluster=slug), project=project)
    why = {"nowhere": "unknown", "local": "switched off"}[slug]
    message = f"the cluster {slug!r} is {why}; switched on: testbed"
    assert caught.value.by_path() == {"cluster": [message]}
    assert not Experiment.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "wish", "slug"),
    [
        ("TIP4P water, host sweep", None, "tip4p-water-host-sweep"),
        ("水", None, "experiment"),
        ("New", None, "new-2"),  # /experiments/new/ is the form
        ("Water", "my study.v2", "my-studyv2"),
        ("Water", "...", "water"),
        ("x" * 120, None, "x" * 90),
    ],
)
def test_it_gets_an_address_from_its_name(name: str, wish: str | None, slug: str) -> None:
    assert factories.experiment(name=name, slug=wish).slug == slug


@pytest.mark.django_db(transaction=True)
def test_it_finds_an_address_for_each_of_six_that_are_submitted_together() -> None:
    project, spec = load_defaults(), specification()
    slugs = at_once(lambda _: Experiment.submit(spec, project=project).slug, 6)
    assert sorted(slugs) == ["water", *(f"water-{number}" for number in range(2, 7))]


@pytest.mark.django_db
def test_it_takes_ten_thousand_trials_in_few_queries(django_assert_max_num_queries: CaptureQueriesContext) -> None:
    project = load_defaults()
    sweep = {"hosts": "1..20", "molecules": [64, 125, 216, 512, 1000], "temperature": "300..309"}
    spec = parse(written(parameters={}, sweep=sweep, repetitions=10))
    with django_assert_max_num_queries(30):  # type: ignore[operator]
        experiment = Experiment.submit(spec, project=project)
    assert experiment.trials.count() == 10_000
    assert experiment.configurations.count() == 1_000


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("kind", "settings", "most"),
    [("local", {}, 1), ("testbed", {}, 250), ("ssh", {"hosts": ["a", "b", "c"]}, 3), ("slurm", {}, None)],
)
def test_it_refuses_more_hosts_than_the_cluster_has(kind: str, settings: dict[str, Any], most: int | None) -> None:
    Cluster.objects.create(slug="rack", name="Rack", kind=kind, settings=settings)

    def submit(hosts: int) -> Experiment:
        spec = specification(cluster="rack", sweep={}, parameters={"hosts": hosts})
        return Experiment.submit(spec, project=load_defaults())

    assert submit(most or 300).trials.exists()
    if most is not None:
        with pytest.raises(
            InvalidSpec, match=rf"^parameters.hosts: the cluster Rack has {most} hosts?, not {most + 1}$"
        ):
            submit(most + 1)


def test_it_reads_a_stored_specification_even_when_the_limit_was_lowered() -> None:
    large = parse(written(sweep={"hosts": "1..20"}, repetitions=1000), max_trials=20_000)
    experiment = Experiment(specification=large.to_dict())
    assert experiment.spec == large  # 20 000 trials, twice what parse() allows by default


def test_it_keeps_the_order_in_which_a_sweep_was_written(db: None) -> None:
    sweep = {"temperature": [300, 310], "hosts": [2, 1], "link.mtu": [9000, 1500]}
    data = {"workload": "water", "name": "Order", "sweep": sweep}
    experiment = Experiment.objects.get(pk=Experiment.submit(parse(data), project=load_defaults()).pk)
    for stored in (experiment.specification, experiment.versions.get().specification):
        assert list(stored["sweep"]) == list(sweep)
    assert list(experiment.spec.sweep) == list(sweep)
