"""The version of the cached diagnosis."""

from __future__ import annotations

import hashlib
from dataclasses import fields

import pytest
from structlog.testing import capture_logs

from analysis.conclusions import (
    Answer,
    Cause,
    Curve,
    Diagnosis,
    Fact,
    Finding,
    FittedModel,
    Model,
    Report,
    Scatter,
    Slice,
)
from analysis.conclusions.answer import Figure, Missing
from analysis.conclusions.observations.reading import Observation
from analysis.conclusions.rules.report import Verdict
from analysis.scaling import Estimate, Misfit, ObserverEffect, ScalingRow, Suggestion, TimeRow, WireRow
from analysis.statistics import Interval, SampleSummary
from experiments.models import State, TrialResult
from experiments.selectors import diagnosis as module
from experiments.selectors.diagnosis import CachedDiagnosis, ObservedPoint
from tests.experiments import factories

KEPT = (
    CachedDiagnosis, ObservedPoint, Diagnosis, Slice, Model, FittedModel, Curve, Report, Finding, Observation, Verdict,
    Answer, Fact, Figure, Cause, Missing, Scatter, ScalingRow, TimeRow, WireRow, Suggestion, ObserverEffect, Estimate, Interval,
    SampleSummary, Misfit,
)  # fmt: skip


def test_a_changed_cache_format_has_a_new_version() -> None:
    named = [(kind.__module__, kind.__name__, [f.name for f in fields(kind)]) for kind in KEPT]
    digest = hashlib.sha256(repr(named).encode()).hexdigest()[:8]
    assert (module._FORM, digest) == (57, "5a984831"), "count _FORM up: old answers lie in caches under its number"


@pytest.mark.django_db
def test_a_configuration_whose_trials_all_failed_has_no_trial_while_others_run() -> None:
    experiment = factories.experiment(sweep={"hosts": [1, 2]}, repetitions=2)
    experiment.trials.filter(configuration__hosts=1).update(state=State.FAILED)
    experiment.trials.filter(configuration__hosts=2, repetition=1).update(state=State.FINISHED)
    look = module._looks([experiment])[experiment.pk]
    assert (look.trials, look.as_of) == (1, (0, 0, 0))


@pytest.mark.django_db
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_an_answer_that_cannot_be_computed_is_tried_once_for_the_same_trials(empty_redis: object) -> None:
    experiment = factories.experiment(sweep={"hosts": [1, 2]}, repetitions=3)
    for _ in range(6):
        trial = factories.analysing()
        value = (1e308, 1e-300)[(trial.repetition + trial.configuration.hosts) % 2]
        trial.finish(TrialResult({"all": {"elapsed_s": value}}, {}, "good"))
    with capture_logs() as logged:
        tried = [module.answers_of([experiment]) for _ in range(2)]
    assert tried == [{}, {}]
    assert [entry["event"] for entry in logged] == ["answer_not_computed"]
    assert module.last_answer(experiment) is None
    assert module.last_strengths([experiment]) == {}
