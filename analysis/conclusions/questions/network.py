"""Network sweeps: time per millisecond of delay, effects of loss and rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from math import log
from typing import Any, Final

from analysis.conclusions.answer import Answer, Cause, Figure
from analysis.conclusions.context import ExperimentQuestion, Factor
from analysis.conclusions.observations.effects import Effect, Slope, effects_of, first_matters, slopes_of
from analysis.conclusions.observations.grid import Grid, ordinal
from analysis.conclusions.observations.needs import VAGUE, NetworkNeeds, is_clear, needed_of
from analysis.conclusions.questions.strength import MOST_RESOLVED, compared, repeat, strength
from analysis.conclusions.sentences import network as words
from analysis.conclusions.wording import point_words
from analysis.scaling import Point

_SHORTEST: Final = 1e-9
"""Seconds; a shorter tolerated delay counts as this."""


@dataclass(frozen=True, slots=True)
class _Part:
    """One combination of the other factors."""

    grid: Grid
    at: str
    """The combination in words."""
    where: dict[str, Any]
    points: Sequence[Point]
    effects: Sequence[Effect]
    slopes: Sequence[Slope]
    needed: NetworkNeeds | None

    @classmethod
    def of(cls, grid: Grid, points: Sequence[Point]) -> _Part:
        network = grid.question.of_role("network")
        others = [f for f in grid.question.factors if f.role != "network"]
        return cls(
            grid,
            point_words(others, points[0].parameters),
            {f.name: points[0].parameters.get(f.name) for f in others},
            points,
            effects_of(grid, network, points),
            slopes_of(grid, network, points),
            needed_of(grid.question, points),
        )

    @property
    def is_vague(self) -> bool:
        """Return whether a number has no interval that can be shown."""
        if self.needed is not None:
            return self.needed.is_vague
        return any(e.clear and e.interval is not None and not is_clear(e.interval) for e in self.effects)

    @property
    def sentences(self) -> tuple[str, str]:
        """Return the verdict and the numbers, without their place."""
        if self.needed is not None:
            return words.needs(self.grid.question, self.needed)
        return words.effects(self.grid, self.points, self.effects, self.slopes)

    @property
    def demand(self) -> tuple[float, float]:
        """Return a key that is largest for the most demanding combination."""
        needs = None if self.needed is None else self.needed.needs
        delay, rate = (None, None) if needs is None else (needs.most_delay, needs.least_rate)
        return (0.0 if delay is None else 1 / max(delay.value, _SHORTEST), 0.0 if rate is None else rate.value)

    def causes(self) -> list[Cause]:
        """Return every clear factor with its share of the log change, and interactions."""
        clear = [
            clear_effect
            for e in self.effects
            if e.matters and (clear_effect := e if e.clear else e.harshest) is not None
        ]
        whole = sum(log(e.ratio) for e in clear) or 1.0
        causes = []
        for effect in clear:
            is_harshest = all(effect is not mildest for mildest in self.effects)
            statement = words.cause(self.grid, self.at, effect, is_harshest)
            causes.append(Cause(statement, log(effect.ratio) / whole, "share", "grid"))
        by_loss = words.slopes_by_loss(self.at, self.slopes)
        return [*causes, Cause(by_loss, None, "", "grid")] if by_loss else causes

    def figures(self) -> list[Figure]:
        figures = [] if self.needed is None else self.needed.figures(self.where)
        for e in self.effects:
            where, name = {**e.costliest.parameters}, f"factor of {e.factor.label}"
            figures.append(Figure.within(name, e.ratio, "1", e.interval, where))
            if e.matters:
                figures.append(Figure("matters", e.factor.name, where=where))
            if e.harshest is not None:
                where = {**e.harshest.costliest.parameters}
                figures.append(
                    Figure.within(f"{name}, others harshest", e.harshest.ratio, "1", e.harshest.interval, where)
                )
        if first_matters(self.grid, [e for e in self.effects if e.matters]):
            first = self.effects[0]
            figures.append(Figure("matters most", first.factor.name, where=first.cheapest.parameters))
        name = "seconds per second of delay"
        return [*figures, *(Figure.within(name, s.per_unit, "1", s.interval, s.where) for s in self.slopes)]


def answer_network(question: ExperimentQuestion) -> Answer:
    """Return the answer of a network sweep, for every level of the other factors."""
    grid = Grid(question)
    parts = [_Part.of(grid, points) for points in _combinations(grid)] if len(grid.points) > 1 else []
    if not parts:
        return Answer("network", words.SECOND_SETTING, "open")
    figures = tuple(figure for part in parts for figure in part.figures())
    largest = max((effect for part in parts for effect in part.effects), key=lambda effect: effect.ratio)
    if not any(f.name in ("matters", "most one-way delay", "least rate") for f in figures):
        return _no_effect(grid, figures, [effect for part in parts for effect in part.effects])
    is_vague, certainty = any(part.is_vague for part in parts), strength(question, grid.claims)
    return Answer(
        "network",
        _sentence(parts),
        "moderate" if is_vague and certainty == "firm" else certainty,
        figures,
        tuple(cause for part in parts for cause in part.causes())[:5],
        repeat(grid, [compared(grid, largest.cheapest, largest.costliest, narrow=VAGUE)]) if is_vague else None,
        grid.claims.scatter,
    )


def _sentence(parts: Sequence[_Part]) -> str:
    """Return the head line of one or several combinations."""
    if len(parts) == 1:
        return words.sentences(parts[0].at, *parts[0].sentences)
    demanding = max(parts, key=lambda part: part.demand)
    if demanding.needed is not None:
        return words.sentences(demanding.at, demanding.sentences[0], words.more_needs(len(parts) - 1))
    strongest = max(parts, key=lambda part: max((effect.ratio for effect in part.effects), default=1.0))
    return words.combinations([(part.at, part.sentences[0]) for part in parts], strongest.at, strongest.sentences[1])


def _combinations(grid: Grid) -> list[list[Point]]:
    """Return the points by ascending levels of the other factors, without single ones."""
    others: list[Factor] = [f for f in grid.question.factors if f.role != "network"]

    def key(point: Point) -> tuple[Any, ...]:
        return tuple((ordinal(v), str(v)) for f in others for v in [point.parameters.get(f.name)])

    ordered = sorted(grid.points, key=key)
    return [members for _, group in groupby(ordered, key=key) if len(members := list(group)) > 1]


def _may_matter(effect: Effect) -> bool:
    return effect.interval is None or (effect.interval.high or words.MOST_HIDDEN) >= words.MOST_HIDDEN


def _no_effect(grid: Grid, figures: tuple[Figure, ...], effects: Sequence[Effect]) -> Answer:
    """Return the answer without a measurable effect, with the largest possible one."""
    question, network = grid.question, grid.question.of_role("network")
    if question.published:
        return Answer(
            "network", words.no_effect(question, network, printed=grid.claims.PRINTED - 1), "printed", figures
        )
    size = grid.claims.resolution()
    ends = [f for f in figures if f.name.startswith("factor of ")]
    most = max((f.high or 1 for f in ends), default=1.0)
    if size is None or not ends or most >= words.MOST_HIDDEN:
        sentence = words.too_few(network, size if size and size < MOST_RESOLVED else None)
        every = [*effects, *(effect.harshest for effect in effects if effect.harshest is not None)]
        hidden = [compared(grid, e.cheapest, e.costliest, equal=words.MOST_HIDDEN) for e in every if _may_matter(e)]
        missing = repeat(grid, hidden)
        return Answer("network", sentence, "open", figures, (), missing, grid.claims.scatter)
    figures = (*figures, Figure("largest difference", most - 1, "share of the best"))
    sentence = words.no_effect(question, network, most=most - 1)
    return Answer("network", sentence, strength(question, grid.claims), figures, scatter=grid.claims.scatter)
