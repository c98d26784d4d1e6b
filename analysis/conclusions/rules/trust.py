"""Rules about how far to believe: captures, links, repetitions, and rows that disagree with themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from analysis.conclusions.observations.reading import Reading
from analysis.conclusions.rules.registry import Evidence, Finding, rule
from analysis.conclusions.wording import percent
from analysis.numbers import amount, plural, significant
from analysis.statistics import MINIMUM_REPETITIONS, outliers, repetitions_needed
from analysis.trust_level import FLAGGED

_DISAGREEMENT: Final = 0.01
_NOISY: Final = 0.1


@rule
def degraded_capture(reading: Reading) -> Iterator[Finding]:
    """Captures that are not good, with the reasons."""
    bad = [(x, sum(n for level, n in p.trust.items() if level in FLAGGED), p) for x, p in reading.points]
    bad = [(x, n, p) for x, n, p in bad if n]
    if not bad:
        return
    total, reasons = sum(n for _, n, _ in bad), list(dict.fromkeys(r for _, _, p in bad for r in p.trust_reasons))
    why = f" ({'; '.join(reasons[:2])})" if reasons else ""
    yield Finding(
        "degraded_capture",
        "trust",
        f"{plural(total, 'capture')}{reading.at(*(p for _, _, p in bad))} cannot be trusted fully{why}.",
        "strong",
        tuple(Evidence("Captures not good", n, "1", "trust", x) for x, n, _ in bad),
        "packets",
        "Their traffic is in none of these figures; their times are. Fix what the reasons name, then run them again.",
    )


@rule
def degraded_link(reading: Reading) -> Iterator[Finding]:
    """Links that were not what was asked for."""
    bad = [(x, p) for x, p in reading.points if p.link_warnings]
    if not bad:
        return
    words = list(dict.fromkeys(w for _, p in bad for w in p.link_warnings))
    yield Finding(
        "degraded_link",
        "trust",
        f"The link was not the one asked for{reading.at(*(p for _, p in bad))}: {'; '.join(words[:2])}.",
        "strong",
        tuple(Evidence("Link warnings", len(p.link_warnings), "1", "", x) for x, p in bad),
        "link",
        "Draw x at the achieved values, or repeat these trials on a link that passes its certificate.",
    )


@rule
def few_repetitions(reading: Reading) -> Iterator[Finding]:
    """Too few trials to tell."""
    if reading.printed:
        return
    metric = reading.study.time_metric
    few = [t for t in reading.times if len(t.point.array(metric)) < MINIMUM_REPETITIONS]
    if not few:
        return
    fewest = min(len(t.point.array(metric)) for t in few)
    yield Finding(
        "few_repetitions",
        "trust",
        f"{plural(fewest, 'repetition')}{reading.at(*(t.point for t in few))} "
        f"{'is' if fewest == 1 else 'are'} too few to tell a difference from chance.",
        "strong",
        tuple(Evidence("Repetitions", len(t.point.array(metric)), "1", metric, t.size) for t in few),
        "time",
        f"Run at least {MINIMUM_REPETITIONS} repetitions of every configuration; five give usable intervals.",
    )


@rule
def noisy(reading: Reading) -> Iterator[Finding]:
    """Repetitions that scatter widely, and how many would be needed."""
    metric = reading.study.time_metric
    spreads = [
        (t, float(values.std(ddof=1) / values.mean()))
        for t in reading.times
        if len(values := t.point.array(metric)) > 1 and values.mean() > 0
    ]
    wide = [(t, s) for t, s in spreads if s > _NOISY]
    if not wide:
        return
    worst, spread = max(wide, key=lambda item: item[1])
    needed = repetitions_needed(worst.point.values[metric]) or 0
    yield Finding(
        "noisy",
        "trust",
        f"Elapsed time scatters by {percent(spread)} (standard deviation) between repetitions{reading.at(worst.point)}.",
        "moderate",
        (
            *(Evidence("Standard deviation", s, "share", metric, t.size) for t, s in spreads),
            Evidence("Repetitions for an interval of ±5 %", needed, "1", "", worst.size),
        ),
        "time",
        f"About {plural(needed, 'repetition')} would bring its 95 % interval to ±5 %; look first for what else runs on the machine.",
    )


@rule
def outlying_trials(reading: Reading) -> Iterator[Finding]:
    """Repetitions that stand apart; they are counted all the same."""
    metric = reading.study.time_metric
    outlying = [(t, t.point.values[metric][i]) for t in reading.times for i in outliers(t.point.values[metric])]
    if not outlying:
        return
    place, value = max(outlying, key=lambda item: abs(item[1] / item[0].median - 1))
    rest = f" ({len(outlying) - 1} more elsewhere)" if len(outlying) > 1 else ""
    yield Finding(
        "outlying_trials",
        "trust",
        f"A trial{reading.at(place.point)} took {amount(value, 's')}, "
        f"far from the median of {amount(place.median, 's')}{rest}; it is counted.",
        "moderate",
        tuple(Evidence("Outlying trial", v, "s", metric, t.size) for t, v in outlying),
        "time",
        "Open the trial: its host load, retransmissions and trust show whether it belongs.",
        "Grubbs' test at 1 % below ten repetitions, a modified z-score above 3.5 from ten on.",
    )


@rule
def left_out(reading: Reading) -> Iterator[Finding]:
    """Failed, lost and cancelled trials, which no figure contains."""
    failed = [(x, p.lost, p) for x, p in reading.points if p.lost]
    if not failed:
        return
    total = sum(n for _, n, _ in failed)
    yield Finding(
        "left_out",
        "trust",
        f"{plural(total, 'trial')}{reading.at(*(p for _, _, p in failed))} "
        f"{'is' if total == 1 else 'are'} not counted: failed, lost or cancelled.",
        "strong",
        tuple(Evidence("Trials not counted", n, "1", "", x) for x, n, _ in failed),
        "time",
        "Read their logs: if they fail more often at large sizes, the counted ones are a selection.",
    )


@rule
def rows_disagree(reading: Reading) -> Iterator[Finding]:
    """Packet intensity against inter-arrival time: one is the inverse of the other.

    In print only: of an own trial they are inverses by definition, and medians over trials need not be.
    """
    if not reading.printed:
        return
    for place in reading.series("interarrival_mean_s"):
        intensity = place.point.median("packet_intensity_pps")
        if not intensity or not place.median:
            continue
        implied = 1 / place.median
        apart = abs(implied / intensity - 1)
        if apart > _DISAGREEMENT:
            yield Finding(
                "rows_disagree",
                "trust",
                f"The {significant(place.size)}-{reading.axis.removesuffix('s')} row's packet intensity and inter-arrival time disagree "
                f"by {percent(apart)}: "
                f"1 / {amount(place.median, 's')} is {amount(implied, 'packets/s')}, the table says {significant(intensity)}.",
                reading.strength(),
                (
                    Evidence("Packet intensity", intensity, "packets/s", "packet_intensity_pps", place.size),
                    Evidence("1 / mean inter-arrival", implied, "packets/s", "interarrival_mean_s", place.size),
                    *_duration_evidence(place.point.median("packets"), intensity, place.median, place.size),
                ),
                "interarrival",
                "Compare both with packets / elapsed time; the one that agrees is the likelier.",
            )


def _duration_evidence(packets: float | None, intensity: float, gap_s: float, size: float) -> tuple[Evidence, ...]:
    if not packets:
        return ()
    return (
        Evidence("Packets / intensity", packets / intensity, "s", "", size),
        Evidence("Packets x inter-arrival", packets * gap_s, "s", "", size),
    )
