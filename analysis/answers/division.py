"""Which points of an experiment share their scatter: all of them, those of one level, or each its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import special  # fdtrc is f.sf, without its checks

from analysis.statistics.spread import UNLIKE, equal_variances, log_variances
from analysis.statistics.spread import pooled as pooled_variances

_NOISY: Final = 0.02
"""P-value below which one point scatters more than all others: it has its own scatter then."""


@dataclass(frozen=True, slots=True)
class Division:
    """How the points of an experiment share their scatter: ``of`` names each point's group; a point alone in it has its own."""

    of: Sequence[str]

    @classmethod
    def found(cls, groups: Sequence[Sequence[float]], levels: Sequence[Sequence[str]] = ()) -> Division:
        """By the levels of the factor that the scatter follows; else all together but for single noisy points; else each alone.

        ``levels`` holds, for each factor, every point's level. Levels are compared too, as two repetitions a point tell little of a
        single one: four of 1 % and four of 20 % are told apart by what they have together.
        """
        tested = [cls._tested(groups, level) for level in levels]
        within = {k: p for k, level in enumerate(levels) if (p := cls._within(groups, level)) >= UNLIKE}
        by_level = [k for k in within if tested[k] < UNLIKE / len(levels)]
        if not by_level:
            apart = cls._noisy(groups)
            rest = [g for g, noisy in zip(groups, apart, strict=True) if not noisy]
            follows_none = any(apart) or all(p >= UNLIKE / len(levels) for p in tested)
            if follows_none and equal_variances(*log_variances(rest)) >= UNLIKE:
                return cls([str(i) if noisy else "" for i, noisy in enumerate(apart)])
        if within:
            return cls(levels[max(by_level or within, key=lambda k: (-tested[k], within[k]))])
        return cls([str(i) for i in range(len(groups))])

    @staticmethod
    def _noisy(groups: Sequence[Sequence[float]]) -> list[bool]:
        """Points that scatter more than all others together, the noisiest first; at most a third of them."""
        noisy = [False] * len(groups)
        for _ in range(len(groups) // 3):
            left = [i for i, group in enumerate(groups) if not noisy[i] and len(group) > 1]
            if len(left) < 3:
                break
            variances, freedom = log_variances([groups[i] for i in left])
            rest = (freedom @ variances - freedom * variances) / (freedom.sum() - freedom)
            p = special.fdtrc(freedom, freedom.sum() - freedom, variances / rest)
            worst = int(p.argmin())
            if p[worst] * len(left) >= _NOISY:
                break
            noisy[left[worst]] = True
        return noisy

    @staticmethod
    def _tested(groups: Sequence[Sequence[float]], names: Sequence[str]) -> float:
        """P-value of "the points of all names scatter alike", those of one name together."""
        joined = [log_variances(own) for own in by_name(groups, names).values()]
        sums = [pooled_variances(variances, freedom) for variances, freedom in joined if len(variances)]
        return equal_variances(np.array([sd**2 for sd, _ in sums]), np.array([freedom for _, freedom in sums]))

    @staticmethod
    def _within(groups: Sequence[Sequence[float]], names: Sequence[str]) -> float:
        """Smallest p-value of "the points of one name scatter alike"."""
        return min(equal_variances(*log_variances(own)) for own in by_name(groups, names).values())


def by_name(groups: Sequence[Sequence[float]], names: Sequence[str]) -> dict[str, list[Sequence[float]]]:
    """Return the groups of each name."""
    named: dict[str, list[Sequence[float]]] = {}
    for name, values in zip(names, groups, strict=True):
        named.setdefault(name, []).append(values)
    return named
