"""How far the model may be believed: every measured link foretold from the trials on the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysis.sensitivity.fit import fit
from analysis.sensitivity.links import Link, Runs
from analysis.sensitivity.needs import Prediction, predict


@dataclass(frozen=True, slots=True)
class Outcome:
    """One link: what the others foretold of it, and what its trials took."""

    prediction: Prediction
    seconds: tuple[float, ...]

    @property
    def error(self) -> float:
        """Predicted / measured - 1, with the geometric mean of the trials."""
        return float(self.prediction.elapsed.value / np.exp(np.mean(np.log(self.seconds))) - 1)

    @property
    def inside(self) -> int:
        """Trials within the interval."""
        ends = self.prediction.elapsed.interval
        return sum((ends.low or 0.0) <= value <= (ends.high or np.inf) for value in self.seconds)


def held_out(runs: Runs, *, level: float = 0.9) -> list[Outcome]:
    """Return the outcome of every link, in the order of delay and rate; links without which there is no model are left out."""
    columns = np.stack([runs.delay, runs.inverse_rate, runs.loss])
    links, members = np.unique(columns, axis=1, return_inverse=True)
    members = members.reshape(-1)
    outcomes = []
    if links.shape[1] < 2:
        return []
    for number, (delay, inverse_rate, loss) in enumerate(links.T):
        own = members == number
        try:
            fitted = fit(Runs(*(column[~own] for column in (runs.delay, runs.inverse_rate, runs.loss, runs.elapsed))))
        except ValueError:  # the others are too few, or all one link
            continue
        link = Link(float(delay), float(1 / inverse_rate), float(loss))
        outcomes.append(Outcome(predict(fitted, link, level=level), tuple(map(float, runs.elapsed[own]))))
    return outcomes
