"""Groups of an experiment's points that share their scatter, without outliers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
from scipy import special  # fdtrc is f.sf, without its checks

from analysis.conclusions.observations.outliers import Mask, find_outliers
from analysis.statistics.spread import UNEQUAL, equal_variances, log_variances
from analysis.statistics.spread import pooled as pooled_variances

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

    @classmethod
    def of_one(cls, groups: Sequence[Sequence[float]]) -> ScatterGroups:
        """Return the division into one group without outliers."""
        return cls([COMMON] * len(groups), [np.zeros(len(group), dtype=bool) for group in groups])

    @classmethod
    def found(
        cls, groups: Sequence[Sequence[float]], levels: Sequence[Sequence[str]] = (), *, higher_is_better: bool = False
    ) -> ScatterGroups:
        """Divide the points by the factor that their scatter follows.

        Otherwise into one group and single noisy points, or into single points.

        ``levels`` holds, for each factor, every point's level. Levels are compared too, as two repetitions say little about a single
        point: four points of 1 % and four of 20 % differ together. Outliers are looked for within the levels that seem to
        scatter differently, so that all trials of a noisy level are not outliers; then the division is made without them.
        """
        if all(len(group) < 2 for group in groups):
            return cls.of_one(groups)
        levels = [level for level in levels if cls._is_enough(groups, level)]
        tested = [cls._tested(groups, level) for level in levels]
        judged_within: Sequence[str] = [COMMON] * len(groups)
        if levels and min(tested) < UNEQUAL / len(levels):
            judged_within = levels[int(np.argmin(tested))]
        outliers = cls._outliers(groups, judged_within)
        noisy = [cls._is_noisy(group, mask, higher_is_better) for group, mask in zip(groups, outliers, strict=True)]
        clean: list[Values] = [
            np.zeros(0) if is_noisy else np.asarray(group)[~mask]
            for group, mask, is_noisy in zip(groups, outliers, noisy, strict=True)
        ]
        names = cls._named(clean, levels, noisy)
        members = Counter(names)
        is_single = [name != COMMON and members[name] == 1 for name in names]
        return cls(names, [mask & (not is_own) for mask, is_own in zip(outliers, is_single, strict=True)])

    @classmethod
    def _named(cls, groups: Sequence[Values], levels: Sequence[Sequence[str]], alone: Sequence[bool]) -> list[str]:
        """Return the group of every point; the points ``alone`` have their own."""
        tested = [cls._tested(groups, level) for level in levels]
        within = {k: p for k, level in enumerate(levels) if (p := cls._within(groups, level)) >= UNEQUAL}
        by_level = [k for k in within if tested[k] < UNEQUAL / len(levels)]
        if not by_level:
            noisy = cls._noisy(groups)
            separate = [one or other for one, other in zip(alone, noisy, strict=True)]
            rest = [g for g, is_separate in zip(groups, separate, strict=True) if not is_separate]
            follows_none = any(noisy) or all(p >= UNEQUAL / len(levels) for p in tested)
            if follows_none and equal_variances(*log_variances(rest)) >= UNEQUAL:
                return cls._with_own([COMMON] * len(groups), separate)
        if within:
            return cls._with_own(levels[max(by_level or within, key=lambda k: (-tested[k], within[k]))], alone)
        return cls._with_own([COMMON] * len(groups), [True] * len(groups))

    @staticmethod
    def _is_noisy(values: Sequence[float], outliers: Mask, higher_is_better: bool) -> bool:
        """Return whether outliers are half of a point's trials, or its faster ones."""
        if not outliers.any():
            return False
        beyond = np.asarray(values)[outliers] - np.median(values)
        is_fast = bool((beyond > 0).any() if higher_is_better else (beyond < 0).any())
        return is_fast or 2 * int(outliers.sum()) >= len(outliers)

    @staticmethod
    def _with_own(names: Sequence[str], alone: Sequence[bool]) -> list[str]:
        return [f"point {i}" if is_alone else name for i, (name, is_alone) in enumerate(zip(names, alone, strict=True))]

    @staticmethod
    def _outliers(groups: Sequence[Sequence[float]], names: Sequence[str]) -> list[Mask]:
        masks: list[Mask] = [np.zeros(len(group), dtype=bool) for group in groups]
        for name in dict.fromkeys(names):
            members = [i for i, label in enumerate(names) if label == name]
            for i, mask in zip(members, find_outliers([groups[i] for i in members]), strict=True):
                masks[i] = mask
        return masks

    @staticmethod
    def _is_enough(groups: Sequence[Sequence[float]], names: Sequence[str]) -> bool:
        """Return whether every level has enough repetitions for its own scatter."""
        freedom = [
            [len(values) - 1 for values in counts if len(values) > 1] for counts in by_name(groups, names).values()
        ]
        return all(len(counts) >= _GROUPS_OF_LEVEL or sum(counts) >= _FREEDOM_OF_LEVEL for counts in freedom)

    @staticmethod
    def _noisy(groups: Sequence[Values]) -> list[bool]:
        """Return the points that scatter more than all others, at most a third of them."""
        noisy = [False] * len(groups)
        for _ in range(len(groups) // 3):
            remaining = [i for i, group in enumerate(groups) if not noisy[i] and len(group) > 1]
            if len(remaining) < 3:
                break
            variances, freedom = log_variances([groups[i] for i in remaining])
            rest = (freedom @ variances - freedom * variances) / (freedom.sum() - freedom)
            p = special.fdtrc(freedom, freedom.sum() - freedom, variances / rest)
            worst = int(p.argmin())
            if p[worst] * len(remaining) >= _NOISY:
                break
            noisy[remaining[worst]] = True
        return noisy

    @staticmethod
    def _tested(groups: Sequence[Values], names: Sequence[str]) -> float:
        """Return the p-value of "the points of all names scatter equally"."""
        joined = [log_variances(members) for members in by_name(groups, names).values()]
        sums = [pooled_variances(variances, freedom) for variances, freedom in joined if len(variances)]
        return equal_variances(np.array([sd**2 for sd, _ in sums]), np.array([freedom for _, freedom in sums]))

    @staticmethod
    def _within(groups: Sequence[Values], names: Sequence[str]) -> float:
        return min(equal_variances(*log_variances(members)) for members in by_name(groups, names).values())


def by_name(groups: Sequence[OfPoint], names: Sequence[str]) -> dict[str, list[OfPoint]]:
    """Return the groups of each name."""
    named: dict[str, list[OfPoint]] = {}
    for name, values in zip(names, groups, strict=True):
        named.setdefault(name, []).append(values)
    return named
