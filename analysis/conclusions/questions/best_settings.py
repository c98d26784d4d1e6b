"""The best settings of a search, by trials that were made after they were chosen."""

from __future__ import annotations

from analysis.conclusions.answer import Answer, Figure
from analysis.conclusions.context import ExperimentQuestion, Searched
from analysis.conclusions.observations.grid import Grid
from analysis.conclusions.questions.strength import compared, repeat, strength
from analysis.conclusions.sentences import search as words
from analysis.conclusions.sentences.key_figures import TIMES_THE_START
from analysis.conclusions.wording import point_words


def answer_best_settings(question: ExperimentQuestion) -> Answer:
    """Return the gain of the best candidate over the starting settings.

    The results of the search chose the candidates, and are no evidence for them.
    """
    search = question.search
    if search is None:
        raise ValueError("the experiment has no search")
    grid = Grid(question)
    start = next((point for point in grid.points if search.is_start(point.parameters)), None)
    candidates = sorted((point for point in grid.points if point is not start), key=grid.cost)
    if start is None or not candidates:
        return _unconfirmed(question, search)
    best = candidates[0]
    ratio, interval, is_better = grid.compare(start, best)
    figures = (
        Figure("best", point_words(question.factors, (best if ratio > 1 else start).parameters)),
        *map(grid.figure, [*candidates, start]),
        *(
            Figure.within(TIMES_THE_START, r, "1", i, grid.figure(p).where)
            for p in candidates
            for r, i, _ in [grid.compare(start, p)]
        ),
    )
    certainty, trials = strength(question, grid.claims), len(question.values(best))
    if is_better:
        looked = search.looked(best.parameters, higher_is_better=question.deciding.higher_is_better)
        sentence = words.best(grid, best, ratio, interval, trials, looked)
        return Answer("best settings", sentence, certainty, figures, scatter=grid.claims.scatter)
    gains = [grid.compare(start, point)[1] for point in candidates]
    most = max((gain.high for gain in gains if gain is not None and gain.high is not None), default=None)
    if most is not None and most < question.equal and None not in gains:
        sentence = words.no_gain(most - 1)
        return Answer("best settings", sentence, certainty, figures, scatter=grid.claims.scatter)
    open_ones = [point for point in candidates if not grid.clearly(point, start)]
    pairs = [compared(grid, start, point, equal=question.equal) for point in open_ones]
    missing = repeat(grid, pairs)
    return Answer(
        "best settings", words.undecided(grid, best, ratio, interval), "open", figures, (), missing, grid.claims.scatter
    )


def _unconfirmed(question: ExperimentQuestion, search: Searched) -> Answer:
    best = search.best(higher_is_better=question.deciding.higher_is_better)
    if best is None:
        return Answer("best settings", words.NO_RESULT, "open")
    name = point_words(question.factors, best.settings)
    looked = search.looked(best.settings, higher_is_better=question.deciding.higher_is_better)
    return Answer("best settings", words.so_far(name, looked), "open", (Figure("best so far", name),))
