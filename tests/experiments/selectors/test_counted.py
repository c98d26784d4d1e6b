"""Counted trials and counted values share one condition."""

from __future__ import annotations

from dataclasses import replace

import pytest

from experiments.models import Experiment, Kind, Measurement, Trial
from tests.experiments import factories
from tests.experiments.specifications import specification

pytestmark = pytest.mark.django_db


@pytest.fixture
def experiment() -> Experiment:
    """A warm-up, a control run, two repetitions at two sizes, one repeated."""
    experiment = factories.experiment(warmups=1, control=1, order="sequential")
    while experiment.trials.unfinished().exists():
        factories.finished()
    first = experiment.trials.filter(kind=Kind.MEASURED).order_by("position").first()
    assert first is not None
    first.queue_attempt()
    factories.finished(replace(factories.RESULT, trust="degraded"))
    return experiment


def trials_of_counted_values(*kinds: Kind) -> set[int]:
    """Return the trials whose values are counted."""
    return set(Measurement.objects.counted(*kinds).values_list("trial_id", flat=True))


def test_counted_values_and_trials_agree(experiment: Experiment) -> None:
    trials = set(Trial.objects.counted().values_list("pk", flat=True))
    assert len(trials) == 4
    assert trials_of_counted_values() == trials
    assert {(t.kind, t.superseded) for t in Trial.objects.filter(pk__in=trials)} == {("measured", False)}


def test_it_counts_no_point_that_a_revision_dropped(experiment: Experiment) -> None:
    experiment.revise(specification(warmups=1, control=1, order="sequential", sweep={"hosts": [2]}))
    assert set(Trial.objects.counted().values_list("configuration__hosts", flat=True)) == {2}
    assert trials_of_counted_values() == set(Trial.objects.counted().values_list("pk", flat=True))


def test_counted_returns_other_kinds_on_request(experiment: Experiment) -> None:
    controls = set(experiment.trials.filter(kind=Kind.CONTROL).values_list("pk", flat=True))
    assert len(controls) == 2
    assert trials_of_counted_values(Kind.CONTROL) == controls
    assert trials_of_counted_values(Kind.MEASURED, Kind.CONTROL) == controls | trials_of_counted_values()


def test_it_counts_flagged_trials_and_names_them(experiment: Experiment) -> None:
    again = experiment.trials.get(attempt=2)
    assert [trial.pk for trial in Trial.objects.flagged()] == [again.pk]
    metrics = Measurement.objects.counted().in_statistics().filter(trial=again).values_list("metric", flat=True)
    assert list(metrics) == ["elapsed_s"]
