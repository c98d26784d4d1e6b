"""Trials with a flagged capture: times count, traffic is excluded and reported."""

import pytest
from django.db import connection
from django.urls import reverse

from analysis.catalogue import METRICS
from experiments.models import Configuration, Experiment, Measurement, Summary, Trial
from experiments.selectors import configuration_rows
from experiments.selectors.study import study_of
from experiments.traffic import in_statistics
from tests.dashboard.api.clients import client_of
from tests.dashboard.explorer import left_out, pivoted


@pytest.fixture
def measured(submit, run) -> Experiment:
    """Two hosts, four trials, the first of them with a degraded capture."""
    experiment = submit(name="Doubtful", repetitions=4, sweep={"hosts": [2]})
    run(most=1, trust="degraded")
    run()
    connection.check_constraints()  # fires the triggers that summarise
    return experiment


@pytest.fixture
def configuration(measured) -> Configuration:
    return measured.configurations.get()


@pytest.mark.django_db
@pytest.mark.parametrize("trust", ["", "good", "degraded", "unusable"])
def test_the_database_and_python_agree_on_every_metric(trust):
    with connection.cursor() as cursor:
        for scope in ("all", "mpi"):
            for metric in (*METRICS, "water.ns_per_day"):
                cursor.execute("SELECT experiments_in_statistics(%s, %s, %s)", [trust, metric, scope])
                assert cursor.fetchone()[0] == in_statistics(trust, metric, scope), (metric, scope)


def test_it_keeps_summaries_without_their_traffic(configuration):
    counts = dict(Summary.objects.filter(configuration=configuration).values_list("metric", "n"))
    assert (counts["elapsed_s"], counts["packets"]) == (4, 3)
    Trial.objects.filter(configuration=configuration).update(trust="unusable")
    connection.check_constraints()
    counts = dict(Summary.objects.filter(configuration=configuration).values_list("metric", "n"))
    assert counts["elapsed_s"] == 4
    assert "packets" not in counts


def test_it_gives_only_times_to_an_experiment_and_its_findings(measured):
    (row,) = configuration_rows(measured, ["elapsed_s", "packets"])
    assert {metric: len(values) for metric, values in row.values.items()} == {"elapsed_s": 4, "packets": 3}
    (point,) = study_of(measured).points
    assert (len(point.array("elapsed_s")), len(point.array("packets"))) == (4, 3)
    assert point.trust["degraded"] == 1


def test_their_traffic_stays_in_sight(measured, page):
    charts = {c.element: c for s in page.get(measured.get_absolute_url()).context["sections"] for c in s.charts}
    marks = {
        element: [t["x"] for t in charts[element].figure["data"] if t.get("name") == "Flagged, traffic excluded"]
        for element in ("packets", "time")
    }
    assert marks == {"packets": [[2]], "time": []}
    measured.trials.update(trust="unusable")
    html = page.get(measured.get_absolute_url()).content.decode()
    assert "Flagged, traffic excluded" in html


def test_it_says_how_many_trials_the_explorer_leaves_out(measured, person, page):
    assert [cell.trials for cell in pivoted(person, text="doubtful", y="packets").cells] == [3]
    assert [cell.trials for cell in pivoted(person, text="doubtful").cells] == [4]
    assert (left_out(person, text="doubtful", y="packets"), left_out(person, text="doubtful")) == (1, 0)
    html = page.get(reverse("explore"), {"text": "doubtful", "y": "packets"}).content.decode()
    assert "The traffic of 1 flagged trial is excluded" in html
    reported = client_of(person).get("/api/v1/explore/", {"text": "doubtful", "y": "packets"}).json()
    assert reported["flagged_left_out"] == 1


def test_the_page_of_each_trial_has_the_medians_of_its_experiment(measured, page):
    for trial in measured.trials.order_by("pk"):
        tiles = {tile.metric: tile.meaning.split() for tile in page.get(trial.get_absolute_url()).context["tiles"]}
        assert ("4" in tiles["elapsed_s"], "3" in tiles["packets"]) == (True, True), trial.trust
    measured.trials.update(trust="unusable")
    words = {tile.metric: tile.words for tile in page.get(trial.get_absolute_url()).context["tiles"]}
    assert words["packets"] == "no median: all repetitions are flagged"
    Configuration.objects.filter(pk=trial.configuration_id).update(hosts=1)
    Measurement.objects.filter(trial=trial, metric="packets").update(value=0)
    words = {tile.metric: tile.words for tile in page.get(trial.get_absolute_url()).context["tiles"]}
    assert words["packets"] == "one host sends no packets"
