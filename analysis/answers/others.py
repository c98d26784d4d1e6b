"""The answers of load tests, ladders of steps, message sizes, weak scaling and single points."""

from __future__ import annotations

from math import exp, isfinite

import numpy as np
from scipy import stats

from analysis.answers.answer import Answer, Cause, Figure, Missing, Strength
from analysis.answers.asked import Accepted, Asked
from analysis.answers.network import Grid
from analysis.answers.scale import Curve
from analysis.answers.scatter import pooled
from analysis.answers.wording import factor_words, level, value, with_interval
from analysis.findings.wording import number, percent, quantity
from analysis.statistics import Interval
from analysis.transfer import fit_transfer

_WORTH_A_WARNING = 0.8
"""A step that reaches less of the best one before it is told as what to avoid."""


def _strength(asked: Asked, grid: Grid) -> Strength:
    if asked.published:
        return "printed"
    if grid.claims.scatter is None:
        return "moderate"
    return "firm" if grid.claims.scatter.source == "repetitions" else "moderate"


def answer_load(asked: Asked) -> Answer:
    """How many jobs each link carries by the experiment's rule, and what is used up first: only what reaches what it can give."""
    grid = Grid(asked)
    told = [row for row in asked.accepted if row.jobs is not None or row.first is not None]
    if not told:
        return Answer("load and network", "No link has been measured with one job and with more.", "open")
    groups: dict[str, list[str]] = {}
    for row in told:
        groups.setdefault(_carried(row), []).append(quantity(row.capacity_bps, "bit/s"))
    parts = [f"{_joined(links)} {_verb(links, words)}" for words, links in groups.items()]
    figures = []
    for row in told:
        where = {"link.bandwidth": row.capacity_bps}
        low, high = row.between or (None, None)
        figures.append(Figure("carried", row.jobs, "jobs", low, high, where))
        figures.append(Figure("used up first", row.first, "", where=where))
        figures.append(Figure("use", row.used, "share", where=where))
    causes = tuple(
        Cause(f"{quantity(row.capacity_bps, 'bit/s')}: {_use(row)}", row.used, "share", "envelope") for row in told
    )
    return Answer(
        "load and network",
        "; ".join(parts) + ".",
        _strength(asked, grid),
        tuple(figures),
        causes,
        None,
        grid.claims.scatter,
    )


def _joined(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _verb(links: list[str], words: str) -> str:
    return words.replace("carries", "carry", 1) if len(links) > 1 else words


def _carried(row: Accepted) -> str:
    used = f"{row.first} is used up first" if row.first else "nothing measured is used up"
    if row.jobs is None:
        return f"carries a number of jobs that was not measured; {used}"
    about = "about " if row.between else "at least " if row.beyond_measured else ""
    between = f", read between {number(row.between[0])} and {number(row.between[1])}," if row.between else ""
    return f"carries {about}{number(row.jobs, 3)} job{'' if row.jobs == 1 else 's'}{between} and {used}"


def _use(row: Accepted) -> str:
    if row.used is None or row.at is None:
        return row.first or "no use was measured"
    resource = row.first or row.most_used
    return f"{resource} {percent(min(row.used, 1.0))} in use at {number(row.at)} job{'' if row.at == 1 else 's'}"


def answer_steps(asked: Asked) -> Answer:
    """The best step of a ladder, the best single change, and the share of what could be reached."""
    grid = Grid(asked)
    if len(grid.points) < 2:
        return Answer("steps", "A second step has to finish before a change can be judged.", "open")
    costs = [-c.mean if asked.deciding.higher_is_better else c.mean for c in grid.claims.cells]
    best = costs.index(min(costs))
    changes = _single_changes(asked, grid)
    gain, at, interval, clear = max(changes)
    change = _changed(asked, grid, at)
    share = f", {percent(exp(grid.claims.cells[best].mean) / asked.peak)} of the peak" if asked.peak else ""
    typical = value(asked, exp(grid.claims.cells[best].mean), grid.claims.value(best))
    second = (
        f"; the best single change, step {at + 1} ({change}), gave {factor_words(gain, interval)} as much"
        if clear
        else ""
    )
    if not asked.deciding.higher_is_better and clear:
        second = f"; the best single change, step {at + 1} ({change}), was {factor_words(gain, interval)} as fast"
    strength = _strength(asked, grid)
    if not clear:
        strength, second = "open", "; no single change can be told from scatter"
    figures = [Figure("best step", best + 1)]
    if asked.peak:
        figures.append(Figure("share of peak", exp(grid.claims.cells[best].mean) / asked.peak, "share"))
    for g, i, about, _ in changes:
        low, high = (None, None) if about is None else (about.low, about.high)
        figures.append(Figure("gain", g, "1", low, high, {"step": i + 1}))
    causes = tuple(
        Cause(f"step {i + 1} ({_changed(asked, grid, i)}): {factor_words(g, about)}", g, "1", "ladder")
        for g, i, about, seen in sorted(changes, reverse=True)
        if seen
    )[:4]
    gain, i, about, _ = min(changes)
    if gain < _WORTH_A_WARNING:
        causes += (
            Cause(f"step {i + 1} ({_changed(asked, grid, i)}): only {percent(gain)} of it", gain, "1", "ladder"),
        )
    sentence = f"Step {best + 1} is best: {typical}{share}{second}."
    return Answer("steps", sentence, strength, tuple(figures), causes, None, grid.claims.scatter)


def _single_changes(asked: Asked, grid: Grid) -> list[tuple[float, int, Interval | None, bool]]:
    """(gain, position, its interval, whether measurable) of every step against the best one before it.

    The first step is where one started, often a sample input that nobody would keep: the second is judged alone only where no other is.
    """
    sign = 1 if asked.deciding.higher_is_better else -1
    means = [sign * cell.mean for cell in grid.claims.cells]
    changes = []
    for i in range(1 if len(means) < 3 else 2, len(means)):
        before = max(range(1 if i > 1 else 0, i), key=lambda k: means[k])
        a, b = (i, before) if sign > 0 else (before, i)
        changes.append((exp(means[i] - means[before]), i, grid.claims.ratio(a, b), grid.claims.larger(a, b)))
    return changes


def _changed(asked: Asked, grid: Grid, step: int) -> str:
    before, after = grid.points[step - 1].parameters, grid.points[step].parameters
    changed = [f for f in asked.factors if before.get(f.name) != after.get(f.name)]
    return ", ".join(f"{f.label} {level(f, after.get(f.name))}" for f in changed[:3]) or "nothing"


def answer_messages(asked: Asked) -> Answer:
    """Latency, bandwidth and half-bandwidth size of a sweep over message sizes."""
    grid = Grid(asked)
    factor = asked.of_role("message")[0]
    sizes = [float(p.parameters[factor.name]) for p in grid.points for _ in asked.values(p)]
    times = [v for p in grid.points for v in asked.values(p)]
    try:
        fit = fit_transfer(sizes, times)
    except ValueError as error:
        return Answer("message size", f"Latency and bandwidth cannot be told: it {error}.", "open")
    latency = _with_ends(fit.latency_s, fit.latency_interval_s, "s")
    rate = _with_ends(fit.bandwidth_Bps, fit.bandwidth_interval_Bps, "B/s")
    half = quantity(fit.half_bandwidth_bytes, "B")
    sentence = f"A message takes {latency} to start and then flows at {rate}; half of that rate is reached at {half}."
    figures = (
        Figure("latency", fit.latency_s, "s", *fit.latency_interval_s),
        Figure("bandwidth", fit.bandwidth_Bps, "B/s", *fit.bandwidth_interval_Bps),
        Figure("half-bandwidth size", fit.half_bandwidth_bytes, "B", *fit.half_bandwidth_interval_bytes),
    )
    return Answer("message size", sentence, _strength(asked, grid), figures, (), None, grid.claims.scatter)


def _with_ends(value: float, ends: tuple[float, float], unit: str) -> str:
    high = quantity(ends[1], unit) if isfinite(ends[1]) else "any more"
    return f"{quantity(value, unit)} ({quantity(ends[0], unit)} to {high})"


def answer_growth(asked: Asked) -> Answer:
    """How the metric grows with the size of the problem: the exponent of a power law with its interval."""
    grid = Grid(asked)
    factor = asked.factors[0]
    x = np.log([float(p.parameters[factor.name]) for p in grid.points])
    y = np.array([cell.mean for cell in grid.claims.cells])
    if len(set(x)) < 2:
        return Answer("growth", "A second size has to finish before the growth can be told.", "open")
    slope, error = np.polyfit(x, y, 1)[0], None
    if grid.claims.scatter is not None:
        n = np.array([cell.n for cell in grid.claims.cells])
        spread = float((n * (x - np.average(x, weights=n)) ** 2).sum())
        freedom = grid.claims.scatter.freedom
        error = float(stats.t.ppf(0.975, freedom)) * grid.claims.scatter.sd / float(np.sqrt(spread))
    first, last = (level(factor, grid.points[i].parameters[factor.name]) for i in (int(x.argmin()), int(x.argmax())))
    ratio, interval, clear = grid.worse(int(x.argmax()), int(x.argmin()))
    ends = "" if error is None else f" ({number(slope - error, 2)} to {number(slope + error, 2)})"
    verb = "falls to" if asked.deciding.higher_is_better else "grows"
    words = factor_words(ratio, interval) if not asked.deciding.higher_is_better else percent(1 / ratio)
    sentence = f"From {first} to {last} {asked.deciding.label.lower()} {verb} {words}, as the power {number(slope, 2)}{ends} of the size."
    figures = (
        Figure(
            "exponent",
            float(slope),
            "1",
            None if error is None else slope - error,
            None if error is None else slope + error,
        ),
    )
    if not clear and not asked.published:
        return Answer("growth", f"Too few repetitions: no growth from {first} to {last} can be told.", "open", figures)
    return Answer("growth", sentence, _strength(asked, grid), figures, (), None, grid.claims.scatter)


def answer_weak(asked: Asked) -> Answer:
    """Efficiency at the largest size of a problem that grows with it, and where it falls below 80 %."""
    factor = asked.of_role("scale")[0]
    curve = Curve.of(asked, factor, asked.measured())
    if len(curve.points) < 2:
        return Answer("weak scale", "A second size has to finish before its efficiency can be told.", "open")
    last = len(curve.points) - 1
    rows = [(i, *curve.slowdown(i, 0)) for i in range(1, len(curve.points))]
    _, slow, interval = rows[-1]
    ends = None if interval is None or not interval.low or not interval.high else (1 / interval.high, 1 / interval.low)
    told = f"{percent(1 / slow)}" + (f" ({percent(ends[0])} to {percent(ends[1])})" if ends else "")
    size = level(factor, curve.points[last].parameters[factor.name])
    fallen = next((i for i, s, about in rows if 1 / s < 0.8 and curve.worse(i, 0)), None)
    where = (
        f"; it falls below 80 % at {level(factor, curve.points[fallen].parameters[factor.name])}"
        if fallen
        else "; it stays above 80 %"
    )
    strength: Strength = "printed" if asked.published else "firm" if curve.claims.scatter else "open"
    if fallen is None and (ends is None or ends[0] < 0.7) and not asked.published:
        strength, where = "open", "; whether it stays above 80 % cannot be told yet"
    sentence = f"Efficiency is {told} at {size}{where}."
    figures = tuple(
        Figure("efficiency", 1 / s, "share", where={factor.name: curve.points[i].parameters[factor.name]})
        for i, s, _ in rows
    )
    return Answer("weak scale", sentence, strength, figures, (), None, curve.claims.scatter)


def answer_point(asked: Asked) -> Answer:
    """Median, interval and scatter of a single point."""
    points = asked.measured()
    if not points:
        return Answer("one point", "No trial has finished.", "open")
    values = asked.values(points[0])
    scatter = pooled([values]) or asked.prior
    grid = Grid(asked)
    typical = with_interval(
        quantity(exp(grid.claims.cells[0].mean), asked.deciding.unit), grid.claims.value(0), asked.deciding.unit
    )
    if scatter is None or asked.published:
        seconds = asked.trial_s
        missing = (
            None
            if asked.published
            else Missing("4 more repetitions", ((points[0].parameters, 4),), seconds and 4 * seconds)
        )
        steady = "printed once" if asked.published else "measured once: how steady that is cannot be told"
        return Answer("one point", f"{typical}, {steady}.", "printed" if asked.published else "open", missing=missing)
    n = len(values)
    sentence = f"{typical}, from {n} trial{'s' if n > 1 else ''} that scatter by {percent(scatter.sd)}."
    figures = (
        Figure(asked.deciding.label, exp(grid.claims.cells[0].mean), asked.deciding.unit),
        Figure("scatter", scatter.sd, "share"),
    )
    return Answer("one point", sentence, "firm" if n > 2 else "moderate", figures, (), None, scatter)
