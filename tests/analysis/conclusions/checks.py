"""Checks of every answer; each breach is one sentence for the author of a rule."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from math import isclose, isfinite
from typing import Final

from analysis.conclusions.answer import Answer, Figure
from analysis.conclusions.context import ExperimentQuestion
from analysis.conclusions.facts import MOST_CAUSES, Fact, causes_of
from analysis.conclusions.observations.parts import LAUNCH
from analysis.conclusions.wording import level, words_of
from analysis.numbers import NARROW, NOTHING, significant

_POSITIVE: Final = ("s", "B/s", "B", "bit/s")
_NEGATIVE: Final = re.compile(r"[-\u2212]\d[\d\u202f]*(\.\d+)?\s(ns|µs|ms|s|[kMG]?B(/s)?|[kMG]?bit/s)\b")
_OVER: Final = re.compile(r"(\d[\d\u202f]*(\.\d+)?)\s% of (the (ideal|peak)|it|what)")
_ONE: Final = re.compile(r"(?<![\d.\u202f,])1 (hosts|ranks|jobs|clients|nodes)\b")
_NUMBER: Final = re.compile(rf"(?<![\w.])\d[\d{NARROW}]*(?:\.\d+)?")
_MOST_DIGITS: Final = 3
_MOST_WORDS: Final = 25
_VERDICT: Final = re.compile(r"\b(is|are) (best|enough)\b(?! so far)|^St(op|ay) at")
_NOTHING: Final = re.compile(rf"\b(nan|inf|None)\b|1e[+-]?\d|(?<!\w){NOTHING}(?!\w)")


def check(answer: Answer, question: ExperimentQuestion) -> list[str]:
    """Return what is wrong with an answer to what was asked: empty where all holds."""
    results = [
        *_sentences(answer),
        *_head_line(answer, question),
        *_one_answer(answer),
        *_sizes(answer, question),
        *_costs(answer, question),
        *_parts(answer),
    ]
    for figure in answer.figures:
        results += _figure(figure)
    if answer.strength == "firm" and answer.scatter is None:
        results.append("firm without any knowledge of scatter")
    if answer.strength == "printed" and not question.published:
        results.append("printed without being published")
    if answer.missing is not None and any(more < 1 for _, more in answer.missing.points):
        results.append("asks for no further repetition")
    return results


def check_facts(facts: Sequence[Fact], answer: Answer) -> list[str]:
    """Return what is wrong with the facts below an answer: empty where all holds."""
    wrong = list(_words(text for fact in facts for text in (fact.statement, fact.at, fact.caveat, fact.next_step)))
    wrong += [
        f"{n} has too many digits: {f.statement}"
        for f in facts
        for n in _NUMBER.findall(f.statement)
        if _is_long(n, ())
    ]
    wrong += [
        f"{words_of(sentence)} words: {sentence}"
        for fact in facts
        for text in (fact.statement, fact.next_step, fact.caveat)
        for sentence in re.split(r"(?<=\.)[ ]", text)
        if words_of(sentence) > _MOST_WORDS
    ]
    wrong += [
        f"explains {significant(f.explains or 0.0)} of the time: {f.statement}"
        for f in facts
        if not 0 <= (f.explains or 0.0) <= 1
    ]
    wrong += [f"says {rule} twice" for rule, count in Counter(fact.rule for fact in facts).items() if count > 1]
    causes = len(causes_of(answer)) + sum(fact.fold == "cause" for fact in facts)
    return wrong if causes <= MOST_CAUSES else [*wrong, f"gives {causes} causes"]


def _sentences(answer: Answer) -> Iterator[str]:
    texts = [answer.sentence, *(cause.statement for cause in answer.causes)]
    texts += [answer.missing.statement] if answer.missing else []
    yield from _words(texts)
    if not answer.sentence.endswith("."):
        yield f"no full stop: {answer.sentence}"


def _head_line(answer: Answer, question: ExperimentQuestion) -> Iterator[str]:
    """Check that a head line is two short sentences of rounded numbers.

    A third one is about energy.     Levels of parameters are as the user wrote them.
    """
    sentences = re.split(r"(?<=\.)[ ]", answer.sentence)
    if len(sentences) > 2 + any(figure.name == "least energy" for figure in answer.figures):
        yield f"{len(sentences)} sentences: {answer.sentence}"
    of_causes = [text for cause in answer.causes for text in re.split(r"(?<=\.)[ ]", cause.statement)]
    for text in (*sentences, *of_causes):
        if words_of(text) > _MOST_WORDS:
            yield f"{words_of(text)} words: {text}"
    levels = {
        n
        for f in question.factors
        for p in question.points
        for n in _NUMBER.findall(level(f, p.parameters.get(f.name)))
    }
    for text in (answer.sentence, *(cause.statement for cause in answer.causes)):
        yield from (
            f"{number} has too many digits: {text}" for number in _NUMBER.findall(text) if _is_long(number, levels)
        )


def _is_long(number: str, levels: Collection[str]) -> bool:
    """A ratio next to 1 keeps the digit that separates it from 1."""
    value = float(number.replace(NARROW, ""))
    digits = number.replace(NARROW, "").replace(".", "").lstrip("0")
    digits = digits if "." in number else digits.rstrip("0")
    return len(digits) > _MOST_DIGITS and abs(value - 1) >= 0.01 and number not in levels


def _one_answer(answer: Answer) -> Iterator[str]:
    """Check that sentence, strength and recommended trials say one thing."""
    if answer.strength in ("firm", "printed") and answer.missing is not None:
        yield f"{answer.strength}, but asks for {answer.missing.statement}: {answer.sentence}"
    if answer.strength == "open" and _VERDICT.search(answer.sentence) and answer.question != "load and network":
        yield f"inconclusive, with a verdict: {answer.sentence}"
    if "best" in answer.sentence and "not measurably worse" in answer.sentence:
        yield f"best and not measurably better: {answer.sentence}"


def _words(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        for pattern, what in ((_NEGATIVE, "a negative amount"), (_ONE, "a plural of one"), (_NOTHING, "no number")):
            if pattern.search(text):
                yield f"{what}: {text}"
        if any(float(match[1].replace("\u202f", "")) > 100 for match in _OVER.finditer(text)):
            yield f"a share above 100 %: {text}"


def _sizes(answer: Answer, question: ExperimentQuestion) -> Iterator[str]:
    """A size that is named was measured."""
    names = [f.name for f in question.factors if f.role == "scale"]
    measured = {float(p.parameters[name]) for p in question.measured() for name in names}
    for figure in answer.figures:
        if (
            figure.name in ("enough", "best size", "falls below 80 %", "stays above 80 %")
            and figure.value not in measured
        ):
            yield f"{figure.name} {figure.value} was not measured"
    best = [f.value for f in answer.figures if f.name == "best step"]
    if any(not 1 <= float(step or 0) <= len(question.points) for step in best):
        yield f"no step {best[0]}"


def _costs(answer: Answer, question: ExperimentQuestion) -> Iterator[str]:
    """Check that shares are at most the whole, costs at most the elapsed time."""
    elapsed = [v for p in question.measured() for v in p.values.get("elapsed_s", ())]
    for cause in answer.causes:
        if cause.explains is None:
            continue
        if cause.unit == "share" and not 0 <= cause.explains <= 1 + 1e-9:
            yield f"explains {significant(cause.explains, 3)} of the whole: {cause.statement}"
        if cause.unit == "s" and (cause.explains < 0 or (elapsed and cause.explains > max(elapsed))):
            yield f"costs more than the elapsed time: {cause.statement}"


def _parts(answer: Answer) -> Iterator[str]:
    """The parts of a change add up to it, and a cause is a part that grew."""
    for part in answer.parts:
        if part.low_s is not None and part.high_s is not None and not part.low_s <= part.change_s <= part.high_s:
            yield f"the change of {part.name} is outside of its interval"
    whole, parts = answer.parts[:1], answer.parts[1:]
    if whole and not isclose(sum(part.change_s for part in parts), whole[0].change_s, rel_tol=1e-6, abs_tol=1e-9):
        yield f"the parts do not add up to the change of {whole[0].name}"
    grown = {part.name for part in parts if part.has_grown} | {LAUNCH}
    for cause in answer.causes:
        if cause.part and cause.part not in grown:
            yield f"names a part that did not grow: {cause.statement}"


def _figure(figure: Figure) -> Iterator[str]:
    numbers = [v for v in (figure.value, figure.low, figure.high) if isinstance(v, int | float)]
    if not all(isfinite(v) for v in numbers):
        yield f"{figure.name} is not finite"
    if figure.unit in _POSITIVE and any(v < 0 for v in numbers):
        yield f"{figure.name} is negative"
    if figure.unit == "share" and any(not 0 <= v <= 1 for v in numbers):
        yield f"{figure.name} is above the whole"
    if figure.low is not None and figure.high is not None and isinstance(figure.value, int | float):
        slack = 1e-9 * abs(figure.value)
        if not figure.low - slack <= figure.value <= figure.high + slack:
            yield f"{figure.name} is outside its interval"
