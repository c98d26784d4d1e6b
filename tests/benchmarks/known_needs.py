"""Are messages and bytes that are known beforehand found on real links? RANKWIRE_VAR=DIR python -m tests.benchmarks.known_needs

DIR is an installation with studies of a ring or a ping-pong over links (`ring-network-quick`, `pingpong-network-quick`; take a copy: its
tables are brought up to date). Messages in a row (m) and bytes in a row (V) of each are held against those by construction.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from analysis.sensitivity import Quantity, quantity
from tests.benchmarks.predictions import installation
from tests.known_needs import known_needs

WITHIN: Final = 0.10
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
    told: Quantity

    @property
    def error(self) -> float:
        return self.told.value / self.known - 1


def main() -> int:
    with installation():
        rows = list(studies())
    print(_ROW.format("study", "quantity", "known", "found", "95 % interval", "error"))
    print(_ROW.format(*["---"] * 6))
    for row in rows:
        ends = row.told.interval
        between = f"{ends.low or 0:.5g} to {ends.high or 0:.5g}"
        values = (f"{row.known:.5g}", f"{row.told.value:.5g}", between, f"{row.error:+.1%}")
        print(_ROW.format(row.study[:36], row.name, *values))
    rings = [row for row in rows if row.workload == _AIMED]
    if not rings:
        print("no study of a ring over links")
    good = bool(rings) and all(abs(row.error) <= WITHIN for row in rings)
    print(f"aim: those of the ring within {WITHIN:.0%}: {'met' if good else 'missed'}")
    return 0 if good else 1


def studies() -> Iterator[Found]:
    """What the studies of known programs found, oldest first."""
    from experiments.models import Experiment
    from experiments.selectors.network import network_study_of

    for experiment in Experiment.objects.filter(published=False, workload__in=_WORKLOADS).order_by("pk"):
        for fitted in network_study_of(experiment).fits:
            known = known_needs(experiment.workload, fitted.points[0].parameters)
            draws, name = fitted.fit.draws, f"{experiment.slug} {fitted.at}".strip()
            yield Found(experiment.workload, name, "messages", known.messages, quantity(draws.messages))
            yield Found(experiment.workload, name, "bytes", known.frame_bytes, quantity(draws.bits / 8))


if __name__ == "__main__":
    sys.exit(main())
