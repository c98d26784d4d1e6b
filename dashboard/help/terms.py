"""What the words, states and marks of the pages mean: read from docs/terms.md and the catalogue, shown where they stand."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from django.urls import reverse

from analysis.catalogue import METRICS
from dashboard.help.guides import guides
from experiments.metrics import find, is_metric

_TERMS: Final = "terms"
_METRICS: Final = "metrics"


@dataclass(frozen=True, slots=True)
class Term:
    """One word: what it means in a sentence or two, and the address of its definition."""

    meaning: str
    address: str


def term(name: str) -> Term | None:
    """The meaning of a metric's id, a term's id ("state.lost"), or a term's own words ("Speed-up"); None for anything else."""
    anchor = name if name in _meanings() else _by_words().get(name.casefold(), "")
    if anchor:
        return Term(_meanings()[anchor], f"{reverse('guide', args=[_TERMS])}#{anchor}")
    if name in METRICS:
        return Term(METRICS[name].definition, f"{reverse('guide', args=[_METRICS])}#{name}")
    workload, dot, _ = name.partition(".")
    if dot and is_metric(name) and (meaning := find(name).definition):
        return Term(meaning, f"{reverse('workloads')}#{workload}")
    return None


@cache
def _meanings() -> dict[str, str]:
    """The last column of docs/terms.md by the first."""
    found = {}
    for section in guides()[_TERMS].page.sections:
        if not section.level:
            words = section.title.removesuffix(f" ({section.anchor})")
            found[section.anchor] = section.text.removeprefix(f"{section.anchor} {words} ")
    return found


@cache
def _by_words() -> dict[str, str]:
    """Ids by the words that pages show; states and trusts, whose words are shared, go by their ids alone."""
    return {
        section.title.removesuffix(f" ({section.anchor})").casefold(): section.anchor
        for section in guides()[_TERMS].page.sections
        if not section.level and not section.anchor.startswith(("state.", "trust."))
    }
