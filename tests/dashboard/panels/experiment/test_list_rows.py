"""Rows of lists describe the current version of an experiment."""

from django.db import connection

from dashboard.charts.marks import sparkline
from dashboard.panels.experiment import list_rows
from dashboard.panels.experiment.list_rows import ExperimentRow, experiment_rows
from experiments.models import Experiment, Measurement, State, Trial
from experiments.specification import parse
from tests.dashboard.laboratory import specification


def row_of(experiment: Experiment) -> ExperimentRow:
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # summaries are written at the end of a transaction
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")
    (row,) = experiment_rows([experiment])
    return row


def test_it_draws_no_point_that_a_revision_dropped(submit, run):
    experiment = submit(repetitions=1)
    run()
    before = row_of(experiment)
    assert before.spark is not None
    assert len(before.spark.points) == 3
    experiment.revise(parse(specification(sweep={"hosts": [2, 4]}, repetitions=1)))
    after = row_of(experiment)
    assert after.spark == sparkline([2.1 * 1.02, 2.6 * 1.02], is_marked=False)


def test_its_sparkline_is_of_what_decides_and_marks_the_best_of_an_answer(submit, monkeypatch):
    experiment = submit(workload="hpl", sweep={"hosts": [1, 2, 4]}, parameters={}, repetitions=1)
    for trial in experiment.trials.select_related("configuration"):
        Trial.objects.filter(pk=trial.pk).update(state=State.FINISHED)
        elapsed, rate = {1: (17.0, 0.8), 2: (42.0, 1.2), 4: (54.0, 0.4)}[trial.configuration.hosts]
        Measurement.objects.create(trial=trial, metric="elapsed_s", value=elapsed)
        Measurement.objects.create(trial=trial, metric="hpl.gflops", value=rate)

    best = {}
    for strength in ("firm", "moderate", "open"):
        monkeypatch.setattr(list_rows, "last_strengths", lambda _, strength=strength: {experiment.pk: strength})
        row = row_of(experiment)
        best[strength] = row.spark.best

    assert row.spark == sparkline([0.8, 1.2, 0.4], of="HPL rate", highest=True, is_marked=False)
    assert best == {"firm": 1, "moderate": 1, "open": None}


def test_a_zipped_sweep_shows_values_that_differ():
    values = "1 Gbit/s, 1 Gbit/s, 1 Gbit/s, 1 Gbit/s, 470 Mbit/s, 100 Mbit/s"
    words = list_rows.sweep_words(Experiment(specification={"sweep": {"link.bandwidth": values}}))
    assert words == "bandwidth 1 Gbit/s, 470 Mbit/s, 100 Mbit/s"


def test_several_factors_have_no_sparkline(submit, run):
    experiment = submit(repetitions=1, sweep={"hosts": [1, 2], "link.delay": ["0 ms", "1 ms"]})
    run()
    row = row_of(experiment)
    assert row.spark is None
