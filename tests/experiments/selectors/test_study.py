"""Studies from rows, and their diagnosis."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from experiments.library import load_defaults
from experiments.models import Experiment, Kind, Measurement, State, Trial
from experiments.selectors.diagnosis import diagnosis_of
from experiments.selectors.study import study_of
from experiments.specification import parse

ELAPSED = {1: (10.0, 10.2, 9.8), 2: (5.6, 5.5, 5.4), 4: (7.9, 8.1, 8.0)}


@pytest.fixture
def measured(db: None, empty_redis: object) -> Experiment:
    """Three sizes of three repetitions, best at two hosts, one failure more."""
    spec = {"name": "s", "workload": "water", "sweep": {"hosts": [1, 2, 4]}, "repetitions": 4, "warmups": 1}
    experiment = Experiment.submit(parse(spec), project=load_defaults())
    for trial in experiment.trials.select_related("configuration"):
        failed = trial.repetition == 4
        Trial.objects.filter(pk=trial.pk).update(state=State.FAILED if failed else State.FINISHED)
        if not failed:
            value = ELAPSED[trial.configuration.hosts][trial.repetition - 1]
            Measurement.objects.create(trial=trial, metric="elapsed_s", value=value)
    return experiment


def test_it_hands_over_counted_values_and_counts_the_others(measured: Experiment) -> None:
    study = study_of(measured)
    assert [list(p.values["elapsed_s"]) for p in study.points] == [list(v) for v in ELAPSED.values()]
    assert dict(study.points[0].excluded) == {"warm-up": 1, "failed": 1}
    assert not study.published


def test_values_know_the_order_in_which_their_trials_ran(measured: Experiment) -> None:
    began = timezone.now()
    trials = list(measured.trials.exclude(state=State.FAILED).order_by("position"))
    late = next(t for t in trials if t.configuration.hosts == 2 and t.kind == Kind.MEASURED)
    for place, trial in enumerate([*(t for t in trials if t != late), late]):
        Trial.objects.filter(pk=trial.pk).update(running_at=began + timedelta(seconds=place))
    Measurement.objects.create(trial=late, metric="cpu_s", value=1.0)

    points = study_of(measured).points

    # After three warm-ups, in rounds of alternating direction; one trial of two hosts ran last of all.
    assert [list(p.order["elapsed_s"]) for p in points] == [[3, 7, 8], [11, 6, 9], [4, 5, 10]]
    assert points[1].order["cpu_s"] == [11]


def test_values_of_trials_without_times_know_no_order(measured: Experiment) -> None:
    assert all(not p.order for p in study_of(measured).points)


def test_a_link_is_certified_by_every_counted_trial_that_uses_one(measured: Experiment) -> None:
    more = Trial.objects.filter(experiment=measured, configuration__hosts__gt=1)
    more.update(certificate={"kept": True})
    assert study_of(measured).link_certified
    more.filter(repetition=2, configuration__hosts=4).update(certificate={"kept": False})
    assert not study_of(measured).link_certified


def test_it_finds_where_scaling_stops(measured: Experiment) -> None:
    report = diagnosis_of(measured).study.report
    assert report.verdict.verdict == "limited"
    assert report.verdict.best_size == 2


def test_it_computes_findings_again_only_when_trials_changed(
    measured: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = diagnosis_of(measured)
    monkeypatch.setattr("experiments.selectors.diagnosis.study_of", lambda *_, **__: pytest.fail("computed again"))
    assert diagnosis_of(measured) == first
    measured.trials.filter(repetition=4).update(superseded=True)
    with pytest.raises(pytest.fail.Exception):
        diagnosis_of(measured)
