"""Fitting the model to trials on several links.

The bends make it a least-squares problem with corners, for which resampling few trials gives intervals that are too narrow. Given
the bends it is linear. So the bends run over a grid, the linear parts are solved exactly, and parameter sets are drawn by how well
they explain the trials: every cell of the grid by its marginal likelihood, the coefficients by their joint t distribution (Box and
Tiao 1973, section 2.7), kept if no part is negative. Residuals are those of logarithms: 5 % of a long run is more seconds than
5 % of a short one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
import scipy  # special is loaded when first used; fdtrc is f.sf without its checks

from analysis.sensitivity.model import DELAY_ERROR_S, RATE_ERROR, Draws, Quantity, Runs, quantity
from analysis.statistics.summary import Floats

DRAWS: Final = 2000
FEWEST: Final = 3
"""Levels of a factor from which on a bend is identifiable."""
_BENDS: Final = 24
_ROUNDS: Final = 4
"""Linearisations of the logarithm, each about the fit of the one before."""
_SEED: Final = 2007
_CLAIM: Final = 0.05
_POSSIBLE: Final = 1e-5
"""Bends less likely than this are not looked at more closely."""
_ATTEMPTS: Final = 20
_STRAIGHT: Final = np.zeros(1)
_LEAST_SCATTER: Final = 1e-3
"""Least scatter of the logarithm of a trial, relative to the errors of certificates."""


@dataclass(frozen=True, slots=True)
class Fit:
    """The model of one program at one size, and its significant parts."""

    draws: Draws
    runs: Runs
    delay_matters: bool
    rate_matters: bool
    delay_bends: bool
    """True if the hidden part of the delay is significant."""
    rate_bends: bool
    freedom: int

    @property
    def hidden_delay(self) -> Quantity:
        """Return the hidden delay, seconds one way; from zero without a bend."""
        return _from_zero(quantity(self.draws.hidden_delay), bends=self.delay_bends)

    @property
    def hidden_inverse_rate(self) -> Quantity:
        """Return the hidden inverse rate, seconds per bit; from zero without a bend."""
        return _from_zero(quantity(self.draws.hidden_inverse_rate), bends=self.rate_bends)


def _from_zero(drawn: Quantity, *, bends: bool) -> Quantity:
    return drawn if bends else replace(drawn, interval=replace(drawn.interval, low=0.0))


@dataclass(frozen=True, slots=True)
class _Links:
    """The distinct links of n trials, shape (m,): all that the likelihood needs.

    Trials on one link have the same row of the design, and share the error of its certificate. So their mean has a weight, and their
    deviations from it are independent of the model.
    """

    at: Runs
    """A row per link, with the geometric mean of its trials' times."""
    counts: Floats
    within: float
    """Sum of the squared deviations of log times from the means of their links."""
    trials: int

    @classmethod
    def of(cls, runs: Runs) -> _Links:
        links = np.stack([runs.delay, runs.inverse_rate, runs.loss])
        distinct, members = np.unique(links, axis=1, return_inverse=True)
        members, logs = members.reshape(-1), np.log(runs.elapsed)
        counts = np.bincount(members).astype(np.float64)
        means = np.bincount(members, weights=logs) / counts
        deviations = logs - means[members]
        delay, inverse_rate, loss = distinct
        return cls(Runs(delay, inverse_rate, loss, np.exp(means)), counts, float(deviations @ deviations), len(runs))


@dataclass(frozen=True, slots=True)
class _Cells:
    """The linear models of all pairs of bends: c cells, m links, p coefficients."""

    bends: Floats
    """Shape (c, 2): delay in seconds, inverse rate in seconds per bit."""
    coefficients: Floats
    """Shape (c, p)."""
    residual_sums: Floats
    roots: Floats
    """Shape (c, p, p): upper triangular R of each weighted design; coefficients scatter with sigma R^-1."""
    log_priors: Floats
    """Shape (c,)."""

    @property
    def best(self) -> int:
        return int(self.residual_sums.argmin())

    def chances(self, freedom: int, trials: int) -> Floats:
        """Return the marginal likelihood of each pair of bends, shape (c,), sum 1."""
        sums = np.maximum(self.residual_sums, 1e-18 * trials)  # an exact fit has no finite likelihood
        log_roots = np.log(np.abs(np.diagonal(self.roots, axis1=1, axis2=2))).sum(axis=1)
        weights = self.log_priors - freedom / 2 * np.log(sums) - log_roots
        chances = np.exp(weights - weights.max())
        return np.asarray(chances / chances.sum())


def fit(runs: Runs) -> Fit:
    """Fit the model of a program's time over delay, rate and loss.

    Parameters
    ----------
    runs
        Trials on several links.

    Returns
    -------
    Fit
        With plausible parameter sets, shape (draws,) each.

    Raises
    ------
    ValueError
        For too few trials or a single link.
    """
    if not len(runs):
        raise ValueError("there are no trials")
    parts, links = _Parts.of(runs), _Links.of(runs)
    if len(runs) <= parts.count + 2:
        raise ValueError(f"{len(runs)} trials are too few for {parts.count} coefficients and their scatter")
    if parts.count == 1:
        raise ValueError("all trials ran on the same link")
    if len(links.at) < parts.count:
        raise ValueError(f"{len(links.at)} links are too few for {parts.count} coefficients")
    centre, weights = links.at.elapsed, links.counts
    for _ in range(_ROUNDS):
        cells = _cells(parts, links, centre, weights)
        predicted = parts.design(links.at, cells.bends[cells.best]) @ cells.coefficients[cells.best]
        centre = np.maximum(predicted, 0.2 * centre)
        weights = _weights(parts, links, centre, cells)
    cells = _cells(parts.closer(cells, len(runs)), links, centre, weights)
    return _judged(parts, runs, links, centre, cells, weights)


def _weights(parts: _Parts, links: _Links, centre: Floats, cells: _Cells) -> Floats:
    """Return the weight of each link's mean: its trials have one error in common.

    Trials on one link share the error of its certificate: seconds of messages x error of the delay, and of bytes x error of the rate.
    """
    freedom, at, best = links.trials - len(links.at), links.at, cells.best
    variance = links.within / freedom if freedom else cells.residual_sums.min() / max(1, links.trials - parts.count)
    columns = dict(zip(parts.names, cells.coefficients[best], strict=True))
    delay_bend, rate_bend = cells.bends[best]
    per_delay = max(0.0, columns.get("delay", 0.0)) / (at.delay.max() - delay_bend or 1.0)
    per_rate = max(0.0, columns.get("rate", 0.0)) / (at.inverse_rate.max() - rate_bend or 1.0)
    of_delay = per_delay * (at.delay > delay_bend) * DELAY_ERROR_S / centre
    of_rate = per_rate * (at.inverse_rate > rate_bend) * at.inverse_rate * RATE_ERROR / centre
    shared = (of_delay**2 + of_rate**2) / max(variance, _LEAST_SCATTER**2)
    return np.asarray(links.counts / (1 + links.counts * shared))


@dataclass(frozen=True, slots=True)
class _Parts:
    """Identifiable parts of the model, scaled to the effect at the harshest level."""

    delay: bool
    rate: bool
    loss: bool
    loss_and_delay: bool
    delay_bends: Floats
    rate_bends: Floats
    delay_range: float
    rate_range: float
    """Ends of the first grids of bends, which begin at zero."""

    @classmethod
    def of(cls, runs: Runs) -> _Parts:
        delays, rates, losses = (_levels(column) for column in (runs.delay, runs.inverse_rate, runs.loss))
        lossy = runs.loss > losses[0]
        delay_bends, rate_bends = _bends(delays), _bends(rates)
        return cls(
            delay=len(delays) > 1,
            rate=len(rates) > 1,
            loss=len(losses) > 1,
            loss_and_delay=len(losses) > 1 and len(_levels(runs.delay[lossy])) > 1,
            delay_bends=delay_bends,
            rate_bends=rate_bends,
            delay_range=float(delay_bends[-1]),
            rate_range=float(rate_bends[-1]),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Return the columns of the design."""
        there = (self.delay, self.rate, self.loss, self.loss_and_delay)
        names = ("delay", "rate", "loss", "loss and delay")
        return ("base", *(name for name, is_there in zip(names, there, strict=True) if is_there))

    @property
    def count(self) -> int:
        return len(self.names)

    def log_priors(self, bends: Floats) -> Floats:
        """Return the logarithm of each cell's prior, shape (c,).

        No bend is as likely as all bends together.
        """
        priors = np.zeros(len(bends))
        grids = ((self.delay_bends, self.delay_range), (self.rate_bends, self.rate_range))
        for index, (grid, reach) in enumerate(grids):
            if len(grid) > 1:
                priors += np.where(bends[:, index] == 0, np.log(reach / (grid[1] - grid[0])), 0.0)
        return priors

    @property
    def freedom_of_bends(self) -> int:
        return (len(self.delay_bends) > 1) + (len(self.rate_bends) > 1)

    def design(self, runs: Runs, bends: Floats) -> Floats:
        """Return the design of every pair of bends, shape (..., n, p)."""
        bends = np.asarray(bends)[..., None, :]
        shape = (*bends.shape[:-2], len(runs))
        columns = [np.ones(shape)]
        if self.delay:
            columns.append(_ramp(runs.delay, bends[..., 0]))
        if self.rate:
            columns.append(_ramp(runs.inverse_rate, bends[..., 1]))
        if self.loss:
            columns.append(np.broadcast_to(runs.loss / runs.loss.max(), shape))
        if self.loss_and_delay:
            both = runs.loss * runs.delay
            columns.append(np.broadcast_to(both / both.max(), shape))
        return np.stack(columns, axis=-1)

    def closer(self, cells: _Cells, trials: int) -> _Parts:
        """Return a finer grid over the possible bends."""
        possible = cells.bends[cells.chances(trials - self.count, trials) > _POSSIBLE]
        return replace(
            self,
            delay_bends=_between(self.delay_bends, possible[:, 0]),
            rate_bends=_between(self.rate_bends, possible[:, 1]),
        )

    def without(self, part: Literal["delay", "rate", "delay_bends", "rate_bends"]) -> _Parts:
        if part == "delay":
            return replace(self, delay=False, delay_bends=_STRAIGHT)
        if part == "rate":
            return replace(self, rate=False, rate_bends=_STRAIGHT)
        return replace(self, delay_bends=_STRAIGHT) if part == "delay_bends" else replace(self, rate_bends=_STRAIGHT)


def _levels(column: Floats) -> Floats:
    """Return distinct values; certified values within 3 % of the range are one level."""
    ordered = np.unique(column)
    span = float(ordered[-1] - ordered[0])
    return np.asarray(ordered[np.concatenate([[True], np.diff(ordered) > 0.03 * span])]) if span else ordered[:1]


def _bends(levels: Floats) -> Floats:
    """Return possible bends, up to the last level but one."""
    return np.linspace(0, levels[-2], _BENDS) if len(levels) >= FEWEST else _STRAIGHT


def _between(bends: Floats, possible: Floats) -> Floats:
    if len(bends) == 1:
        return bends
    step = bends[1] - bends[0]
    return np.linspace(max(0, possible.min() - step), min(bends[-1], possible.max() + step), _BENDS)


def _ramp(column: Floats, bend: Floats) -> Floats:
    return np.asarray(np.maximum(0, column - bend) / (column.max() - bend))


def _cells(parts: _Parts, links: _Links, centre: Floats, weights: Floats) -> _Cells:
    """Return the linear models of all bends, linearised about ``centre``."""
    bends = np.stack(np.meshgrid(parts.delay_bends, parts.rate_bends, indexing="ij"), axis=-1).reshape(-1, 2)
    roots = np.sqrt(weights)
    response = roots * (1 + np.log(links.at.elapsed / centre))
    q, r = np.linalg.qr(parts.design(links.at, bends) * (roots / centre)[:, None])
    diagonal = np.abs(np.diagonal(r, axis1=1, axis2=2))
    well_posed = diagonal.min(axis=1) > 1e-9 * diagonal.max(axis=1)
    bends, q, r = bends[well_posed], q[well_posed], r[well_posed]
    along = np.einsum("cmp,m->cp", q, response)
    residuals = response - np.einsum("cmp,cp->cm", q, along)
    coefficients = np.linalg.solve(r, along[..., None])[..., 0]
    sums = links.within + np.einsum("cm,cm->c", residuals, residuals)
    return _Cells(bends, coefficients, sums, r, parts.log_priors(bends))


def _judged(parts: _Parts, runs: Runs, links: _Links, centre: Floats, cells: _Cells, weights: Floats) -> Fit:
    best = float(cells.residual_sums.min())
    freedom = max(1, len(runs) - parts.count - parts.freedom_of_bends)

    def matters(part: Literal["delay", "rate", "delay_bends", "rate_bends"], spent: int) -> bool:
        less = float(_cells(parts.without(part), links, centre, weights).residual_sums.min())
        gain = (less - best) / spent / max(best / freedom, 1e-18)
        return bool(scipy.special.fdtrc(spent, freedom, max(gain, 0.0)) < _CLAIM)

    bent_delay, bent_rate = len(parts.delay_bends) > 1, len(parts.rate_bends) > 1
    return Fit(
        draws=_draws(parts, runs, cells),
        runs=runs,
        delay_matters=parts.delay and matters("delay", 1 + bent_delay),
        rate_matters=parts.rate and matters("rate", 1 + bent_rate),
        delay_bends=bent_delay and matters("delay_bends", 1),
        rate_bends=bent_rate and matters("rate_bends", 1),
        freedom=freedom,
    )


def _draws(parts: _Parts, runs: Runs, cells: _Cells) -> Draws:
    """Draw parameter sets by their likelihood, without negative parts."""
    random = np.random.default_rng(_SEED)
    freedom = len(runs) - parts.count
    chances = cells.chances(freedom, len(runs))
    accepted: list[Floats] = []
    for _ in range(_ATTEMPTS):
        chosen = random.choice(len(chances), size=DRAWS, p=chances)
        sigma = np.sqrt(cells.residual_sums[chosen] / random.chisquare(freedom, size=DRAWS))
        scattered = np.linalg.solve(cells.roots[chosen], random.standard_normal((DRAWS, parts.count, 1)))[..., 0]
        coefficients = cells.coefficients[chosen] + sigma[:, None] * scattered
        drawn = np.column_stack([coefficients, cells.bends[chosen], sigma])
        accepted.append(drawn[(coefficients >= 0).all(axis=1)])
        if sum(map(len, accepted)) >= DRAWS:
            break
    rows = np.concatenate(accepted)[:DRAWS]
    if len(rows) < DRAWS // 10:  # times fall where they should grow: that part has no effect then
        rows = np.column_stack([np.maximum(coefficients, 0), cells.bends[chosen], sigma])
    return _as_draws(parts, runs, rows)


def _as_draws(parts: _Parts, runs: Runs, rows: Floats) -> Draws:
    columns = iter(rows.T)
    base, nothing = next(columns), np.zeros(len(rows))
    delay, rate = (next(columns) if there else nothing for there in (parts.delay, parts.rate))
    loss, both = (next(columns) if there else nothing for there in (parts.loss, parts.loss_and_delay))
    delay_bend, rate_bend, sigma = columns
    return Draws(
        base=base,
        messages=delay / (runs.delay.max() - delay_bend) if parts.delay else nothing,
        hidden_delay=delay_bend,
        bits=rate / (runs.inverse_rate.max() - rate_bend) if parts.rate else nothing,
        hidden_inverse_rate=rate_bend,
        loss_timeouts=loss / runs.loss.max() if parts.loss else nothing,
        loss_round_trips=both / (runs.loss * runs.delay).max() if parts.loss_and_delay else nothing,
        scatter=sigma,
    )
