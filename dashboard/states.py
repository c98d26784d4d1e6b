"""Display of states: words, icon and tone of a chip, glyph of a square."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from analysis.trust_level import TrustLevel
from experiments.models import State, Status, Tone


@dataclass(frozen=True, slots=True)
class Chip:
    """`glyph` is drawn in the square of a trial."""

    word: str
    tone: Tone
    icon: str
    glyph: str = ""


_SYMBOLS: Final = {
    Tone.NONE: ("ban", "–"),
    Tone.TODO: ("clock", ""),
    Tone.RUN: ("player-play", ""),
    Tone.OK: ("check", "✓"),
    Tone.WARN: ("alert-triangle", "!"),
    Tone.BAD: ("x", "✕"),
}
STRENGTH: Final = {
    "firm": ("ok", "Conclusive"),
    "moderate": ("warn", "Tentative"),
    "printed": ("", "As printed"),
    "open": ("warn", "Inconclusive"),
}
"""(Tone, word) of the strength of an answer."""
BEST: Final = {"firm": "best", "printed": "best", "moderate": "best median"}
"""Word at the configuration with the best median by the strength of the answer; else only its median is best."""


def _chip(word: str, tone: Tone, icon: str = "", glyph: str = "") -> Chip:
    usual_icon, usual_glyph = _SYMBOLS[tone]
    return Chip(word, tone, icon or usual_icon, glyph or usual_glyph)


CHIPS: Final = {
    **{str(state): _chip(state.label, state.tone) for state in State},
    State.LOST: _chip(State.LOST.label, State.LOST.tone, glyph="?"),
    # trust of a capture, and finished trials with an untrusted capture
    TrustLevel.GOOD: _chip("Good", Tone.OK),
    TrustLevel.ESTIMATED: _chip("Estimated", Tone.NONE, "info-circle"),
    TrustLevel.DEGRADED: _chip("Degraded", Tone.WARN),
    TrustLevel.UNUSABLE: _chip("Unusable", Tone.BAD),
    "flagged": _chip("Flagged", Tone.WARN),
    # experiments as a whole; states of trials look the same
    Status.EMPTY: _chip("No trials", Tone.TODO),
    Status.WAITING: _chip(State.QUEUED.label, Tone.TODO),
    Status.HELD: _chip("On hold", Tone.WARN),
    Status.PAUSED: _chip("Paused", Tone.TODO),
    "incomplete": _chip("Finished with failures", Tone.WARN),
    "partial": _chip("Finished, trials cancelled", Tone.NONE),
    "published": _chip("Published", Tone.NONE, "book"),
    # histories
    "look": _chip("Unexpected step", Tone.WARN),
    "expected": _chip("As expected", Tone.OK),
    # clusters and workloads
    "ready": _chip("Ready", Tone.OK),
    "busy": _chip("Busy", Tone.RUN),
    "check-failed": _chip("Check failed", Tone.BAD),
    "wrong": _chip("Misconfigured", Tone.BAD),
    "ok": _chip("Ok", Tone.OK),
    "warning": _chip("Warning", Tone.WARN),
    "problem": _chip("Problem", Tone.BAD),
    "skipped": _chip("No result", Tone.NONE),
    "elsewhere": _chip("Elsewhere", Tone.NONE, "info-circle"),
    "imported": _chip("Imported", Tone.NONE, "download"),
    "deleted": _chip("Deleted", Tone.NONE, "x"),
    "off": _chip("Switched off", Tone.NONE),
    # accounts
    "superuser": _chip("Superuser", Tone.NONE, "user"),
    "closed": _chip("Closed", Tone.NONE),
    "locked": _chip("Locked out", Tone.WARN),
}


def chip_of(state: str) -> Chip:
    """Return the chip of a state's value, in upper or lower case."""
    return CHIPS[state.lower()]
