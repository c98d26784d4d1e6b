"""Generated trials of benchmarks: complete, summarised, own project."""

import pytest

from benchmarks.generated import generate
from experiments.models import Measurement, Summary, Trial
from tests.experiments import factories


@pytest.mark.django_db
def test_generated_trials_leave_others_as_they_are() -> None:
    factories.experiment()
    mine = factories.finished()
    assert generate(60) == 60
    trials = Trial.objects.filter(experiment__project__slug="generated")
    assert set(trials.values_list("worker", "state")) == {("generated", "finished")}
    assert Measurement.objects.filter(trial__in=trials).count() == 60 * 60
    row = Summary.objects.filter(configuration__trials__in=trials, metric="elapsed_s").distinct()
    assert [each.n for each in row] == [5] * 12
    others = Trial.objects.filter(state="finished", experiment__published=False).exclude(pk__in=trials)
    assert list(others) == [mine]
