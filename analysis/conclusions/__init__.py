"""Conclusions of an experiment: observations, rules, causes, one answer. Pure.

``answer(asked)`` answers the question of a design, ``diagnose(study)`` applies every rule to its study, and ``facts`` adds
the findings of the rules to the answer.
"""

from analysis.conclusions.answer import Answer, Cause, ChangePart
from analysis.conclusions.answering import answer, experiment_intervals
from analysis.conclusions.context import Accepted, Deciding, ExperimentQuestion, Factor, question
from analysis.conclusions.diagnosis import Curve, Diagnosis, Model, Slice, diagnose
from analysis.conclusions.facts import Fact, causes_of, facts
from analysis.conclusions.observations.grid import ExperimentIntervals
from analysis.conclusions.observations.scatter import Scatter, pooled
from analysis.conclusions.rules.registry import Finding
from analysis.conclusions.rules.report import Report
from analysis.conclusions.sentences.key_figures import key_figures
from analysis.conclusions.text import FOLDS, render
from analysis.conclusions.wording import place
from analysis.scaling.models import FittedModel

__all__ = [
    "FOLDS",
    "Accepted",
    "Answer",
    "Cause",
    "ChangePart",
    "Curve",
    "Deciding",
    "Diagnosis",
    "ExperimentIntervals",
    "ExperimentQuestion",
    "Fact",
    "Factor",
    "Finding",
    "FittedModel",
    "Model",
    "Report",
    "Scatter",
    "Slice",
    "answer",
    "causes_of",
    "diagnose",
    "experiment_intervals",
    "facts",
    "key_figures",
    "place",
    "pooled",
    "question",
    "render",
]
