"""Rules about trust: captures, links, repetitions and contradictory rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from analysis.conclusions.observations.reading import Observation, Reading
from analysis.conclusions.observations.repetitions import ASSURANCES
from analysis.conclusions.rules.registry import Finding, finding, rule
from analysis.conclusions.wording import amount, percent
from analysis.numbers import grouped, plural, significant
from analysis.statistics import repetitions_needed
from analysis.trust_level import FLAGGED

_DISAGREEMENT: Final = 0.01
_NOISY: Final = 0.1
_MOST_REASONS: Final = 2
_MANY: Final = 100
"""Repetitions from which on no exact number is worth stating."""


@rule
def degraded_capture(reading: Reading) -> Iterator[Finding]:
    """Report captures that are not good, with the reasons."""
    counts = [(x, sum(n for level, n in p.trust.items() if level in FLAGGED), p) for x, p in reading.points]
    bad = [(x, n, p) for x, n, p in counts if n]
    if not bad:
        return
    reasons = list(dict.fromkeys(r for _, _, p in bad for r in p.trust_reasons))
    kinds: dict[str, str] = {}
    for reason in reasons:  # those that differ in their numbers alone are one
        kinds.setdefault(re.sub(r"[\d.\s]+", "", reason), reason)
    words = "; another: ".join([*kinds.values()][:_MOST_REASONS])
    words = f"one: {words}" if len(reasons) > 1 else words
    total = sum(n for _, n, _ in bad)
    yield finding(
        "degraded_capture",
        "strong",
        (Observation("Captures not good", n, "1", "trust", x) for x, n, _ in bad),
        captures=plural(total, "capture"),
        are="is" if total == 1 else "are",
        at=reading.at(*(p for _, _, p in bad)),
        why=f" ({words})" if words else "",
    )


@rule
def degraded_link(reading: Reading) -> Iterator[Finding]:
    """Report links that differ from their specification."""
    bad = [(x, p) for x, p in reading.points if p.link_warnings]
    if bad:
        warnings = list(dict.fromkeys(w for _, p in bad for w in p.link_warnings))
        yield finding(
            "degraded_link",
            "strong",
            (Observation("Link warnings", len(p.link_warnings), "1", "", x) for x, p in bad),
            at=reading.at(*(p for _, p in bad)),
            warnings="; ".join(warnings[:2]),
        )


@rule
def noisy(reading: Reading) -> Iterator[Finding]:
    """Report repetitions that scatter widely, and how many are needed."""
    metric = reading.study.time_metric
    spreads = [
        (t, float(values.std(ddof=1) / values.mean()))
        for t in reading.times
        if len(values := t.point.array(metric)) > 1 and values.mean() > 0
    ]
    worst, spread = max(spreads, key=lambda item: item[1], default=(None, 0.0))
    if worst is None or spread <= _NOISY:
        return
    low, needed = (repetitions_needed(worst.point.values[metric], assurance=a) or 0 for a in ASSURANCES)
    yield finding(
        "noisy",
        "moderate",
        (
            *(Observation("Standard deviation", s, "share", metric, t.size) for t, s in spreads),
            Observation("Repetitions for an interval of ±5 %", needed, "1", "", worst.size),
        ),
        spread=percent(spread),
        at=reading.at(worst.point),
        needed=f"{grouped(low)} to {plural(needed, 'repetition')}" if needed <= _MANY else f"over {_MANY} repetitions",
    )


@rule
def left_out(reading: Reading) -> Iterator[Finding]:
    """Report failed, lost and cancelled trials, which are excluded."""
    failed = [(x, p.lost, p) for x, p in reading.points if p.lost]
    if failed:
        total = sum(n for _, n, _ in failed)
        yield finding(
            "left_out",
            "strong",
            (Observation("Excluded trials", n, "1", "", x) for x, n, _ in failed),
            trials=plural(total, "trial"),
            at=reading.at(*(p for _, _, p in failed)),
            are="is" if total == 1 else "are",
        )


@rule
def rows_disagree(reading: Reading) -> Iterator[Finding]:
    """Report printed packet intensity that contradicts the inter-arrival time.

    Printed values only: measured ones are inverses by definition, and their medians need not be.
    """
    for entry in reading.series("interarrival_mean_s") if reading.printed else ():
        intensity = entry.point.median("packet_intensity_pps")
        if not intensity or not entry.median:
            continue
        implied, packets = 1 / entry.median, entry.point.median("packets")
        difference = abs(implied / intensity - 1)
        if difference <= _DISAGREEMENT:
            continue
        durations = (
            Observation("Packets / intensity", (packets or 0.0) / intensity, "s", "", entry.size),
            Observation("Packets x inter-arrival", (packets or 0.0) * entry.median, "s", "", entry.size),
        )
        yield finding(
            "rows_disagree",
            reading.strength(),
            (
                Observation("Packet intensity", intensity, "packets/s", "packet_intensity_pps", entry.size),
                Observation("1 / mean inter-arrival", implied, "packets/s", "interarrival_mean_s", entry.size),
                *(durations if packets else ()),
            ),
            row=f"{significant(entry.size)}-{reading.axis.removesuffix('s')}",
            apart=percent(difference),
            gap=amount(entry.median, "s"),
            implied=amount(implied, "packets/s"),
            intensity=amount(intensity, ""),
        )
