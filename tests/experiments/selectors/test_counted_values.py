"""Values from arrays equal those of the rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from experiments.models import Experiment, Measurement
from experiments.selectors import configuration_rows
from experiments.selectors.counted_values import counted_values, measured_metrics, values_of_trials
from tests.experiments import factories

pytestmark = pytest.mark.django_db
METRICS = ("packets", "elapsed_s", "unknown.metric")


@pytest.fixture
def measured() -> Experiment:
    """Trials with different metrics; one has a flagged capture, one waits."""
    experiment = factories.experiment()
    factories.finished()
    few = replace(factories.RESULT, measurements={"all": {"elapsed_s": 2.5}, "mpi": {}})
    factories.finished(few)
    factories.finished(replace(few, measurements={"all": {"packets": 7.0, "elapsed_s": 3.5}}, trust="degraded"))
    return experiment


def by_rows(experiment: Experiment, scope: str) -> set[tuple[int, str, float]]:
    rows = Measurement.objects.counted().filter(trial__experiment=experiment, metric__in=METRICS, scope=scope)
    return set(rows.values_list("trial_id", "metric", "value"))


@pytest.mark.parametrize("scope", ["all", "mpi"])
def test_counted_values_equal_the_measurements(measured: Experiment, scope: str) -> None:
    values = counted_values(measured, METRICS, scope)
    stored = {
        (trial, metric, number)
        for trial, row in zip(values.trials, values.numbers.tolist(), strict=True)
        for metric, number in zip(METRICS, row, strict=True)
        if not np.isnan(number)
    }
    assert stored == by_rows(measured, scope)
    assert stored


@pytest.mark.parametrize("scope", ["all", "mpi"])
def test_values_of_trials_equal_their_measurements(measured: Experiment, scope: str) -> None:
    for some in (measured.trials.all(), measured.trials.order_by("-pk")[:3], measured.trials.none()):
        keys = [trial.pk for trial in some]
        there, values = values_of_trials(keys, scope)
        stored = {
            (trial, metric, number)
            for metric, numbers in values.items()
            for trial, number in zip(there, numbers.tolist(), strict=True)
            if not np.isnan(number)
        }
        rows = Measurement.objects.filter(trial__in=keys, scope=scope)
        assert stored == set(rows.values_list("trial_id", "metric", "value"))
        assert there == sorted(there)


def test_it_names_what_was_measured(measured: Experiment) -> None:
    assert measured_metrics(measured, "all") == ["elapsed_s", "packets"]
    assert measured_metrics(measured, "mpi") == ["packets"]


def test_it_asks_nothing_without_metrics(measured: Experiment, django_assert_num_queries) -> None:
    with django_assert_num_queries(0):
        assert counted_values(measured, (), "all").by_configuration() == {}


def test_configuration_rows_exclude_gaps_and_flagged_traffic(measured: Experiment) -> None:
    rows = configuration_rows(measured, METRICS)
    assert sorted(value for row in rows for value in row.values.get("elapsed_s", ())) == [1.5, 2.5, 3.5]
    assert [value for row in rows for value in row.values.get("packets", ())] == [1200.0]
    assert [value for row in rows for value in row.flagged.get("packets", ())] == [7.0]
    assert all(len(row.values[metric]) == len(row.trial_ids[metric]) for row in rows for metric in row.values)
