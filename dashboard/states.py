"""How states look: icon, word and tone. The code says FINISHED, the pages say Complete (design notes)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Look:
    """`tone` is a class of rankwire.css (ok, run, warn, bad or none), `glyph` stands in a square of a strip."""

    word: str
    icon: str
    tone: str
    glyph: str = ""


LOOKS = {
    "queued": Look("Waiting", "clock", "todo"),
    "preparing": Look("Preparing", "player-play", "run"),
    "running": Look("Running", "player-play", "run"),
    "analysing": Look("Analysing", "player-play", "run"),
    "finished": Look("Complete", "check", "ok", "✓"),
    "flagged": Look("Flagged", "alert-triangle", "warn", "!"),
    "failed": Look("Failed", "x", "bad", "✕"),
    "errored": Look("Error", "x", "bad", "✕"),
    "cancelled": Look("Cancelled", "ban", "", "–"),
    "lost": Look("Lost", "alert-triangle", "warn", "?"),
    # verdicts on captures
    "good": Look("Good", "check", "ok"),
    "degraded": Look("Degraded", "alert-triangle", "warn"),
    "unusable": Look("Unusable", "x", "bad"),
    # verdicts on experiments
    "scales": Look("Scales", "check", "ok"),
    "limited": Look("Limited", "alert-triangle", "warn"),
    "unclear": Look("Unclear", "clock", ""),
    # others
    "published": Look("Published", "book", ""),
    "ready": Look("Ready", "check", "ok"),
    "busy": Look("Busy", "player-play", "run"),
    "off": Look("Switched off", "ban", ""),
    "missing": Look("Not installed", "alert-triangle", "warn"),
}


def look(state: str) -> Look:
    """The look of a state's value, in either case."""
    return LOOKS[state.lower()]
