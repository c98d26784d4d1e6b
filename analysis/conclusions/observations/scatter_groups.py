"""Groups of an experiment's points that share their scatter, without outliers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeVar

import numpy as np
import scipy  # special is loaded when first used; fdtrc is f.sf, without its checks

from analysis.conclusions.observations.outliers import Mask, as_bytes, outlying
from analysis.statistics.spread import UNEQUAL, equal_variances, log_variances, pooled
from analysis.statistics.summary import Floats

COMMON: Final = ""
"""Name of the points that share one scatter."""
_NOISY: Final = 0.02
"""P-value below which one point scatters more than all others: it has its own scatter then."""
_GROUPS_OF_LEVEL: Final = 3
_FREEDOM_OF_LEVEL: Final = 4
"""Repeated points, or degrees of freedom, that every level needs for a scatter of its own."""

Values = Sequence[float] | np.ndarray
OfPoint = TypeVar("OfPoint", bound=Values)


@dataclass(frozen=True, slots=True)
class ScatterGroups:
    """Groups of points that share their scatter: ``of`` names each point's group.

    Single points have their own. ``outliers`` marks the values of each point that are no part of the shared scatter. A
    point with its own scatter has none.
    """

    of: Sequence[str]
    outliers: Sequence[Mask]
    spreads: Spreads
    """Scatter of every point, without its outliers."""

    @classmethod
    def of_one(cls, groups: Sequence[Values]) -> ScatterGroups:
        """Return the division into one group without outliers."""
        return cls([COMMON] * len(groups), [np.zeros(len(group), dtype=bool) for group in groups], Spreads.of(groups))

    @classmethod
    def from_values(
        cls, groups: Sequence[Values], levels: Sequence[Sequence[str]] = (), *, higher_is_better: bool = False
    ) -> ScatterGroups:
        """Divide the points by the factor that their scatter follows.

        Otherwise into one group and single noisy points, or into single points.

        ``levels`` holds, for each factor, every point's level. Levels are compared too, as two repetitions say little about a single
        point: four points of 1 % and four of 20 % differ together. Outliers are looked for within the levels that seem to
        scatter differently, so that all trials of a noisy level are not outliers; then the division is made without them.
        """
        if all(len(group) < 2 for group in groups):
            return cls.of_one(groups)
        sent = tuple(map(as_bytes, groups))
        return cls._from_bytes(sent, tuple(map(tuple, levels)), higher_is_better)

    @classmethod
    @lru_cache(maxsize=16)
    def _from_bytes(
        cls, sent: tuple[bytes, ...], levels: Sequence[Sequence[str]], higher_is_better: bool
    ) -> ScatterGroups:
        """Divide points with repetitions.

        Cached: an answer needs the same division for each slope of a drift, and again for its outliers.
        """
        groups = [np.frombuffer(group) for group in sent]
        spreads = Spreads.of(groups)
        levels = [level for level in levels if spreads.is_enough(level)]
        tested = [spreads.tested(level) for level in levels]
        judged_within: Sequence[str] = [COMMON] * len(groups)
        if levels and min(tested) < UNEQUAL / len(levels):
            judged_within = levels[int(np.argmin(tested))]
        outliers = cls._outliers(groups, judged_within)
        noisy = [
            i in outliers and cls._is_noisy(group, outliers[i], higher_is_better) for i, group in enumerate(groups)
        ]
        clean = spreads.changed(
            {i: np.zeros(0) if noisy[i] else np.asarray(groups[i])[~mask] for i, mask in outliers.items()}
        )
        names = cls._named(clean, levels, noisy)
        members = Counter(names)
        is_single = [name != COMMON and members[name] == 1 for name in names]
        masks = [np.zeros(len(group), dtype=bool) for group in groups]
        for i, mask in outliers.items():
            if not is_single[i]:
                masks[i] = mask
        return cls(names, masks, clean.changed({i: groups[i] for i in outliers if is_single[i]}))

    def pooled(self, name: str | None = None) -> tuple[float, float] | None:
        """Return the standard deviation and freedom of a group, or of all points."""
        chosen = self.spreads.freedom > 0
        if name is not None:
            chosen &= np.array([other == name for other in self.of], dtype=bool)
        return pooled(self.spreads.variances[chosen], self.spreads.freedom[chosen]) if chosen.any() else None

    @classmethod
    def _named(cls, spreads: Spreads, levels: Sequence[Sequence[str]], alone: Sequence[bool]) -> list[str]:
        """Return the group of every point; the points ``alone`` have their own."""
        tested = [spreads.tested(level) for level in levels]
        within = {k: p for k, level in enumerate(levels) if (p := spreads.within(level)) >= UNEQUAL}
        by_level = [k for k in within if tested[k] < UNEQUAL / len(levels)]
        if not by_level:
            noisy = spreads.noisy()
            separate = np.asarray(alone, dtype=bool) | noisy
            follows_none = bool(noisy.any()) or all(p >= UNEQUAL / len(levels) for p in tested)
            if follows_none and spreads.equal(~separate) >= UNEQUAL:
                return cls._with_own([COMMON] * len(alone), separate.tolist())
        if within:
            return cls._with_own(levels[max(by_level or within, key=lambda k: (-tested[k], within[k]))], alone)
        return cls._with_own([COMMON] * len(alone), [True] * len(alone))

    @staticmethod
    def _is_noisy(values: Values, outliers: Mask, higher_is_better: bool) -> bool:
        """Return whether outliers are half of a point's trials, or its faster ones."""
        beyond = np.asarray(values)[outliers] - np.median(values)
        is_fast = bool((beyond > 0).any() if higher_is_better else (beyond < 0).any())
        return is_fast or 2 * int(outliers.sum()) >= len(outliers)

    @staticmethod
    def _with_own(names: Sequence[str], alone: Sequence[bool]) -> list[str]:
        return [f"point {i}" if is_alone else name for i, (name, is_alone) in enumerate(zip(names, alone, strict=True))]

    @staticmethod
    def _outliers(groups: Sequence[Values], names: Sequence[str]) -> dict[int, Mask]:
        """Return the outliers within the points of each name, by the point."""
        masks: dict[int, Mask] = {}
        for name in dict.fromkeys(names):
            members = [i for i, label in enumerate(names) if label == name]
            masks |= {members[k]: mask for k, mask in outlying([groups[i] for i in members]).items()}
        return masks


@dataclass(frozen=True, slots=True)
class Spreads:
    """Variance and freedom of the logarithms of every point.

    A single value has no freedom.
    """

    variances: Floats
    freedom: Floats

    @classmethod
    def of(cls, groups: Sequence[Values]) -> Spreads:
        repeated = np.array([len(group) > 1 for group in groups], dtype=bool)
        variances, freedom = np.ones(len(groups)), np.zeros(len(groups))
        variances[repeated], freedom[repeated] = log_variances(groups)
        return cls(variances, freedom)

    def changed(self, groups: Mapping[int, Values]) -> Spreads:
        """Return the spreads with other values of these points."""
        variances, freedom, places = self.variances.copy(), self.freedom.copy(), list(groups)
        other = Spreads.of(list(groups.values()))
        variances[places], freedom[places] = other.variances, other.freedom
        return Spreads(variances, freedom)

    def equal(self, chosen: Mask) -> float:
        """Return the p-value of "these points scatter equally"."""
        chosen = chosen & (self.freedom > 0)
        return equal_variances(self.variances[chosen], self.freedom[chosen])

    def is_enough(self, names: Sequence[str]) -> bool:
        """Return whether every level has enough repetitions for its own scatter."""
        levels = _numbered(names)
        points, freedom = np.bincount(levels, self.freedom > 0), np.bincount(levels, self.freedom)
        return bool(((points >= _GROUPS_OF_LEVEL) | (freedom >= _FREEDOM_OF_LEVEL)).all())

    def tested(self, names: Sequence[str]) -> float:
        """Return the p-value of "the points of all names scatter equally"."""
        levels = _numbered(names)
        freedom, squares = np.bincount(levels, self.freedom), np.bincount(levels, self.freedom * self.variances)
        is_there = freedom > 0
        return equal_variances(squares[is_there] / freedom[is_there], freedom[is_there].astype(np.float64))

    def within(self, names: Sequence[str]) -> float:
        """Return the smallest p-value of "the points of one name scatter equally"."""
        levels = _numbered(names)
        return min(self.equal(levels == level) for level in range(int(levels.max(initial=-1)) + 1))

    def noisy(self) -> Mask:
        """Return the points that scatter more than all others, at most a third of them."""
        noisy = np.zeros(len(self.freedom), dtype=bool)
        for _ in range(len(noisy) // 3):
            remaining = np.flatnonzero(~noisy & (self.freedom > 0))
            if len(remaining) < 3:
                break
            variances, freedom = self.variances[remaining], self.freedom[remaining]
            rest = (freedom @ variances - freedom * variances) / (freedom.sum() - freedom)
            p = scipy.special.fdtrc(freedom, freedom.sum() - freedom, variances / rest)
            worst = int(p.argmin())
            if p[worst] * len(remaining) >= _NOISY:
                break
            noisy[remaining[worst]] = True
        return noisy


def _numbered(names: Sequence[str]) -> np.ndarray:
    """Return the number of each name, in the order of their first places."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.array([numbers[name] for name in names], dtype=np.int64)


def by_name(groups: Sequence[OfPoint], names: Sequence[str]) -> dict[str, list[OfPoint]]:
    """Return the groups of each name."""
    named: dict[str, list[OfPoint]] = {}
    for name, values in zip(names, groups, strict=True):
        named.setdefault(name, []).append(values)
    return named
