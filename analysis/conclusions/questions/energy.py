"""Second sentence of a sweep over sizes: the size of least energy."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from analysis.conclusions.answer import Answer, Cause, Figure
from analysis.conclusions.context import Deciding
from analysis.conclusions.observations.grid import SizeGrid
from analysis.conclusions.sentences import answers as words

ENERGY: Final = Deciding("energy_j", "Energy", "J")
PER_RESULT: Final = Deciding("energy_per_result_j", "Energy per result", "J")
"""Of rates, whose trials may do unequal work."""
_MOST: Final = 2
"""Compromises that are named."""


def with_energy(curve: SizeGrid, answer: Answer) -> Answer:
    """Add the size of least energy, if a time or rate decides and all have energy."""
    question = curve.question
    is_rate = question.deciding.higher_is_better
    deciding = PER_RESULT if is_rate else ENERGY
    is_known = all(
        len(point.values.get(deciding.metric, ())) == len(question.values(point))
        and min(point.values[deciding.metric]) > 0
        for point in curve.points
    )
    is_speed = is_rate or question.deciding.unit == "s"
    if question.published or answer.strength == "open" or not is_speed or not is_known:
        return answer
    energy = SizeGrid(replace(question, deciding=deciding, prior=None, peak=None, other_points=()), curve.factor)
    chosen, least = curve.enough, energy.best
    figures = [
        energy.figure(point, {curve.factor.name: point.parameters[curve.factor.name]}) for point in energy.points
    ]
    figures.append(Figure("least energy", curve.level(least), curve.factor.plural))
    sentence, compromises = words.least_energy_too(curve), []
    if least != chosen:
        ratio, about, is_more = energy.worse(chosen, least)
        figures.append(Figure.within("times the least energy", ratio, "1", about))
        sentence = _trade(curve, energy, least, is_clear=is_more)
        compromises = [
            Cause(f"A compromise: {_trade(curve, energy, i, is_clear=True).rstrip('.')}", chart="energy")
            for i in range(len(curve.points))
            if energy.worse(chosen, i)[2] and energy.worse(i, least)[2] and curve.worse(least, i)[2]
        ]
    elif not all(energy.worse(i, least)[2] for i in range(len(energy.points)) if i != least):
        sentence = words.no_less_energy(curve)
    return replace(
        answer,
        sentence=f"{answer.sentence} {sentence}",
        figures=(*answer.figures, *figures),
        causes=(*answer.causes, *compromises[:_MOST]),
    )


def _trade(curve: SizeGrid, energy: SizeGrid, i: int, *, is_clear: bool) -> str:
    """Return what a size saves and costs against the sufficient one."""
    ratio, about, _ = energy.worse(curve.enough, i)
    saved = None
    if about is not None and about.low and about.high:
        saved = replace(about, low=1 - 1 / about.low, high=1 - 1 / about.high)
    longer, between, is_slower = curve.worse(i, curve.enough)
    price = (longer, between) if is_slower else None
    return words.least_energy(curve, i, (1 - 1 / ratio, saved), price, is_clear=is_clear)
