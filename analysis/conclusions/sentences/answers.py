"""Head lines of answers, by question, and remarks about the whole experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from analysis import numbers
from analysis.conclusions.answer import Answer, Figure
from analysis.conclusions.context import Accepted, ExperimentQuestion, Factor
from analysis.conclusions.observations.drift import Drift
from analysis.conclusions.observations.grid import Grid, SizeGrid
from analysis.conclusions.observations.ladder import Advance, step_of
from analysis.conclusions.observations.scatter import Scatter
from analysis.conclusions.observations.transfer import MIN_SIZES
from analysis.conclusions.wording import (
    ANY,
    amount,
    base,
    between,
    change_words,
    clauses,
    factor_words,
    first_up,
    joined,
    level,
    levels,
    listed_points,
    lower_first,
    percent,
    percent_level,
    point_words,
    value,
)
from analysis.numbers import NARROW, SHARE, change, grouped, plural, rounded, signed, significant
from analysis.scaling import Point, ProgramFile
from analysis.statistics import Interval
from analysis.trust_level import FLAGGED

# The experiment as a whole

CONFOUNDED_BY_DRIFT: Final = (
    "A drift alone may explain the differences. The trials drift by {drift}, and {factors} changed with their order."
)
NOT_YET: Final = "not enough data yet"


def no_answer(question: ExperimentQuestion) -> str:
    """Return why no trial has a value of the deciding metric, and the next step."""
    finished = sum(max(map(len, point.values.values()), default=0) for point in question.points)
    flagged = sum(n for point in question.points for level, n in point.trust.items() if level in FLAGGED)
    if not finished:
        return "No trial has finished."
    label, trials = lower_first(question.deciding.label), plural(finished, "trial")
    if flagged < finished:
        return f"{trials} finished without a value of {label}. The tab Measurements of a trial states the reason."
    reasons = list(dict.fromkeys(reason for point in question.points for reason in point.trust_reasons))
    why = f": {'; '.join(reasons[:2])}" if reasons else ""
    return (
        f"{trials} finished, all flagged{why}. Flagged captures give no {label}: "
        "remove the reason, then press Add repetitions."
    )


def slices(verdicts: Mapping[str, Sequence[str]]) -> str:
    """Return one sentence: each verdict with the slices that it holds for."""
    rows = list(verdicts.items())
    if len(rows) == 1:
        ((verdict, places),) = rows
        return f"In {'both' if len(places) == 2 else f'all {len(places)}'} combinations: {verdict}."
    return f"{first_up(clauses([f'{joined(places)}: {verdict}' for verdict, places in rows]))}."


def verdict_of(question: ExperimentQuestion, answer: Answer) -> str:
    """Return the verdict of one slice as a clause: "4 hosts are enough"."""
    figures = {figure.name: figure for figure in answer.figures}  # the last of a name is that of the largest size
    if answer.strength == "open":
        return NOT_YET
    if answer.question == "scale" and "enough" in figures:
        size = figures["enough"].value
        return f"{level(question.of_role('scale')[0], size)} {'is' if size == 1 else 'are'} enough"
    if answer.question == "weak scale":
        falls = figures.get("falls below 80 %")
        return FALLS.format(size=level(question.of_role("scale")[0], falls.value)) if falls else STAYS_ABOVE
    if "best" in figures:
        at = point_words(question.of_role("scale")[:1], figures["best"].where) if answer.question != "treatment" else ""
        return f"{figures['best'].value} is best{f' at {at}' if at else ''}"
    if "exponent" in figures:
        return f"the power is {significant(_number(figures['exponent']), 2)}"
    speed = next((figures[name] for name in ("latency", "bandwidth") if name in figures), None)
    return NOT_YET if speed is None else f"{speed.name} is {amount(_number(speed), speed.unit)}"


def _number(figure: Figure) -> float:
    return float(figure.value or 0.0)


def outliers(total: int, trials: int) -> tuple[str, str]:
    """Return the number of outliers and the suggested next step."""
    are = "is an outlier" if total == 1 else "are outliers"
    return (
        f"{total} of {plural(trials, 'trial')} {are}, excluded from the scatter.",
        "Look at these trials for other load, or for a first run that fills caches.",
    )


def changed_programs(changed: Sequence[Sequence[ProgramFile]]) -> tuple[str, str]:
    """Return the counts and dates of different files and the suggested next step."""
    sentences = [
        f"Trials ran {len(files)} different files {files[-1].path}: "
        + joined([f"{plural(file.trials, 'trial')} from {file.first or 'an unknown time'}" for file in files])
        for files in changed
    ]
    return f"{'. '.join(sentences)}.", "Clone the experiment: these numbers mix them."


def measured_once(question: ExperimentQuestion, points: Sequence[Point]) -> tuple[str, str]:
    """Return the points with one trial; the next step is the recommended repetition."""
    names, one = listed_points(question.factors, points), len(points) == 1
    whose = "its interval assumes" if one else "their intervals assume"
    return f"Only one trial {'each ' if not one else ''}counts at {names}: {whose} the scatter of other points.", ""


def other_load(slowed: int, excluded: int, trials: int, only_at: str = "") -> tuple[str, str]:
    """Return the number of trials that other load slowed and the suggested next step.

    ``only_at``: the points without any other trial, if some have one.
    """
    words = f"Other load slowed {slowed} of {plural(trials, 'trial')}"
    if excluded == slowed:
        return f"{words}: excluded, as clean trials of the same points count.", ""
    if excluded:
        words += f", {grouped(excluded)} of which {'is' if excluded == 1 else 'are'} excluded"
    if only_at:
        words += f". At {only_at} it slowed every trial that counts"
    return f"{words}.", "Measure again on idle machines."


def time_limit(trials: int, points: Sequence[str]) -> tuple[str, str]:
    """Return the number of trials that met the time limit and the suggested next step."""
    return (
        f"{plural(trials, 'trial')} met the time limit: the times of {joined(points)} lack the slowest and are too short.",
        "Raise the time limit, then run these trials again.",
    )


def per_trial(drift: Drift) -> str:
    """Return "+1.92 % per trial (+1.71 to +2.13 %)"."""
    percents = [100 * float(np.expm1(end)) for end in (drift.slope, *drift.interval())]
    middle, low, high = (signed(percent, 2 if abs(percent) < 10 else 1) for percent in percents)
    return f"{middle}{NARROW}% per trial ({low} to {high}{NARROW}%)"


_INTERLEAVE: Final = ", or clone the experiment with interleaved order"


def drift_not_excluded(label: str, most: float, *, is_interleaved: bool = False) -> tuple[str, str]:
    """Return the drift that the trials do not exclude and the suggested next step."""
    return (
        f"{label} may drift by up to {percent(most)} per trial, which would change the answer.",
        f"Add rounds of all configurations{'' if is_interleaved else _INTERLEAVE}.",
    )


def drift_fact(label: str, drift: Drift, whole: float, *, is_interleaved: bool = False) -> tuple[str, str]:
    """Return the size of a drift over the experiment and the suggested next step."""
    what = "the answer is without it" if drift.is_balanced else "it cannot be separated from the varied parameters"
    step = look = "look for changes on the machines over time: temperature, caches, files, other programs."
    if not drift.is_balanced:
        step = f"add rounds of all configurations{'' if is_interleaved else _INTERLEAVE}; {look}"
    trials = plural(drift.trials, "trial")
    return f"{label} drifts by {per_trial(drift)}, {change(whole)} over {trials}: {what}.", first_up(step)


def also_at(
    where: Mapping[str, Any],
    others: Sequence[Mapping[str, Any]],
    slices: Sequence[Mapping[str, Any]],
    factors: Sequence[Factor],
    *,
    is_everywhere: bool,
) -> str:
    """Return a slice and the others: "pull; also for tree"."""
    by_name = {factor.name: factor for factor in factors}
    varying = [name for name in where if len({repr(other.get(name)) for other in slices}) > 1]
    named = [by_name.get(name) or Factor(name, name.replace("_", " "), "treatment") for name in varying]
    label = point_words(named, where)
    if not others:
        return label
    if len(named) == 1:
        return f"{label}; also for {levels(named[0], [other.get(named[0].name) for other in others])}"
    return f"{label}; also for {'all' if is_everywhere else f'{len(others)} of {len(slices) - 1}'} others"


# Sizes

STAYS_ABOVE: Final = "efficiency stays above 80 %"
FALLS: Final = "efficiency falls below 80 % at {size}"
UNDECIDED: Final = "not enough data yet: efficiency may be above or below 80 %"


def falls(curve: SizeGrid, fallen: int, perhaps: int) -> str:
    """Return the size where efficiency falls, and a smaller one where it may."""
    line = FALLS.format(size=size_of(curve, fallen))
    return line if perhaps >= fallen else f"{line}, perhaps at {size_of(curve, perhaps)}"


def size_of(curve: SizeGrid, i: int) -> str:
    return level(curve.factor, curve.points[i].parameters[curve.factor.name])


def _are(curve: SizeGrid, i: int) -> str:
    return "is" if curve.level(i) == 1 else "are"


def _at(curve: SizeGrid) -> str:
    point = curve.points[curve.enough]
    return value(curve.question, curve.typical(point), curve.interval(point), with_level=True)


def _verdict(curve: SizeGrid, alone: str = "") -> str:
    """Return the first sentence; ``alone`` is the verdict without equal sizes."""
    others = curve.enough_sizes[1:]
    if not others:
        return f"{alone}: {_at(curve)}."
    deciding = curve.question.deciding
    better = "faster" if deciding.unit == "s" and not deciding.higher_is_better else "better"
    are = f"{_are(curve, curve.enough)} enough" if curve.is_equal else "may be enough"
    names = levels(curve.factor, [curve.points[i].parameters[curve.factor.name] for i in others])
    verb = "is" if len(others) == 1 and curve.level(others[0]) == 1 else "are"
    most = ""
    if curve.most_gained is not None:
        most = f" (at most {factor_words(curve.most_gained)} as {'fast' if better == 'faster' else 'good'})"
    enough = first_up(size_of(curve, curve.enough))
    return f"{enough} {are}: {_at(curve)}, and {names} {verb} not measurably {better}{most}."


def _against_best(curve: SizeGrid, i: int) -> str:
    """Return "16 hosts take 2.8 times (2.5 to 3.1) as long as 4 hosts".

    Of energy and the like: "energy of 16 hosts is 2.8 times (2.5 to 3.1) that of 4 hosts".
    """
    if not _is_speed(curve):
        return _times(curve, i, curve.best)
    ratio, interval, _ = curve.worse(i, curve.best)
    is_one, best = curve.level(i) == 1, size_of(curve, curve.best)
    if curve.question.deciding.higher_is_better:
        verb, label = "reaches" if is_one else "reach", lower_first(curve.question.deciding.label)
        return f"{size_of(curve, i)} {verb} {factor_words(1 / ratio)} the {label} of {best}"
    return f"{size_of(curve, i)} {'takes' if is_one else 'take'} {factor_words(ratio, interval)} as long as {best}"


def _is_speed(curve: SizeGrid) -> bool:
    deciding = curve.question.deciding
    return deciding.higher_is_better or deciding.unit == "s"


def _times(curve: SizeGrid, i: int, base: int) -> str:
    ratio, interval, _ = curve.worse(i, base)
    label = lower_first(curve.question.deciding.label)
    return f"{label} of {size_of(curve, i)} is {factor_words(ratio, interval)} that of {size_of(curve, base)}"


def one_size(curve: SizeGrid, failed: Sequence[Point] = ()) -> str:
    size = size_of(curve, 0) if curve.points else "no trial"
    needed = f"Not enough data yet: only {size} finished, and a second number of {curve.factor.plural} is needed."
    if not failed:
        return needed
    names = levels(curve.factor, sorted({point.parameters[curve.factor.name] for point in failed}))
    return f"{needed} The trials at {names} gave no result."


def stop(curve: SizeGrid, worse: int, because: str) -> str:
    """Return the sentences of the best size and of the next, ``worse`` one."""
    head = _verdict(curve, f"{'Stay at' if curve.best == 0 else 'Stop at'} {size_of(curve, curve.best)}")
    few = "" if curve.claims.printed or len(curve.question.values(curve.points[worse])) > 1 else ", in one trial"
    return f"{head} {first_up(_against_best(curve, worse))}{few}{because}."


def still_gains(curve: SizeGrid, efficiency: float, because: str) -> str:
    """Return the sentences of a largest size that no other one beats."""
    enough = curve.enough
    ratio, interval, _ = curve.worse(0, enough)
    ideal = f"{percent(efficiency)} of the ideal" if efficiency <= 1 else "more than the ideal"
    much = "much" if curve.question.deciding.higher_is_better else "fast"
    words = f"{factor_words(ratio, interval)} as {much} as {size_of(curve, 0)}, {ideal}{because}"
    most = f"{first_up(size_of(curve, enough))}, the most measured, {_are(curve, enough)} best: {_at(curve)}"
    if not _is_speed(curve):
        head = _verdict(curve) if len(curve.enough_sizes) > 1 else f"{most}."
        return f"{head} {first_up(_times(curve, 0, enough))}{because}."
    if len(curve.enough_sizes) > 1:
        return f"{_verdict(curve)} {first_up(size_of(curve, enough))} {_are(curve, enough)} {words}."
    return f"{most}. That is {words}."


def between_worse(curve: SizeGrid) -> str:
    best, good = curve.best, curve.enough_sizes
    worst = max((i for i in range(len(curve.points)) if i not in good), key=lambda i: curve.worse(i, best)[0])
    return f"{_verdict(curve)} {first_up(_against_best(curve, worst))}."


def equal(curve: SizeGrid, most: float | None) -> str:
    """Return the sentence of equal sizes.

    ``most`` is the largest difference that could hide, None for printed values.
    """
    first = level(curve.factor, curve.points[0].parameters[curve.factor.name], counted=False)
    last = size_of(curve, len(curve.points) - 1)
    head = f"{first_up(size_of(curve, 0))} {_are(curve, 0)} enough: between {first} and {last}"
    if most is None:
        return f"{head} the printed values differ by less than 5 %."
    label = lower_first(curve.question.deciding.label)
    return f"{head} {label} changes by less than {percent(most)} ({percent_level(curve.claims.level)} CI)."


def too_few(curve: SizeGrid) -> str:
    best = curve.best
    reason = _resolvable(curve, "changes")
    looks = f"{size_of(curve, best)} {'looks' if curve.level(best) == 1 else 'look'} best so far"
    return (
        f"Not enough data yet: {reason}. {first_up(looks)}, {value(curve.question, curve.typical(curve.points[best]))}."
    )


def efficiency(
    curve: SizeGrid, i: int, share: float, ends: tuple[float | None, float | None], line: str, because: str
) -> str:
    """Return the efficiency of size ``i`` after ``line``, the verdict."""
    about = f" ({words})" if (words := numbers.between(*ends, SHARE, 2)) else ""
    words = f"it is {percent(share)}{about}" if share <= 1 else f"nothing is lost{about}"
    return f"{first_up(line)}. At {size_of(curve, i)} {words}{because}."


def _energy(curve: SizeGrid) -> str:
    return "energy per result" if curve.question.deciding.higher_is_better else "energy"


def no_less_energy(curve: SizeGrid) -> str:
    return f"No size uses measurably less {_energy(curve)}."


def least_energy_too(curve: SizeGrid) -> str:
    is_one = curve.level(curve.enough) == 1
    return f"{first_up(size_of(curve, curve.enough))} also {'uses' if is_one else 'use'} the least {_energy(curve)}."


def least_energy(
    curve: SizeGrid,
    i: int,
    saved: tuple[float, Interval | None],
    longer: tuple[float, Interval | None] | None,
    *,
    is_clear: bool,
) -> str:
    """Return the sentence of a size that uses less energy than the sufficient one.

    ``longer``: how many times as long it takes, or as small its rate is, if that is measurable.
    """
    share, interval = saved
    size, is_one = size_of(curve, i), curve.level(i) == 1
    ends = "" if interval is None else numbers.between(interval.low, interval.high, SHARE, 2)
    about = f" ({percent_level(interval.level)} CI {ends})" if interval is not None and ends else ""
    if not is_clear:
        unclear = f"{first_up(_energy(curve))} shows no clear change"
        return f"{unclear}: {size} {'uses' if is_one else 'use'} {percent(share)} less{about}."
    words = f"{first_up(size)} {'uses' if is_one else 'use'} {percent(share)} less {_energy(curve)}{about}"
    if longer is None:
        return f"{words}."
    if curve.question.deciding.higher_is_better:
        ratio, between_ = longer
        low, high = (None, None) if between_ is None else (between_.low, between_.high)
        reached = numbers.between(1 / high, 1 / low, SHARE, 2) if low and high else ""
        rate = f"{percent(1 / ratio)}{f' ({reached})' if reached else ''} of that {lower_first(curve.question.deciding.label)}"
        return f"{words} and {'reaches' if is_one else 'reach'} {rate}."
    return f"{words} and {'takes' if is_one else 'take'} {factor_words(*longer)} as long."


def one_point(
    question: ExperimentQuestion, middle: float, interval: Interval | None, scatter: Scatter | None, trials: int
) -> str:
    typical = f"{first_up(question.deciding.label)} is {value(question, middle, interval)}"
    if question.published:
        return f"{typical}, printed without repetitions."
    if scatter is None:
        return f"{typical}, measured once: its scatter is not known."
    if scatter.source == "repetitions" and trials > 1:
        return f"{typical}, from {trials} trials that scatter by {percent(scatter.sd)}."
    return f"{typical}, from {plural(trials, 'trial')}; the scatter of {scatter.source} is {percent(scatter.sd)}."


# Choices

SECOND_CHOICE: Final = "Not enough data yet: the comparison needs a second choice."
ONE_CHOICE: Final = "Nothing to compare: no size was measured with more than one choice."
CHANGE_TOGETHER: Final = "{factors} change together: their separate effects were not measured"
_LISTED: Final = 2


def factors(grid: Grid, scale: Factor | None, choice: str, baseline: str) -> str:
    """Return how fast a choice is, at the smallest and the largest size first."""
    head = f"{first_up(choice)} against {baseline}"
    ends = [grid.points[0], *grid.points[:0:-1]]
    words = [f"{factor_words(grid.typical(point), grid.interval(point))} as fast" for point in ends]
    if scale is None:
        return f"{head}: {words[0]}."
    at = [f"{word} at {level(scale, p.parameters[scale.name])}" for word, p in zip(words, ends, strict=True)]
    return f"{head}: {clauses(at)}."


def _better(question: ExperimentQuestion) -> str:
    return "as much" if question.deciding.higher_is_better else "as fast"


def _limit(grid: Grid) -> str:
    return _resolvable(grid, "differences")


def _resolvable(grid: Grid, things: str) -> str:
    """Return what the scatter hides: at least every ratio that is not measurable."""
    ratio = grid.claims.resolution()
    if ratio is None:
        return "too few repetitions"
    best = min(grid.points, key=grid.cost)
    compared = [grid.compare(point, best) for point in grid.points if point is not best]
    ratio = max([ratio, *(measured for measured, _, is_worse in compared if not is_worse)])
    return (
        f"the scatter of the trials hides {things} below {change_words(ratio)}"
        if ratio < ANY
        else "the trials scatter too much"
    )


def _typical(grid: Grid, point: Point) -> str:
    return value(grid.question, grid.typical(point), grid.interval(point))


def no_choice(grid: Grid, choices: Sequence[Factor], best: Point) -> str:
    leading = f"{point_words(choices, best.parameters)}, {_typical(grid, best)}"
    return f"No choice is measurably better: {_limit(grid)}. Best so far: {leading}."


def equal_choices(grid: Grid, choices: Sequence[Factor], best: Point, most: float) -> str:
    names, label = joined([factor.label for factor in choices]), lower_first(grid.question.deciding.label)
    leading = f"{point_words(choices, best.parameters)}, {_typical(grid, best)}"
    verb = "does" if len(choices) == 1 else "do"
    return (
        f"{first_up(names)} {verb} not matter: {label} changes by less than {percent(most)}. Best measured: {leading}."
    )


def best_choice(grid: Grid, choices: Sequence[Factor], ranked: Sequence[Point], equal: Sequence[Point]) -> str:
    best, worst = ranked[0], ranked[-1]
    ratio, interval, _ = grid.compare(worst, best)
    return first_up(
        f"{_leaders([point_words(choices, p.parameters) for p in (best, *equal)])}: {_typical(grid, best)}, "
        f"{factor_words(ratio, interval)} {_better(grid.question)} as {point_words(choices, worst.parameters)}."
    )


def _leaders(names: Sequence[str], at: str = "") -> str:
    """Return "tree is best at 8 hosts", or all that are not measurably different."""
    if len(names) == 1:
        return f"{names[0]} is best{at}"
    more = len(names) - 1 - _LISTED
    listed = [*names[: 1 + _LISTED], *([f"{more} more"] if more > 0 else [])]
    return f"{joined(listed)} are best{at}, without a measurable difference"


def _noun(scale: Factor) -> str:
    """Return the name of a size: a program may have a parameter "size"."""
    return "number of hosts" if scale.name == "hosts" else "size"


def no_choice_at(grid: Grid, scale: Factor, sizes: Sequence[float]) -> str:
    at = f"At {level(scale, sizes[0])} no choice is" if len(sizes) == 1 else f"At no {_noun(scale)} is a choice"
    return f"{at} measurably better: {_limit(grid)}."


def best_over_sizes(
    grid: Grid,
    scale: Factor,
    choices: Sequence[Factor],
    ranked: Sequence[Point],
    since: float | None,
    other: tuple[float, Mapping[str, Any] | None] | None,
    sizes: Sequence[float],
) -> str:
    """Return the best choice of the largest decided size.

    ``since`` is the size from which on it leads, None if it does not; ``sizes`` are all, in order.
    """
    best, worst = ranked[0], ranked[-1]
    size = best.parameters[scale.name]
    ratio, interval, _ = grid.compare(worst, best)
    names = [point_words(choices, p.parameters) for p in (best, *grid.as_good(ranked))]
    undecided = [larger for larger in sizes if larger > size]
    verdict = [
        _leaders(names, f" {_sizes_of_lead(scale, since, size, sizes)}"),
        *([f"at {level(scale, other[0])} {point_words(choices, other[1])} is"] if other else []),
        *([f"at {level(scale, undecided[0])} no choice is measurably better"] if len(undecided) == 1 else []),
        *([f"beyond {level(scale, size)} no choice is measurably better"] if len(undecided) > 1 else []),
    ]
    medians = [amount(grid.typical(point), grid.question.deciding.unit) for point in (best, worst)]
    times = f"{factor_words(ratio, interval)} {_better(grid.question)} as {point_words(choices, worst.parameters)}"
    comparison = (
        f"At {level(scale, size)} {'it' if len(names) == 1 else names[0]} is {times}: {' against '.join(medians)}"
        f"{base(grid.question)}"
    )
    return f"{first_up(clauses(verdict))}. {comparison}{_also(grid.question, best, worst)}."


def _sizes_of_lead(scale: Factor, since: float | None, size: float, sizes: Sequence[float]) -> str:
    """Return the sizes at which a choice leads up to ``size``: "from 4 hosts on"."""
    last = level(scale, size)
    if since in (None, size):
        return f"at {last}"
    if since == sizes[0]:
        return f"at every {_noun(scale)}" if size == sizes[-1] else f"up to {last}"
    return f"from {level(scale, since)} {'on' if size == sizes[-1] else f'to {last}'}"


def _also(question: ExperimentQuestion, best: Point, worst: Point) -> str:
    if question.also is None:
        return ""
    medians = [m for point in (best, worst) if (m := point.median(question.also.metric)) is not None]
    if len(medians) < 2:
        return ""
    return f"; {lower_first(question.also.label)} {' against '.join(amount(m, question.also.unit) for m in medians)}"


def growth_of_choice(
    grid: Grid, scale: Factor, choices: Sequence[Factor], ends: Sequence[Point], times: tuple[float, Interval | None]
) -> str:
    first, last = (level(scale, point.parameters[scale.name]) for point in ends)
    name, label = point_words(choices, ends[0].parameters), lower_first(grid.question.deciding.label)
    return f"{name}: {label} at {last} is {factor_words(*times)} that at {first}"


def of_choice(choices: Sequence[Factor], point: Point, sentence: str) -> str:
    """Return "blocking: Stay at 1 host: 1.39 s", as a part of a list."""
    return f"{point_words(choices, point.parameters)}: {sentence.removesuffix('.')}"


# Steps

SECOND_STEP: Final = "Not enough data yet: a change needs a second step to compare with."


def best_step(grid: Grid, best: Point, equal: Sequence[Point], paid: Advance | None) -> str:
    question, step = grid.question, step_of(grid.question, best)
    reached = f"{_typical(grid, best)}{_share(question, grid.typical(best))}"
    if paid is None:
        return f"No single change measurably paid off. Best so far is step {step}: {reached}."
    times = factor_words(paid.gain, paid.interval)
    gave = f"gave {times} as much as" if question.deciding.higher_is_better else f"was {times} as fast as"
    change = f"the best single change, step {paid.step} ({changed(question, paid)}), {gave} step {paid.over}"
    names = sorted(step_of(question, p) for p in (best, *equal))
    return f"{'Steps' if equal else 'Step'} {_leaders([*map(str, names)])}: {reached}. {first_up(change)}."


def paid(question: ExperimentQuestion, advance: Advance) -> str:
    times = factor_words(advance.gain, advance.interval)
    return f"step {advance.step} ({changed(question, advance)}): {times} step {advance.over}"


def lost(question: ExperimentQuestion, advance: Advance) -> str:
    return f"step {advance.step} ({changed(question, advance)}): only {percent(advance.gain)} of step {advance.over}"


def _share(question: ExperimentQuestion, reached: float) -> str:
    if not question.peak:
        return ""
    if reached > question.peak:
        return ", more than the stated peak: check the stated facts of the cluster"
    return f", {percent(reached / question.peak)} of the peak"


def changed(question: ExperimentQuestion, advance: Advance) -> str:
    """Return the settings that differ from the step that the gain is over."""
    before, after = advance.before.parameters, advance.point.parameters
    differing = [f for f in question.factors if before.get(f.name) != after.get(f.name)]
    named = [(f, level(f, after.get(f.name))) for f in differing[:3]]
    return ", ".join(words if f.plural else f"{f.label} {words}" for f, words in named) or "nothing"


# Loads

NO_LINK: Final = "Not enough data yet: no link was measured with one job and with more."
Ends = tuple[float | None, float | None]
"""Loads that are certainly accepted and refused, if a measured one between them is neither."""


def carried(rows: Sequence[Accepted], open_ends: Sequence[Ends | None], is_arithmetic: bool) -> str:
    """Return the load of each link, then the resource that is used up first."""
    if is_arithmetic:
        used = joined(list(dict.fromkeys(_named(row.first) for row in rows if row.first)))
        return (
            f"No capacity was measured: one job uses up {used}, so n jobs take n times as long. "
            "Add pauses to the jobs or delay to the link."
        )
    loads, resources = dict[str, list[str]](), dict[str, list[str]]()
    for row, ends in zip(rows, open_ends, strict=True):
        link = amount(row.capacity_bps, "bit/s")
        loads.setdefault(_carried(row, ends), []).append(link)
        resources.setdefault(_named(row.first) if row.first else "nothing measured", []).append(link)
    carry = [f"{joined(links)} {'carry' if len(links) > 1 else 'carries'} {jobs}" for jobs, links in loads.items()]
    used_up = [f"{first} on {joined(links)}" if len(resources) > 1 else first for first, links in resources.items()]
    return f"{clauses(carry)}. Used up first: {clauses(used_up)}."


def _carried(row: Accepted, ends: Ends | None) -> str:
    if row.jobs is None:
        return "an unmeasured number of jobs"
    if ends is not None and ends[0] is not None:
        upper = f" and fewer than {significant(ends[1])}" if ends[1] else ""
        return f"at least {plural(ends[0], 'job')}{upper} (not enough data for the exact number)"
    jobs = plural(rounded(row.jobs, 3), "job")
    if row.is_arithmetic:
        return f"{jobs}, by arithmetic"
    if row.between:
        return f"about {jobs} (read between {significant(row.between[0])} and {significant(row.between[1])})"
    return f"at least {jobs}" if row.beyond_measured else jobs


def _named(resource: str) -> str:
    name, comma, rest = resource.partition(",")
    return f"{name if name.startswith('the ') else f'the {name}'}{f' ({rest.strip()})' if comma else ''}"


def use(row: Accepted) -> str:
    link = amount(row.capacity_bps, "bit/s")
    if row.used is None or row.at is None:
        return f"{link}: {row.first or 'no use was measured'}"
    return f"{link}: {row.first or row.most_used} {percent(row.share or 0.0)} in use at {plural(row.at, 'job')}"


# Laws along one factor

FEW_SIZES: Final = f"Not enough data yet: latency and bandwidth need at least {MIN_SIZES} message sizes."
NO_EFFECT_OF_SIZE: Final = (
    "Not enough repetitions: the message size has no measurable effect, so latency and bandwidth are not known."
)
TOO_MUCH_SCATTER: Final = "Latency and bandwidth are not known yet: the times scatter too much."
SECOND_PROBLEM: Final = "Not enough data yet: the growth needs a second value of {factor}."
_TRANSFER: Final[Mapping[str, str]] = {
    "latency": "a message takes {} to start",
    "bandwidth": "long messages reach {}",
    "half-bandwidth size": "half of that rate is reached at {}",
}


def transfer(figures: Sequence[Figure], misfit: float | None) -> str:
    """Return the known parts of the line of transfer times and their misfit."""
    parts = []
    for figure in figures:
        if isinstance(figure.value, float):
            text = f"{amount(figure.value, figure.unit)} ({between(figure.low, figure.high, figure.unit)})"
            parts.append(_TRANSFER[figure.name].format(text))
    off = "" if misfit is None else f" Single sizes deviate from that line by {percent(misfit)}."
    return f"{first_up('; '.join(parts))}.{off}"


def _range(factor: Factor, ends: Sequence[Point]) -> tuple[str, str]:
    """Return both sizes; the last one has the unit of a count: "100", "800 molecules"."""
    first, last = (point.parameters[factor.name] for point in ends)
    return level(factor, first, counted=False), level(factor, last)


def no_growth(question: ExperimentQuestion, factor: Factor, ends: Sequence[Point]) -> str:
    start, end = _range(factor, ends)
    if question.published:
        return f"From {start} to {end} the printed values differ by less than 5 %."
    return f"Not enough repetitions: no growth from {start} to {end} was measured."


def growth(
    question: ExperimentQuestion,
    factor: Factor,
    ends: Sequence[Point],
    times: tuple[float, Interval | None],
    exponent: float | None,
    error: float | None,
    misfit: float | None,
) -> str:
    start, end = _range(factor, ends)
    grows = f"grows {factor_words(*times)}" if times[0] > 1 else f"falls to {percent(times[0])}"
    shape = ""
    if exponent is not None:
        about = "" if error is None else f" ({between(exponent - error, exponent + error, digits=2)})"
        shape = f", as the power {significant(exponent, 2)}{about} of the size"
    if misfit is not None:
        shape = f". No single power law fits: sizes deviate from it by {percent(misfit)}"
    return f"From {start} to {end} {lower_first(question.deciding.label)} {grows}{shape}."
