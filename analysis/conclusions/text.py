"""Answers as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Final

from analysis.conclusions.answer import Answer, Strength
from analysis.conclusions.facts import Fact, Fold, causes_of

_STRENGTH: Final[Mapping[Strength, str]] = {
    "firm": "Conclusive",
    "moderate": "Tentative",
    "printed": "As printed",
    "open": "Inconclusive",
}
FOLDS: Final[Mapping[Fold, str]] = {"traffic": "the traffic", "run": "the run", "capture": "the capture"}
"""Headings of folded facts, in the order of their list."""


def render(answer: Answer, facts: Sequence[Fact], cannot_tell: Sequence[str], *, width: int = 100) -> list[str]:
    """Return the question, head line, recommended trials, causes and all other facts."""
    lines = [answer.asks, *wrap(f"{_STRENGTH[answer.strength]}: {answer.sentence}", width)]
    if answer.missing is not None:
        lines += wrap(f"Recommended next trials: {answer.missing.words}.", width)
    for cause in causes_of(answer):
        lines += wrap(
            f"- {cause.at}: {cause.statement}" if cause.at else f"- {cause.statement}", width, subsequent_indent="  "
        )
    for fact in facts:
        if fact.fold == "cause":
            lines += [
                *_item(fact, width),
                *wrap(f"Suggested fix: {fact.next_step}", width, initial_indent="  ", subsequent_indent="  "),
            ]
    for fold, title in FOLDS.items():
        folded = [fact for fact in facts if fact.fold == fold]
        if folded:
            lines += ["", f"More on {title}:", *(line for fact in folded for line in _item(fact, width))]
    if cannot_tell:
        lines += ["", "Limitations:", *(f"- {line}" for line in cannot_tell)]
    return lines


def _item(fact: Fact, width: int) -> Iterator[str]:
    at = f"{fact.at}: " if fact.at else ""
    weak = " (weak evidence)" if fact.strength == "weak" else ""
    caveat = f" {fact.caveat}" if fact.caveat else ""
    yield from wrap(f"- {at}{fact.statement}{weak}{caveat}", width, subsequent_indent="  ")
