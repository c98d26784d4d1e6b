"""Second sentence of a sweep over sizes: the size of least energy."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from analysis.conclusions.answer import Answer, Cause, Figure
from analysis.conclusions.context import Deciding
from analysis.conclusions.observations.grid import SizeGrid
from analysis.conclusions.sentences import answers as words

ENERGY: Final = Deciding("energy_j", "Energy", "J")
_MOST: Final = 2
"""Compromises that are named."""


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
        sentence = words.NO_LESS_ENERGY
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
