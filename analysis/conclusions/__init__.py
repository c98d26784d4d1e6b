"""Conclusions of an experiment: observations (numbers with intervals), rules that turn them into causes, one answer. Pure.

``answer(asked)`` answers the question of a design, ``diagnose(study)`` applies every rule to its study, and ``facts`` are what the rules
add to the answer.
"""

from analysis.conclusions.answer import Answer, Cause, ChangePart, Figure, Missing
from analysis.conclusions.answering import OUTLIERS, answer, together
from analysis.conclusions.context import Accepted, Asked, Deciding, Factor, Question, question
from analysis.conclusions.diagnosis import Curve, Diagnosis, FittedModel, Model, Slice, diagnose
from analysis.conclusions.facts import MOST_CAUSES, Fact, causes_of, facts
from analysis.conclusions.observations.grid import Together
from analysis.conclusions.observations.reading import Observation
from analysis.conclusions.observations.scatter import Scatter, SimultaneousIntervals, pooled
from analysis.conclusions.rules.registry import Finding
from analysis.conclusions.rules.report import Report, Verdict, find
from analysis.conclusions.sentences.key_figures import key_figures
from analysis.conclusions.text import FOLDS, render
from analysis.conclusions.wording import place

__all__ = [
    "FOLDS",
    "MOST_CAUSES",
    "OUTLIERS",
    "Accepted",
    "Answer",
    "Asked",
    "Cause",
    "ChangePart",
    "Curve",
    "Deciding",
    "Diagnosis",
    "Fact",
    "Factor",
    "Figure",
    "Finding",
    "FittedModel",
    "Missing",
    "Model",
    "Observation",
    "Question",
    "Report",
    "Scatter",
    "SimultaneousIntervals",
    "Slice",
    "Together",
    "Verdict",
    "answer",
    "causes_of",
    "diagnose",
    "facts",
    "find",
    "key_figures",
    "place",
    "pooled",
    "question",
    "render",
    "together",
]
