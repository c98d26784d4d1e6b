"""Search for the best settings by Optuna: proposals in, results out. Pure.

Optuna stores nothing: each call rebuilds its study from the results, and a stored seed makes the proposals repeatable. Numbers are
proposed by their position in the ascending list of values, so that steps, powers and units need no other treatment.
"""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

MOST_LISTED: Final = 2000
"""Combinations up to which all of them are listed, so that the end of a space is known."""
MOST_DRAWN: Final = 50_000
"""Combinations that are looked at if few of a space are possible."""
FEWEST_FOR_IMPORTANCE: Final = 20
_ATTEMPTS: Final = 60
"""Proposals for each one that is wanted; measured and impossible ones are refused."""
_STARTUP: Final = 10
"""Results before which proposals are random (TPE's usual number)."""
_FEWEST_AROUND: Final = 6
"""Results from which on a half of the proposals are one step from the best ones."""
_BEST: Final = 2
"""Best combinations around which a search looks."""

Settings = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Result:
    """A measured combination; ``value`` is None if it failed."""

    settings: Settings
    value: float | None


@dataclass(frozen=True, slots=True)
class Space:
    """Values of each parameter, and a rule for possible combinations."""

    values: Mapping[str, Sequence[Any]]
    is_possible: Callable[[Settings], bool]

    @property
    def size(self) -> int:
        return math.prod(len(values) for values in self.values.values())

    def combinations(self) -> list[dict[str, Any]]:
        """Return all possible combinations of a space that can be listed."""
        rows = (dict(zip(self.values, row, strict=True)) for row in product(*self.values.values()))
        return [row for row in rows if self.is_possible(row)]


def key_of(settings: Settings) -> str:
    """Return the key of a combination."""
    return repr(sorted(settings.items()))


def propose(
    space: Space, results: Sequence[Result], count: int, *, seed: int, higher_is_better: bool
) -> list[dict[str, Any]]:
    """Return up to ``count`` new combinations, fewer at the end of the space.

    Up to a half are one step from the best results. The others are from tree-structured Parzen estimators (Bergstra et al.
    2011), all parameters together; results of one round are guessed while its other combinations are proposed (constant
    liar). The estimators alone see too few results of a small budget to find a narrow optimum.
    """
    seen = {key_of(result.settings) for result in results}
    unseen = [row for row in space.combinations() if key_of(row) not in seen] if space.size <= MOST_LISTED else None
    if unseen is not None and len(unseen) <= count:
        return unseen
    study, distributions = _study(space, results, seed=seed, higher_is_better=higher_is_better)
    proposals: list[dict[str, Any]] = []
    for settings in _around_best(space, results, seed=seed, higher_is_better=higher_is_better):
        if len(proposals) == count // 2:
            break
        if key_of(settings) not in seen and space.is_possible(settings):
            seen.add(key_of(settings))
            proposals.append(settings)
    for _ in range(_ATTEMPTS * count):
        if len(proposals) == count:
            break
        trial = study.ask(distributions)
        settings = {name: values[trial.params[name]] for name, values in _ordered(space).items()}
        if key_of(settings) not in seen and space.is_possible(settings):
            seen.add(key_of(settings))
            proposals.append(settings)
    for settings in _in_random_order(space, seed) if len(proposals) < count else ():
        if key_of(settings) not in seen and space.is_possible(settings):
            seen.add(key_of(settings))
            proposals.append(settings)
            if len(proposals) == count:
                break
    return proposals


def _around_best(
    space: Space, results: Sequence[Result], *, seed: int, higher_is_better: bool
) -> Iterator[dict[str, Any]]:
    """Yield combinations one step from the best results, those of the best first."""
    measured = [(result.value, result.settings) for result in results if result.value is not None]
    if len(measured) < _FEWEST_AROUND:
        return
    measured.sort(key=lambda row: row[0], reverse=higher_is_better)
    ordered = _ordered(space)
    for _, best in measured[:_BEST]:
        settings = {name: best[name] for name in ordered}
        steps = [{**settings, name: value} for name in ordered for value in _next_to(best[name], ordered[name])]
        random.Random(seed).shuffle(steps)  # noqa: S311 (a stored seed makes the proposals repeatable; nothing secret)
        yield from steps


def _next_to(value: Any, values: Sequence[Any]) -> list[Any]:
    """Return the numbers below and above a value; all other words."""
    position = values.index(value)
    if not all(isinstance(v, int | float) for v in values):
        return [*values[:position], *values[position + 1 :]]
    return [*values[max(0, position - 1) : position], *values[position + 1 : position + 2]]


def _in_random_order(space: Space, seed: int) -> Iterator[dict[str, Any]]:
    """Yield combinations, possible or not: all of them, or ``MOST_DRAWN``."""
    draws = random.Random(seed)  # noqa: S311 (a stored seed makes the proposals repeatable; nothing secret)
    all_drawn = space.size <= MOST_DRAWN
    drawn = (
        draws.sample(range(space.size), space.size)
        if all_drawn
        else (draws.randrange(space.size) for _ in range(MOST_DRAWN))
    )
    for number in drawn:
        settings = {}
        for name, values in space.values.items():
            number, position = divmod(number, len(values))
            settings[name] = values[position]
        yield settings


def importance(space: Space, results: Sequence[Result], *, higher_is_better: bool) -> dict[str, float]:
    """Return the share of each parameter in the differences among good results.

    PED-ANOVA (Watanabe et al. 2023). Empty with fewer than ``FEWEST_FOR_IMPORTANCE`` results, or if all are equal.
    """
    measured = [result for result in results if result.value is not None]
    if len(measured) < FEWEST_FOR_IMPORTANCE or len({result.value for result in measured}) < 2:
        return {}
    from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances

    study, _ = _study(space, measured, seed=0, higher_is_better=higher_is_better)
    varied = [name for name, values in space.values.items() if len(values) > 1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # experimental features
        evaluator = PedAnovaImportanceEvaluator(target_quantile=0.25, region_quantile=1.0)
        shares = get_param_importances(study, evaluator=evaluator, params=varied)
    return {name: float(share) for name, share in shares.items() if math.isfinite(share)}


def _ordered(space: Space) -> dict[str, list[Any]]:
    """Return numbers in ascending order, words as they are written."""
    return {
        name: sorted(values) if all(isinstance(v, int | float) for v in values) else list(values)
        for name, values in space.values.items()
    }


def _study(space: Space, results: Sequence[Result], *, seed: int, higher_is_better: bool) -> tuple[Any, dict[str, Any]]:
    """Return a study in memory with all results, and all distributions."""
    # Takes 0.4 s, which no page without a search shall wait for.
    import optuna
    from optuna.distributions import CategoricalDistribution, IntDistribution
    from optuna.trial import TrialState, create_trial

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    ordered = _ordered(space)
    distributions: dict[str, Any] = {
        name: IntDistribution(0, len(values) - 1)
        if all(isinstance(v, int | float) for v in values)
        else CategoricalDistribution(range(len(values)))
        for name, values in ordered.items()
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # experimental features
        sampler = optuna.samplers.TPESampler(
            seed=seed, multivariate=True, constant_liar=True, n_startup_trials=_STARTUP
        )
    study = optuna.create_study(sampler=sampler, direction="maximize" if higher_is_better else "minimize")
    for result in results:
        params = {name: ordered[name].index(result.settings[name]) for name in ordered}
        # A pruned trial counts as worse than all others: TPE leaves failed regions.
        state = TrialState.PRUNED if result.value is None else TrialState.COMPLETE
        study.add_trial(create_trial(params=params, distributions=distributions, value=result.value, state=state))
    return study, distributions
