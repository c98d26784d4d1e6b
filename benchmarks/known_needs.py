"""Known messages and bytes on the critical path, as found on real links.

RANKWIRE_VAR=DIR python -m benchmarks.known_needs

DIR is an installation with studies of a ring or a ping-pong over links (`ring-network-quick`, `pingpong-network-quick`; take a copy: its
tables are brought up to date). Messages and bytes on the critical path are compared with those by construction, and the bound on
delay with the delay at which so many messages take a tenth of the time on the mildest link.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from analysis.conclusions.observations.needs import FittedNetwork, bursts_of
from analysis.sensitivity import Quantity, needs, quantity, sent
from analysis.sensitivity.needs import TOLERATED
from benchmarks.predictions import installation
from tests.known_needs import known_needs

WITHIN: Final = {"messages": 0.10, "bytes": 0.15, "delay bound": 0.25}
_AIMED: Final = "ring"
_WORKLOADS: Final = (_AIMED, "pingpong")
_ROW: Final = "| {:<36} | {:<14} | {:>10} | {:>10} | {:>24} | {:>7} |"


@dataclass(frozen=True)
class Found:
    """One quantity of one study."""

    workload: str
    study: str
    name: str
    known: float
    measured: Quantity

    @property
    def error(self) -> float:
        return self.measured.value / self.known - 1

    @property
    def is_held(self) -> bool:
        """Return True if the interval contains the known value."""
        ends = self.measured.interval
        return (ends.low or 0.0) <= self.known <= (ends.high or float("inf"))


def main() -> int:
    with installation():
        rows = list(studies())
    print(_ROW.format("study", "quantity", "known", "found", "95 % interval", "error"))
    print(_ROW.format(*["---"] * 6))
    for row in rows:
        ends = row.measured.interval
        between = f"{ends.low or 0:.5g} to {ends.high or 0:.5g}"
        values = (f"{row.known:.5g}", f"{row.measured.value:.5g}", between, f"{row.error:+.1%}")
        print(_ROW.format(row.study[:36], row.name, *values))
    rings = [row for row in rows if row.workload == _AIMED]
    if not rings:
        print("no study of a ring over links")
    good = bool(rings) and all(abs(row.error) <= WITHIN[row.name] for row in rings)
    aims = ", ".join(f"{name} {share:.0%}" for name, share in WITHIN.items())
    print(f"aim: those of the ring within {aims}: {'met' if good else 'missed'}")
    print(f"intervals that hold what is known: {sum(row.is_held for row in rows)} of {len(rows)}")
    return 0 if good else 1


def studies() -> Iterator[Found]:
    """Return the results of studies of known programs, oldest first."""
    from experiments.models import Experiment
    from experiments.selectors.network import network_study_of

    for experiment in Experiment.objects.filter(published=False, workload__in=_WORKLOADS).order_by("pk"):
        for fitted in network_study_of(experiment).fits:
            yield from found(experiment.workload, f"{experiment.slug} {fitted.at}".strip(), fitted)


def found(workload: str, name: str, fitted: FittedNetwork) -> Iterator[Found]:
    """Return the three quantities of one model."""
    known = known_needs(workload, fitted.points[0].parameters)
    fit, here = fitted.fit, fitted.here
    bounds = needs(fit, here)
    yield Found(workload, name, "messages", known.messages, quantity(fit.draws.messages))
    yield Found(workload, name, "bytes", known.frame_bytes, sent(fit, here, bursts_of(fitted.points)))
    if bounds.most_delay is not None:
        most_s = max(here.delay_s, fit.hidden_delay.value) + TOLERATED * bounds.elapsed.value / known.messages
        yield Found(workload, name, "delay bound", most_s, bounds.most_delay)


if __name__ == "__main__":
    sys.exit(main())
