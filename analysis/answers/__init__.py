"""What an experiment's page says first: the question that its design asks, answered with number, uncertainty and cause. Pure.

``answer(asked)`` gives one structured Answer from which every face takes its words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from analysis.answers.answer import Answer, Cause, Figure, Missing, Strength, render_answer
from analysis.answers.asked import ASKS, Accepted, Asked, Deciding, Factor, Question, question
from analysis.answers.network import answer_network
from analysis.answers.others import answer_growth, answer_load, answer_messages, answer_point, answer_steps, answer_weak
from analysis.answers.scale import answer_scale
from analysis.answers.scatter import Claims, Scatter, pooled
from analysis.answers.treatments import answer_treatment
from analysis.answers.wording import place
from analysis.scaling import Point

__all__ = [
    "ASKS",
    "Accepted",
    "Answer",
    "Asked",
    "Cause",
    "Claims",
    "Deciding",
    "Factor",
    "Figure",
    "Missing",
    "Question",
    "Scatter",
    "Strength",
    "answer",
    "pooled",
    "question",
    "render_answer",
]

_ANSWERS: Final[Mapping[Question, Callable[[Asked], Answer]]] = {
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
}


_BY_SLICE: Final = ("scale", "weak scale", "message size", "growth")
"""Questions about one factor: where others vary too, every combination of those gets its own answer."""
_MOST_SLICES: Final = 4


def answer(asked: Asked) -> Answer:
    """Answer the experiment's question, or say what is missing."""
    kind = question(asked)
    if not asked.measured() and not asked.accepted:
        return Answer(kind, "No trial has finished.", "open")
    if kind in _BY_SLICE and len(asked.factors) > 1:
        return _of_slices(asked, kind)
    return _ANSWERS[kind](asked)


def _of_slices(asked: Asked, kind: Question) -> Answer:
    """One answer per combination of the other factors; alike ones are told once."""
    own = next(f for f in asked.factors if f.role == ("scale" if "scale" in kind else asked.factors[0].role))
    others = [f for f in asked.factors if f is not own]
    groups: dict[str, list[Point]] = {}
    for point in asked.measured():
        groups.setdefault(place(others, point.parameters), []).append(point)
    answers = {where: _ANSWERS[kind](replace(asked, points=points, factors=[own])) for where, points in groups.items()}
    shown = list(answers.items())[:_MOST_SLICES]
    left = len(answers) - len(shown)
    sentence = " ".join(f"{where}: {each.sentence}" for where, each in shown)
    if left:
        sentence += f" {left} more combinations are in the table."
    order: tuple[Strength, ...] = ("open", "moderate", "printed", "firm")
    return Answer(
        kind,
        sentence,
        min((each.strength for each in answers.values()), key=order.index),
        tuple(figure for each in answers.values() for figure in each.figures),
        tuple(cause for each in answers.values() for cause in each.causes)[:5],
        next((each.missing for each in answers.values() if each.missing), None),
        next((each.scatter for each in answers.values() if each.scatter), None),
    )
