"""Second sentence of a sweep over sizes: the size of least energy."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from analysis.conclusions.answer import Answer, Figure
from analysis.conclusions.context import Deciding
from analysis.conclusions.observations.grid import SizeGrid
from analysis.conclusions.sentences import answers as words

ENERGY: Final = Deciding("energy_j", "Energy", "J")


def with_energy(curve: SizeGrid, answer: Answer) -> Answer:
    """Add the size of least energy, if time decides and every trial has its energy."""
    question = curve.question
    is_time = question.deciding.unit == "s" and not question.deciding.higher_is_better
    is_known = all(
        len(point.values.get(ENERGY.metric, ())) == len(question.values(point)) and min(point.values[ENERGY.metric]) > 0
        for point in curve.points
    )
    if question.published or answer.strength == "open" or not is_time or not is_known:
        return answer
    energy = SizeGrid(replace(question, deciding=ENERGY, prior=None, peak=None, other_points=()), curve.factor)
    chosen, least = curve.enough, energy.best
    figures = [
        energy.figure(point, {curve.factor.name: point.parameters[curve.factor.name]}) for point in energy.points
    ]
    figures.append(Figure("least energy", curve.level(least), curve.factor.plural))
    sentence = words.least_energy_too(curve)
    if least != chosen:
        ratio, about, is_more = energy.worse(chosen, least)
        saved = None
        if about is not None and about.low and about.high:
            saved = replace(about, low=1 - 1 / about.low, high=1 - 1 / about.high)
        figures.append(Figure.within("times the least energy", ratio, "1", about))
        longer, between, is_slower = curve.worse(least, chosen)
        sentence = words.least_energy(
            curve, least, (1 - 1 / ratio, saved), (longer, between) if is_slower else None, is_clear=is_more
        )
    elif not all(energy.worse(i, least)[2] for i in range(len(energy.points)) if i != least):
        sentence = words.NO_LESS_ENERGY
    return replace(answer, sentence=f"{answer.sentence} {sentence}", figures=(*answer.figures, *figures))
