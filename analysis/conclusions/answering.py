"""The answer of an experiment: by slices, without drift, with outliers. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, Final

from analysis.conclusions.answer import Answer, Cause, Figure, Strength
from analysis.conclusions.context import ExperimentQuestion, Factor, QuestionKind, kind_of
from analysis.conclusions.observations.drift import drift_of
from analysis.conclusions.observations.grid import ExperimentIntervals, Grid
from analysis.conclusions.observations.residuals import scatter_of_residuals
from analysis.conclusions.questions.best_settings import answer_best_settings
from analysis.conclusions.questions.loads import answer_load
from analysis.conclusions.questions.network import answer_network
from analysis.conclusions.questions.sizes import answer_point, answer_scale, answer_weak
from analysis.conclusions.questions.steps import answer_steps
from analysis.conclusions.questions.strength import repeated_once
from analysis.conclusions.questions.survival import judged
from analysis.conclusions.questions.treatments import answer_treatment
from analysis.conclusions.questions.trends import answer_growth, answer_messages
from analysis.conclusions.sentences import answers as words
from analysis.conclusions.wording import point_words
from analysis.scaling import Point

_ANSWERS: Final[Mapping[QuestionKind, Callable[[ExperimentQuestion], Answer]]] = {
    "scale": answer_scale,
    "weak scale": answer_weak,
    "scale and treatment": answer_treatment,
    "network": answer_network,
    "load and network": answer_load,
    "steps": answer_steps,
    "message size": answer_messages,
    "growth": answer_growth,
    "treatment": answer_treatment,
    "one point": answer_point,
    "best settings": answer_best_settings,
}
_WEAKEST_FIRST: Final[tuple[Strength, ...]] = ("open", "moderate", "printed", "firm")
_MOST_CAUSES: Final = 5
OUTLIERS: Final = "outlying trials"
"""Name of the figure that counts the trials of a point that are no part of the scatter."""
SLOWED: Final = "slowed trials"
"""Name of the figure that counts the trials of a point if other load slowed all that count."""
_COMPARES: Final = ("scale", "weak scale", "scale and treatment", "treatment", "steps")
"""Questions that compare single points; fitted trends share the trials of all points."""


def answer(question: ExperimentQuestion) -> Answer:
    """Answer the experiment's question."""
    if not question.measured() and not question.accepted:
        if question.search is not None:
            return answer_best_settings(question)
        return Answer(kind_of(question), words.no_answer(question), "open")
    question = _with_scatter(question)
    drift = drift_of(question)
    result = _answered(question) if drift is None else judged(question, drift, _answered)
    compared = drift.without(question, drift.slope) if drift is not None and drift.is_removed else question
    return _less_sure(question, _with_counts(compared, result))


def _answered(question: ExperimentQuestion) -> Answer:
    kind = kind_of(question)
    slice_factors = _sliced_by(question, kind)
    return _of_slices(question, kind, slice_factors) if slice_factors else _ANSWERS[kind](question)


def experiment_intervals(question: ExperimentQuestion) -> ExperimentIntervals:
    """Return the intervals of the answer, for all of its points."""
    if not question.measured():
        return ExperimentIntervals(question.deciding.metric, [])
    question = _with_scatter(question)
    drift = drift_of(question)
    if drift is None or not drift.is_removed:
        return ExperimentIntervals(question.deciding.metric, _grids(question))
    return ExperimentIntervals(question.deciding.metric, _grids(drift.without(question, drift.slope)), _grids(question))


def _grids(question: ExperimentQuestion) -> list[Grid]:
    slice_factors = _sliced_by(question, kind_of(question))
    return [
        Grid(part)
        for part in ([part for _, part in _slices(question, slice_factors).values()] if slice_factors else [question])
    ]


def _with_scatter(question: ExperimentQuestion) -> ExperimentQuestion:
    return question if question.prior is not None else replace(question, prior=scatter_of_residuals(question))


def _with_counts(question: ExperimentQuestion, result: Answer) -> Answer:
    measured = question.measured()
    counts = [(OUTLIERS, p, n) for p, n in zip(measured, question.claims(measured).outliers, strict=True) if n]
    counts += [(SLOWED, p, p.disturbed) for p in slowed_points(question)]
    names = [factor.name for factor in question.factors]
    figures = tuple(Figure(name, n, "", where={k: p.parameters.get(k) for k in names}) for name, p, n in counts)
    return replace(result, figures=(*result.figures, *figures))


def slowed_points(question: ExperimentQuestion) -> list[Point]:
    """Return the points of which other load slowed every counted trial."""
    return [point for point in question.measured() if len(question.values(point)) <= point.disturbed]


def _less_sure(question: ExperimentQuestion, result: Answer) -> Answer:
    """Lower the strength if other load slowed the trials, or their programs differ.

    Other load slows one point more than another (two ranks on two cores, but not one): repetitions only make
    that look certain.
    """
    weakens = any(
        2 * point.disturbed >= len(question.values(point)) for point in question.measured() if point.disturbed
    )
    once = measured_once(question)
    weakens = weakens or bool(question.changed_programs or once)
    if not weakens or result.strength != "firm":
        return result
    return replace(result, strength="moderate", missing=result.missing or repeated_once(question, once))


def measured_once(question: ExperimentQuestion) -> list[Point]:
    """Return the compared points with one trial, whose scatter is unknown."""
    if question.published or kind_of(question) not in _COMPARES:
        return []
    return [point for point in question.measured() if len(question.values(point)) == 1]


def _sliced_by(question: ExperimentQuestion, kind: QuestionKind) -> list[Factor]:
    """Return the factors within one slice; none if the answer is not sliced."""
    slice_factors: list[Factor] = []
    if kind in ("scale", "weak scale"):
        slice_factors = question.of_role("scale")[:1]
    elif kind in ("message size", "growth"):
        slice_factors = list(question.factors[:1])
    elif kind == "scale and treatment":
        slice_factors = question.of_role("scale", "treatment")
    elif kind == "treatment":
        slice_factors = [*question.of_role("treatment"), *question.of_role("load", "message")[:1]]
    return slice_factors if len(slice_factors) < len(question.factors) and question.against is None else []


def _slices(
    question: ExperimentQuestion, slice_factors: list[Factor]
) -> dict[str, tuple[dict[str, Any], ExperimentQuestion]]:
    """Return the other factors' levels and the question of each slice, by its name."""
    others = [f for f in question.factors if f not in slice_factors]
    groups: dict[str, list[Point]] = {}
    for point in question.measured():
        groups.setdefault(point_words(others, point.parameters), []).append(point)
    compared = {where: points for where, points in groups.items() if len(points) > 1}
    slices = {}
    for where, points in (compared or groups).items():
        other_points = [p for other, members in groups.items() if other != where for p in members]
        part = replace(
            question, points=points, factors=slice_factors, other_points=other_points, slices=max(len(compared), 1)
        )
        slices[where] = ({f.name: points[0].parameters.get(f.name) for f in others}, part)
    return slices


def _of_slices(question: ExperimentQuestion, kind: QuestionKind, slice_factors: list[Factor]) -> Answer:
    """Merge the answers of all slices; equal verdicts are stated once."""
    answers, places = [], dict[str, list[str]]()
    for where, (at, part) in _slices(question, slice_factors).items():
        single = _ANSWERS[kind](part)
        figures = tuple(replace(figure, where={**at, **figure.where}) for figure in single.figures)
        answers.append(_named(where, replace(single, figures=figures)))
        places.setdefault(words.verdict_of(part, single), []).append(where)
    return Answer(
        kind,
        words.slices(places) if len(answers) > 1 else f"{where}: {answers[0].sentence}",
        min((single.strength for single in answers), key=_WEAKEST_FIRST.index),
        tuple(figure for single in answers for figure in single.figures),
        _largest_first(answers) if len(answers) > 1 else answers[0].causes,
        next((single.missing for single in answers if single.missing), None),
        next((single.scatter for single in answers if single.scatter), None),
    )


def _named(group: str, single: Answer) -> Answer:
    """Return the answer of a group; its causes and recommended trials name the group."""
    causes = tuple(replace(cause, at=group) for cause in single.causes)
    return replace(single, causes=causes, missing=single.missing and replace(single.missing, at=group))


def _largest_first(answers: Sequence[Answer]) -> tuple[Cause, ...]:
    """Return the first cause of each group, then the second ones, at most five."""
    ranked = zip_longest(*(single.causes for single in answers))
    return tuple(cause for causes in ranked for cause in causes if cause is not None)[:_MOST_CAUSES]
