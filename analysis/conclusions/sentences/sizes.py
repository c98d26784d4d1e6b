"""The head lines of sweeps over a size: where to stop, whether the efficiency lasts, and a single point."""

from __future__ import annotations

from analysis.conclusions.context import Asked
from analysis.conclusions.observations.grid import SizeGrid
from analysis.conclusions.observations.scatter import Scatter
from analysis.conclusions.wording import (
    change_words,
    factor_words,
    first_up,
    level,
    levels,
    lower_first,
    percent,
    percent_level,
    value,
)
from analysis.numbers import plural
from analysis.statistics import Interval


def _size(curve: SizeGrid, i: int) -> str:
    return level(curve.factor, curve.points[i].parameters[curve.factor.name])


def _are(curve: SizeGrid, i: int) -> str:
    return "is" if curve.level(i) == 1 else "are"


def _at(curve: SizeGrid) -> str:
    """Return the median of the smallest sufficient size with its interval; the level is stated here, once for the sentence."""
    point = curve.points[curve.enough]
    return value(curve.asked, curve.typical(point), curve.interval(point), with_level=True)


def _verdict(curve: SizeGrid, alone: str = "") -> str:
    """Return the first sentence and what is known of equal sizes; ``alone`` is the verdict if no other size is as good as the best."""
    others = curve.as_good[1:]
    if not others:
        return f"{alone}: {_at(curve)}."
    deciding = curve.asked.deciding
    better = "faster" if deciding.unit == "s" and not deciding.higher_is_better else "better"
    are = f"{_are(curve, curve.enough)} enough" if curve.is_equal else "may be enough"
    names = levels(curve.factor, [curve.points[i].parameters[curve.factor.name] for i in others])
    verb = "is" if len(others) == 1 and curve.level(others[0]) == 1 else "are"
    most = "" if curve.most_gained is None else f" (at most {factor_words(curve.most_gained)})"
    enough = first_up(_size(curve, curve.enough))
    return f"{enough} {are}: {_at(curve)}. {first_up(names)} {verb} not measurably {better}{most}"


def _with(verdict: str, more: str) -> str:
    """Return the verdict with what else is known: within its second sentence if it has two."""
    return f"{verdict} {first_up(more)}." if verdict.endswith(".") else f"{verdict}; {more}."


def one_size(curve: SizeGrid) -> str:
    size = _size(curve, 0) if curve.points else ""
    return f"Only {size} finished: a second size is needed to tell where to stop."


def stop(curve: SizeGrid, because: str) -> str:
    """Beyond the best size it gets worse."""
    last = len(curve.points) - 1
    ratio, interval, _ = curve.worse(last, curve.best)
    is_one = curve.level(last) == 1
    beyond = f"{'takes' if is_one else 'take'} {factor_words(ratio, interval)} as long"
    if curve.asked.deciding.higher_is_better:
        beyond = f"{'reaches' if is_one else 'reach'} {percent(1 / ratio)} of it"
    against = "" if curve.enough == curve.best else f" as {_size(curve, curve.best)}"
    head = _verdict(curve, f"{'Stay at' if curve.best == 0 else 'Stop at'} {_size(curve, curve.best)}")
    return _with(head, f"{_size(curve, last)} {beyond}{against}{because}")


def still_gains(curve: SizeGrid, efficiency: float, because: str) -> str:
    """Return the sentence of a largest size that no other one beats: either it still gains, or from some size on nothing is gained."""
    enough = curve.enough
    ratio, interval, _ = curve.worse(0, enough)
    ideal = f"{percent(efficiency)} of the ideal" if efficiency <= 1 else "more than the ideal"
    much = "much" if curve.asked.deciding.higher_is_better else "fast"
    words = f"{factor_words(ratio, interval)} as {much} as {_size(curve, 0)}, {ideal}{because}"
    if len(curve.as_good) > 1:
        return _with(_verdict(curve), f"{_size(curve, enough)} {_are(curve, enough)} {words}")
    largest = f"{first_up(_size(curve, enough))} {_are(curve, enough)} best: {_at(curve)}, {words}"
    return f"{largest}. Larger sizes may be better still: none was measured."


def between_worse(curve: SizeGrid) -> str:
    """Neither end is measurably worse than the best size, a size between them is."""
    best, good = curve.best, curve.as_good
    worst = max((i for i in range(len(curve.points)) if i not in good), key=lambda i: curve.worse(i, best)[0])
    ratio, interval, _ = curve.worse(worst, best)
    words = (
        f"{_size(curve, worst)} {_are(curve, worst)} {factor_words(ratio, interval)} worse than {_size(curve, best)}"
    )
    return _with(_verdict(curve), words)


def _enough_between(curve: SizeGrid) -> str:
    first = level(curve.factor, curve.points[0].parameters[curve.factor.name], counted=False)
    last = _size(curve, len(curve.points) - 1)
    return f"{first_up(_size(curve, 0))} {_are(curve, 0)} enough: between {first} and {last}"


def printed_alike(curve: SizeGrid) -> str:
    return f"{_enough_between(curve)} the printed values differ by less than 5 %."


def equal(curve: SizeGrid, most: float) -> str:
    label = lower_first(curve.asked.deciding.label)
    return f"{_enough_between(curve)} {label} changes by less than {percent(most)} ({percent_level(curve.claims.level)} CI)."


def too_few(curve: SizeGrid, resolution: float | None) -> str:
    seen = (
        f": trials scatter so much that only changes above {change_words(resolution)} would show" if resolution else ""
    )
    best = curve.best
    looks = f"{_size(curve, best)} {'looks' if curve.level(best) == 1 else 'look'} best so far"
    return f"Too few repetitions to tell where to stop{seen}; {looks}, {value(curve.asked, curve.typical(curve.points[best]))}."


def efficiency(curve: SizeGrid, share: float, ends: tuple[float | None, float | None], line: str, because: str) -> str:
    """Return the efficiency of the largest size; ``line`` compares it with 80 %."""
    about = f" ({percent(ends[0])} to {percent(ends[1])})" if ends[0] is not None and ends[1] is not None else ""
    words = f"{percent(share)}{about}" if share <= 1 else f"full, nothing is lost{about}"
    return f"Efficiency is {words} at {_size(curve, len(curve.points) - 1)}; {line}{because}."


def falls_below(curve: SizeGrid, i: int) -> str:
    return f"it falls below 80 % at {_size(curve, i)}"


STAYS_ABOVE = "it stays above 80 %"
NOT_TOLD = "whether it stays above 80 % cannot be told yet"
SECOND_SIZE = "A second size has to finish before its efficiency can be told."


def one_point(asked: Asked, middle: float, interval: Interval | None, scatter: Scatter | None, trials: int) -> str:
    typical = value(asked, middle, interval)
    if asked.published:
        return f"{typical}, printed without repetitions."
    if scatter is None:
        return f"{typical}, measured once: how steady that is cannot be told."
    if scatter.source == "repetitions" and trials > 1:
        return f"{typical}, from {trials} trials that scatter by {percent(scatter.sd)}."
    return f"{typical}, from {plural(trials, 'trial')}; {scatter.source} scatter by {percent(scatter.sd)}."


def more_repetitions(more: int) -> str:
    return plural(more, "more repetition")
