"""Proposals of pages stay within the hosts of the cluster."""

from __future__ import annotations

import json
import os
import re

import pytest
import yaml
from django.urls import reverse

from experiments import workloads
from experiments.models import Cluster, Experiment, Measurement, State, Trial
from experiments.specification import parse
from experiments.specification.design import expand, most_hosts

CORES = len(os.sched_getaffinity(0))
STILL_FALLING = {1: (10.0, 10.2, 9.8, 10.1, 9.9), 2: (5.6, 5.5, 5.9, 5.5, 5.2), 4: (4.9, 4.1, 4.6, 4.2, 4.5)}


def hosts(*names: str) -> dict:
    return {"kind": "ssh", "settings": {"hosts": list(names)}}


CLUSTERS = {
    "lab-1": hosts("n1"),
    "lab-2": hosts("n1", "n2"),
    "lab-3": hosts("n1", "n2", "n3"),
    "alone": {"kind": "local"},
    "stated": {"kind": "slurm", "facts": {"hosts": 2}},
    "unstated": {"kind": "slurm"},
    "virtual": {"kind": "testbed"},
}


@pytest.fixture
def clusters(library) -> None:
    for slug, fields in CLUSTERS.items():
        Cluster.objects.create(slug=slug, name=slug, **fields)


def draft_on(response) -> dict:
    """Return the draft of the form as YAML, validated as at the start."""
    assert response.status_code == 200
    return yaml.safe_load(response.context["yaml"])


@pytest.mark.usefixtures("clusters")
@pytest.mark.parametrize(
    ("slug", "sweep"),
    [
        ("lab-1", {"ranks_per_host": [1, 2]}),  # its number of cores is unknown
        ("lab-2", {"hosts": [1, 2]}),
        ("lab-3", {"hosts": [1, 2]}),
        ("alone", {"ranks_per_host": [1, 2][:CORES]}),
        ("stated", {"hosts": [1, 2]}),
        ("unstated", {"hosts": [1, 2]}),
        ("virtual", {"hosts": [1, 2, 4]}),
    ],
)
def test_it_proposes_a_first_sweep_that_the_chosen_cluster_can_run(page, slug, sweep):
    response = page.get(reverse("new"), {"cluster": slug})
    draft = draft_on(response)
    assert (draft["cluster"], draft["sweep"]) == (slug, sweep)
    assert response.context["preview"] is not None, "and it is ready to start"
    assert not response.context["form"].all_errors
    spec, cluster = parse(draft), Cluster.objects.get(slug=slug)
    cluster.require_hosts(*most_hosts(spec, expand(spec)))


@pytest.mark.parametrize("workload", [built.slug for built in workloads.built_in() if built.slug != "command"])
@pytest.mark.usefixtures("clusters")
def test_it_proposes_a_first_sweep_that_the_workload_can_run(page, workload):
    for slug in ("testbed", "alone", "lab-1"):
        response = page.get(reverse("new"), {"workload": workload, "cluster": slug})
        assert not response.context["form"].all_errors
        assert response.context["preview"].trials > 0
        first = {"name": "TIP4P water, rank sweep", "sweep_name": ["ranks_per_host"], "sweep_values": ["1, 2"]}
        fields = first | {"workload": workload, "previous": "water", "cluster": slug, "parameters.steps": "300"}
        other = page.post(reverse("new-fields"), fields)
        assert workload == "water" or slug == "testbed" or other.context["yaml"] == response.context["yaml"]


@pytest.mark.usefixtures("clusters")
def test_it_proposes_another_cluster_and_what_that_can_run_without_the_test_bed(page):
    Cluster.objects.filter(slug="testbed").update(enabled=False)
    Cluster.objects.exclude(slug="lab-2").update(enabled=False)
    draft = draft_on(page.get(reverse("new")))
    assert (draft["cluster"], draft["sweep"]) == ("lab-2", {"hosts": [1, 2]})


@pytest.mark.usefixtures("clusters")
def test_it_fills_a_new_row_with_no_more_than_each_cluster_has(page):
    Cluster.objects.filter(slug="lab-3").update(facts={"cores_per_host": 1})
    html = page.get(reverse("new")).content.decode()
    values = json.loads(re.search(r'id="sweep-row" data-values="([^"]*)"', html)[1].replace("&quot;", '"'))
    assert values["lab-1"].items() >= {"hosts": "1", "ranks_per_host": "1, 2"}.items()
    assert values["lab-3"].items() >= {"hosts": "1, 2", "ranks_per_host": "1"}.items()
    assert values["alone"]["hosts"] == "1"
    assert values["alone"]["ranks_per_host"] == ", ".join(map(str, [1, 2][:CORES]))
    assert values["stated"]["hosts"] == "1, 2"


@pytest.mark.usefixtures("clusters")
def test_it_fills_a_new_row_with_the_choices_or_the_default_of_its_parameter(page):
    form = page.get(reverse("new"), {"workload": "data-staging"}).context["form"]
    values = json.loads(form.row_values)["lab-1"]
    fields = {field.parameter: field for field in form.workload_fields}
    assert values["staging"] == "pull, multicast, tree"
    assert {values[name] == fields[name].value for name in fields if not fields[name].choices} == {True}


@pytest.mark.usefixtures("clusters")
def test_it_lists_the_clusters_with_the_hosts_that_are_known(page):
    Cluster.objects.filter(slug="lab-1").update(enabled=False)
    html = page.get(reverse("clusters")).content.decode()
    assert f'href="{reverse("new")}?cluster=lab-3"' in html
    assert f'href="{reverse("new")}?cluster=lab-1"' not in html
    values = dict(
        re.findall(
            r'<span class="faint mono">([\w-]+)</span>.*?</td><td>[^<]*</td><td class="num of-metric" data-name="Hosts">([^<]*)</td>',
            html,
        )
    )
    assert values["lab-3"] == "3"
    assert (values["alone"], values["virtual"]) == ("1", "as requested")
    assert (values["stated"], values["unstated"]) == ("2", "as allocated")


@pytest.fixture
def experiment(submit, clusters, empty_redis) -> Experiment:
    """Still falling at four hosts, on a cluster of six."""
    Cluster.objects.filter(slug="lab-3").update(settings={"hosts": ["n1", "n2", "n3", "n4", "n5", "n6"]})
    made = submit(repetitions=5, cluster="lab-3")
    for trial in made.trials.select_related("configuration"):
        Trial.objects.filter(pk=trial.pk).update(state=State.FINISHED)
        elapsed_s = STILL_FALLING[trial.configuration.hosts][trial.repetition - 1]
        Measurement.objects.create(trial=trial, metric="elapsed_s", value=elapsed_s)
    return made


def next_hosts(html: str) -> list[int]:
    return [int(count) for count in re.findall(r">(\d+) hosts?</span></b>", html)]


@pytest.mark.parametrize("has", [6, 5, 4, 3, 1, 0])
def test_it_shows_next_points_within_the_cluster(page, experiment, has):
    names = [f"n{number}" for number in range(1, has + 1)]
    Cluster.objects.filter(slug="lab-3").update(settings={"hosts": names})
    html = page.get(reverse("experiment-diagnosis", args=[experiment.slug])).content.decode()
    assert max(next_hosts(html), default=0) <= has
    assert ('name="stamp"' in html) == (has >= 4)
    if has == 6:
        assert max(next_hosts(html)) > 4


def test_it_does_not_queue_next_points_once_the_cluster_has_lost_the_hosts(page, experiment):
    html = page.get(reverse("experiment-diagnosis", args=[experiment.slug])).content.decode()
    stamp = re.search(r'name="stamp" value="(\w+)"', html)[1]
    Cluster.objects.filter(slug="lab-3").update(settings={"hosts": ["n1", "n2", "n3", "n4"]})
    page.post(reverse("experiment-next", args=[experiment.slug]), {"stamp": stamp}, follow=True)
    assert not experiment.trials.filter(state=State.QUEUED).exists()
    experiment.refresh_from_db()
    assert experiment.version == 1
