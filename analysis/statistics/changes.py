"""Histories of one configuration: steps, the baseline, and recorded changes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, Literal

import numpy as np
import scipy  # scipy.stats is loaded when it is first used

from analysis.statistics.summary import (
    Floats,
    Interval,
    SampleSummary,
    checked,
    ratio_interval,
    single_value_limits,
    summarise,
)

_PERMUTATIONS: Final = 999
_SEED: Final = 2007
SHORTEST: Final = 3
"""Trials on either side of a step: fewer could be a passing disturbance."""

LATER: Final = ".machine."
"""Group of facts, also of other hosts, that older trials lack."""

Position = Literal["within", "above", "below", "no baseline"]


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """One trial of the configuration, oldest first in a history."""

    value: float
    environment: Mapping[str, str] = field(default_factory=dict)
    """Facts that may explain a step: kernel, MPI version, workload version, definition hash ..."""
    label: str = ""
    """Label of the trial on pages: its date or key."""
    setting: str = ""
    """Setting that makes levels of their own: a change of it is a step, which is not flagged."""
    slowed: bool = False
    """Other load slowed the trial."""


@dataclass(frozen=True, slots=True)
class Change:
    """A step: ``index`` is the first trial of the new level."""

    index: int
    label: str
    before: SampleSummary
    after: SampleSummary
    ratio: float | None
    """Median after / median before; None if that is zero."""
    ratio_interval: Interval | None
    p_value: float
    environment: dict[str, tuple[str, str]]
    """Facts that changed between the trial before the step and its first: name -> (before, after)."""
    expected: bool
    slowed: int = 0
    """Trials of the new level that other load slowed."""
    slowed_before: int = 0
    """Trials of the level before that other load slowed."""

    @property
    def explanation(self) -> str:
        """Return the load and recorded changes at the step, which do not prove the cause."""
        parts = [f"{name} ({old} to {new})" for name, (old, new) in sorted(self.environment.items())]
        changed = f"Changed at the same trial: {', '.join(parts)}." if parts else ""
        words = f"{self.load} {changed}".strip()
        return words or "Nothing that was recorded of the environment changed here."

    @property
    def load(self) -> str:
        """Return that other load slowed most trials of a level, or ""."""
        levels = ((self.slowed_before, self.before.n, "before"), (self.slowed, self.after.n, "since then"))
        sides = [f"{slowed} of {count} trials {when}" for slowed, count, when in levels if 2 * slowed > count]
        return f"Other load slowed {' and '.join(sides)}." if sides else ""


@dataclass(frozen=True, slots=True)
class Baseline:
    """Level that the newest trials are judged by: those since the last step."""

    first: int
    last: int
    summary: SampleSummary
    low: float | None
    high: float | None
    """95 % prediction interval (t) by the trials before the newest, which it judges; None with fewer than three."""
    sentence: str


@dataclass(frozen=True, slots=True)
class History:
    """Steps, the baseline, and the newest trial against earlier ones of its level."""

    changes: tuple[Change, ...]
    baseline: Baseline | None
    latest: Position
    flagged: bool
    """A step that is not marked as expected, or a newest trial outside of the baseline."""

    def to_dict(self) -> dict[str, Any]:
        data = asdict(self)
        for row, change in zip(data["changes"], self.changes, strict=True):
            row["explanation"] = change.explanation
        return data


def detect_changes(
    points: Sequence[HistoryPoint],
    *,
    expected: Collection[int] = (),
    alpha: float = 0.01,
    smallest_ratio: float = 1.02,
) -> History:
    """Find steps by binary segmentation of the ranks, tested by permutation.

    Parameters
    ----------
    points
        Trials in order of time.
    expected
        First trials of steps that a person has marked; they split the history without a test and are not flagged.
    alpha
        Level of the tests.
    smallest_ratio
        Steps of the medians below it are not reported: true, but too small to matter.

    Returns
    -------
    History
        Steps, baseline and the newest trial, in the unit of the values.
    """
    if not points:
        return History((), None, "no baseline", False)
    x = checked([p.value for p in points])
    pairs = enumerate(pairwise(points), start=1)
    set_anew = {i for i, (old, new) in pairs if old.setting and new.setting and old.setting != new.setting}
    marked = sorted(i for i in {*expected, *set_anew} if 0 < i < len(x))
    borders = [0, *marked, len(x)]
    p_values = dict.fromkeys(marked, 0.0)
    for start, stop in pairwise(borders):
        p_values |= _split(x, start, stop, alpha)
    steps_found = _large_enough(x, sorted(p_values), set(marked), smallest_ratio)
    steps = [0, *steps_found, len(x)]
    changes = tuple(
        _change(points, x, steps[k - 1], steps[k], steps[k + 1], p_values[steps[k]], steps[k] in marked)
        for k in range(1, len(steps) - 1)
    )
    baseline = _baseline(x, steps[-2], len(x), points)
    latest = _position(baseline, float(x[-1]))
    flagged = any(not c.expected for c in changes) or latest in ("above", "below")
    return History(changes, baseline, latest, flagged)


def _split(x: Floats, start: int, stop: int, alpha: float) -> dict[int, float]:
    """Return steps strictly inside [start, stop), with their p-values."""
    if stop - start < 2 * SHORTEST:
        return {}
    ranks = scipy.stats.rankdata(x[start:stop])
    observed, at = _strongest(ranks[None, :])
    by_chance = _strongest_by_chance(np.sort(ranks).tobytes())
    p = float((np.sum(by_chance >= observed[0] - 1e-12) + 1) / (_PERMUTATIONS + 1))
    if p > alpha:
        return {}
    middle = start + _placed(x[start:stop], int(at[0]))
    return {middle: p} | _split(x, start, middle, alpha) | _split(x, middle, stop, alpha)


@lru_cache(maxsize=256)
def _strongest_by_chance(ranks: bytes) -> Floats:
    """Return the strongest splits of shuffled histories with these ranks.

    Without ties they depend on the length alone, so they are cached.
    """
    values = np.frombuffer(ranks, dtype=np.float64)
    shuffled = np.random.default_rng(_SEED).permuted(np.broadcast_to(values, (_PERMUTATIONS, len(values))), axis=1)
    return _strongest(shuffled)[0]


def _placed(x: Floats, at: int) -> int:
    """Return the exact first trial of a step near ``at``, by distances to medians."""

    def distance(split: int) -> float:
        return float(sum(np.abs(part - np.median(part)).sum() for part in (x[:split], x[split:])))

    near = range(max(SHORTEST, at - SHORTEST), min(len(x) - SHORTEST, at + SHORTEST) + 1)
    return min(near, key=distance)


def _strongest(ranks: Floats) -> tuple[Floats, Any]:
    """Return the largest standardised rank-sum of rows and its split (Pettitt 1979)."""
    n = ranks.shape[1]
    sizes = np.arange(SHORTEST, n - SHORTEST + 1)
    error = np.sqrt(ranks[0].var(ddof=1) * sizes * (n - sizes) / n)
    score = np.cumsum(ranks, axis=1)[:, SHORTEST - 1 : n - SHORTEST] - sizes * ranks[0].mean()
    np.abs(score, out=score)
    # equal values have no error and no step
    score /= np.where(error > 0, error, 1.0)
    best = score.argmax(axis=1)
    return score[np.arange(len(score)), best], sizes[best]


def _large_enough(x: Floats, steps: list[int], marked: set[int], smallest_ratio: float) -> list[int]:
    """Drop steps below the smallest ratio, the smallest first; their levels merge."""
    remaining = list(steps)
    while True:
        edges = [0, *remaining, len(x)]
        sizes = {
            remaining[k]: _ratio(
                float(np.median(x[edges[k] : edges[k + 1]])), float(np.median(x[edges[k + 1] : edges[k + 2]]))
            )
            for k in range(len(remaining))
            if remaining[k] not in marked
        }
        small = [step for step, ratio in sizes.items() if ratio < smallest_ratio]
        if not small:
            return remaining
        remaining.remove(min(small, key=lambda step: sizes[step]))


def _ratio(a: float, b: float) -> float:
    low, high = sorted((abs(a), abs(b)))
    return high / low if low else (1.0 if high == 0 else float("inf"))


def _change(
    points: Sequence[HistoryPoint], x: Floats, start: int, at: int, stop: int, p: float, expected: bool
) -> Change:
    before, after = x[start:at], x[at:stop]
    base = float(np.median(before))
    old, new = points[at - 1].environment, points[at].environment
    return Change(
        index=at,
        label=points[at].label,
        before=summarise(before.tolist()),
        after=summarise(after.tolist()),
        ratio=float(np.median(after)) / base if base else None,
        ratio_interval=ratio_interval(after, before),
        p_value=p,
        environment=changed_facts(old, new),
        expected=expected,
        slowed=sum(point.slowed for point in points[at:stop]),
        slowed_before=sum(point.slowed for point in points[start:at]),
    )


def changed_facts(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return the facts that changed: name -> (before, after).

    Facts of a later group are no change if one of the trials was measured before they were recorded.
    """
    names = sorted(set(old) | set(new))
    if any(not any(LATER in f".{name}" for name in facts) for facts in (old, new)):
        names = [name for name in names if LATER not in f".{name}"]
    return {n: (old.get(n, "absent"), new.get(n, "absent")) for n in names if old.get(n) != new.get(n)}


def _limits(x: Floats) -> tuple[float | None, float | None]:
    if len(x) < SHORTEST:
        return None, None
    return single_value_limits(x) or (None, None)


def _baseline(x: Floats, first: int, stop: int, points: Sequence[HistoryPoint]) -> Baseline:
    level = x[first:stop]
    # Without the newest trial: a far value would widen the limits that judge it.
    low, high = _limits(level[:-1])
    since = f"since {points[first].label}" if points[first].label else f"since trial {first + 1}"
    sentence = (
        f"Baseline: the {len(level)} trials {since}, after the last step."
        if first
        else (f"Baseline: all {len(level)} trials; no step was found.")
    )
    return Baseline(first, stop - 1, summarise(level.tolist()), low, high, sentence)


def _position(baseline: Baseline, newest: float) -> Position:
    if baseline.low is None or baseline.high is None:
        return "no baseline"
    return "below" if newest < baseline.low else "above" if newest > baseline.high else "within"
