"""Scaling of a study: speed-up and efficiency, models, where the time goes, and what to measure next. Pure."""

from analysis.scaling.breakdown import TimeRow, WireRow, time_breakdown, wire_part
from analysis.scaling.choice import ModelChoice, fit_models
from analysis.scaling.laws import amdahl, gustafson, usl
from analysis.scaling.models import Fit, Misfit, Prediction
from analysis.scaling.observer import ObserverEffect, observer_effect
from analysis.scaling.pmnf import pmnf
from analysis.scaling.points import Suggestion, suggest_points
from analysis.scaling.speedup import Estimate, ScalingRow, karp_flatt, scaling_table
from analysis.scaling.study import DISTURBED, Point, Study

__all__ = [
    "DISTURBED",
    "Estimate",
    "Fit",
    "Misfit",
    "ModelChoice",
    "ObserverEffect",
    "Point",
    "Prediction",
    "ScalingRow",
    "Study",
    "Suggestion",
    "TimeRow",
    "WireRow",
    "amdahl",
    "fit_models",
    "gustafson",
    "karp_flatt",
    "observer_effect",
    "pmnf",
    "scaling_table",
    "suggest_points",
    "time_breakdown",
    "usl",
    "wire_part",
]
