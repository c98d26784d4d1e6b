"""Scaling of a study: speed-up, models, where the time goes, next points. Pure."""

from analysis.scaling.breakdown import TimeRow, WireRow, time_breakdown, wire_part
from analysis.scaling.choice import ModelChoice, fit_models
from analysis.scaling.models import Fit, Misfit
from analysis.scaling.observer import ObserverEffect, observer_effect
from analysis.scaling.points import Suggestion, suggest_points
from analysis.scaling.speedup import Estimate, ScalingRow, scaling_table
from analysis.scaling.study import DISTURBED, NOT_STARTED, Point, ProgramFile, Study

__all__ = [
    "DISTURBED",
    "NOT_STARTED",
    "Estimate",
    "Fit",
    "Misfit",
    "ModelChoice",
    "ObserverEffect",
    "Point",
    "ProgramFile",
    "ScalingRow",
    "Study",
    "Suggestion",
    "TimeRow",
    "WireRow",
    "fit_models",
    "observer_effect",
    "scaling_table",
    "suggest_points",
    "time_breakdown",
    "wire_part",
]
