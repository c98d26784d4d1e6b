"""Definitions of words, states and metrics of the pages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Final

from django.urls import reverse

from analysis.catalogue import METRICS
from dashboard.help.guides import guides, text_of
from dashboard.help.markdown import Section
from experiments.metrics import find, is_metric

_TERMS: Final = "terms"
_METRICS: Final = "metrics"
_CHECK: Final = "check."
_IDS: Final = re.compile(r"[a-z]+(?:_[A-Za-z0-9]+)+")


@dataclass(frozen=True, slots=True)
class Term:
    """A definition and its URL."""

    meaning: str
    address: str


def term(name: str) -> Term | None:
    """Return the term of a metric or of docs/reference/terms.md ("Speed-up")."""
    anchor = name if name in _meanings() else _by_words().get(name.casefold(), "")
    metric = name if name in METRICS else _by_label().get(name, "")
    if anchor:
        return Term(_meanings()[anchor], f"{reverse('guide', args=[_TERMS])}#{anchor}")
    if metric:
        return Term(with_labels(METRICS[metric].definition), f"{reverse('guide', args=[_METRICS])}#{metric}")
    workload, dot, _ = name.partition(".")
    if dot and is_metric(name) and (meaning := find(name).definition):
        return Term(meaning, reverse("workload", args=[workload]))
    return None


def check_term(step: str) -> str:
    """Return the id of a cluster check's step, or an empty string.

    "MPI hello across two hosts" begins with the words of its term.
    """
    named = (name for name, words in _words().items() if name.startswith(_CHECK) and step.startswith(words))
    return next(named, "")


def leading_label(words: str) -> str:
    """Return the longest metric label that begins words, or an empty string.

    "Elapsed time over hosts" begins with one.
    """
    return next((label for label in _longest_first() if words.startswith((f"{label} ", f"{label}, "))), "")


@cache
def with_labels(definition: str) -> str:
    """Return a definition with labels of other metrics in place of their ids."""
    return _IDS.sub(lambda match: f"“{METRICS[match[0]].label}”" if match[0] in METRICS else match[0], definition)


def words_of(name: str) -> str:
    """Return the words of a term's id ("finding.link_load"), or an empty string."""
    return _words().get(name, "")


@cache
def _words() -> dict[str, str]:
    """Return id -> words of docs/reference/terms.md."""
    return {section.anchor: section.title.removesuffix(f" ({section.anchor})") for section in _rows()}


@cache
def _by_label() -> dict[str, str]:
    return {metric.label: name for name, metric in METRICS.items()}


@cache
def _longest_first() -> tuple[str, ...]:
    return tuple(sorted(_by_label(), key=len, reverse=True))


@cache
def _meanings() -> dict[str, str]:
    """Return id -> meaning of docs/reference/terms.md."""
    return {row.anchor: text_of(row) for row in _rows()}


@cache
def _by_words() -> dict[str, str]:
    """Return words -> id, without those of states, trust, findings, checks."""
    shared = ("state.", "trust.", "finding.", _CHECK, "process.")
    return {words.casefold(): anchor for anchor, words in _words().items() if not anchor.startswith(shared)}


def _rows() -> list[Section]:
    return [section for section in guides()[_TERMS].page.sections if not section.level]
