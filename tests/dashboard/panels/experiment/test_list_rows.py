"""Rows of lists describe the current version of an experiment."""

from dashboard.charts.marks import sparkline
from dashboard.panels.experiment.list_rows import experiment_rows
from experiments.specification import parse
from tests.dashboard.laboratory import specification


def test_it_draws_no_point_that_a_revision_dropped(submit, run):
    experiment = submit(repetitions=1)
    run()
    (before,) = experiment_rows([experiment])
    assert before.spark is not None
    assert len(before.spark.points) == 3
    experiment.revise(parse(specification(sweep={"hosts": [2, 4]}, repetitions=1)))
    (after,) = experiment_rows([experiment])
    assert after.spark == sparkline([2.1 * 1.02, 2.6 * 1.02])
