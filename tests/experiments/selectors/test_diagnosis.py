"""The kept diagnosis: typed, in one form, and never read in another."""

from __future__ import annotations

import hashlib
import pickle
from dataclasses import fields

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
from experiments.selectors import diagnosis as module
from experiments.selectors.diagnosis import KeptDiagnosis, ObservedPoint

KEPT = (
    KeptDiagnosis, ObservedPoint, Diagnosis, Slice, Model, FittedModel, Curve, Report, Finding, Observation, Verdict,
    Answer, Fact, Figure, Cause, Missing, Scatter, ScalingRow, TimeRow, WireRow, Suggestion, ObserverEffect, Estimate, Interval,
    SampleSummary, Misfit,
)  # fmt: skip


def test_a_change_of_what_is_kept_is_a_new_form() -> None:
    named = [(kind.__module__, kind.__name__, [f.name for f in fields(kind)]) for kind in KEPT]
    digest = hashlib.sha256(repr(named).encode()).hexdigest()[:8]
    assert (module._FORM, digest) == (31, "40746e1f"), "count _FORM up: caches hold old answers under its number"


def test_it_survives_being_kept() -> None:
    estimate = Estimate(2.0, Interval(1.0, None, 0.95, "t"))
    effect = ObserverEffect(1.1, 1.0, 2, 0.1, None, None, within_scatter=True)
    point = ObservedPoint({"hosts": 2}, effect)
    again = pickle.loads(pickle.dumps((estimate, point)))  # noqa: S301 - our own, made in this line
    assert again == (estimate, point)
