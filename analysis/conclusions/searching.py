"""Decisions of a search for the best settings: propose, then confirm. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from analysis.conclusions.context import Searched
from analysis.conclusions.goals import Decision
from analysis.conclusions.wording import percent
from analysis.numbers import grouped, plural
from analysis.search import MOST_DRAWN, Result, Space, propose

PROPOSALS: Final = 6
"""Combinations of a round."""
CANDIDATES: Final = 3
"""Best combinations that are measured again, if the budget has room for them."""
PATIENCE: Final = 18
"""Proposals without an improvement, or without any result, that end a search."""
SHARE_OF_SEARCH: Final = 0.65
"""Part of the budget that a search may use; the rest confirms its candidates."""


@dataclass(frozen=True, slots=True)
class Search:
    """The search before its next round."""

    space: Space
    searched: Searched
    constants: Mapping[str, Any]
    """Parameters that every combination has."""
    higher_is_better: bool
    matters: float
    earlier: int = 0
    """Results from before the last edit of the search."""

    @property
    def recent(self) -> int:
        """Return the results since the last edit of the search."""
        return len(self.searched.results) - self.earlier


def first_proposals(space: Space, start: Mapping[str, Any], *, seed: int) -> list[dict[str, Any]]:
    """Return the combinations of round 1: the starting settings and proposals."""
    # The start counts as measured: it is not proposed again.
    return [dict(start), *propose(space, [Result(start, None)], PROPOSALS, seed=seed, higher_is_better=True)]


def next_proposals(search: Search, *, seed: int) -> Decision | None:
    """Return the next round of the search; None if it is over."""
    results, start = search.searched.results, search.searched.start
    if _is_patience_over(search):
        return None
    # A cancelled start has no result and runs again; it is not proposed beside itself.
    is_start_open = not any(search.searched.is_start(result.settings) for result in results)
    seen = [*results, Result(start, None)] if is_start_open else results
    proposals = propose(search.space, seen, PROPOSALS, seed=seed, higher_is_better=search.higher_is_better)
    if is_start_open:
        proposals = [dict(start), *proposals]
    if not proposals:
        return None
    why = f"{plural(len(results), 'combination')} searched; proposals follow from their results."
    more = [({**search.constants, **settings}, 1) for settings in proposals]
    return Decision("continue", why, _numbers(search), more, "search")


def confirmation(search: Search, at_least: int, most: int = CANDIDATES) -> Decision:
    """Return the trials that confirm the best candidates beside the start.

    These run together or not at all: fewer than ``at_least`` of each would prove little.
    """
    ranked = search.searched.ranked(higher_is_better=search.higher_is_better)
    candidates = [r.settings for r in ranked if not search.searched.is_start(r.settings)][:most]
    if not candidates:
        return Decision("no_result", "No proposed combination has a result.", _numbers(search))
    chosen = [search.searched.start, *candidates]
    reason = (
        f"{plural(len(search.searched.results), 'combination')} searched. The best "
        f"{plural(len(candidates), 'candidate')} and the starting settings are measured again."
    )
    more = [({**search.constants, **settings}, at_least) for settings in chosen]
    return Decision("continue", reason, _numbers(search), more, "confirm", is_whole=True)


def why_over(search: Search, *, is_affordable: bool) -> str:
    """Return why a search ended, in words."""
    if search.searched.best(higher_is_better=search.higher_is_better) is None:
        return "No trial of the search gave a result."
    if not is_affordable:
        return "The search used its part of the budget."
    if _is_patience_over(search):
        return f"{PATIENCE} proposals in sequence improved by less than {percent(search.matters)}."
    if search.space.size > MOST_DRAWN:
        return f"No new possible combination among {grouped(MOST_DRAWN)} random ones."
    return "All combinations are searched."


def _is_patience_over(search: Search) -> bool:
    """Return whether the last proposals improved by less than what matters.

    Results from before an edit are no part of the patience: the new combinations have not run yet.
    """
    results = search.searched.results
    if search.recent < PATIENCE:
        return False
    before = Searched(search.searched.start, results[:-PATIENCE])
    earlier, best = (s.best(higher_is_better=search.higher_is_better) for s in (before, search.searched))
    if best is None:
        return True
    if earlier is None or earlier.value is None or best.value is None:
        return False
    gain = best.value / earlier.value if search.higher_is_better else earlier.value / best.value
    return gain < 1 + search.matters


def _numbers(search: Search) -> list[dict[str, Any]]:
    """Return the best result so far, without an interval."""
    best = search.searched.best(higher_is_better=search.higher_is_better)
    if best is None:
        return []
    looked = search.searched.looked(best.settings, higher_is_better=search.higher_is_better)
    return [
        {"name": "best so far", "value": looked, "unit": "1", "low": None, "high": None, "where": dict(best.settings)}
    ]
