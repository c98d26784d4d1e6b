"""Rules about the number of hosts: computing, waiting, steps and predictions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from analysis.conclusions.observations.reading import Observation, Reading, SizeEntry
from analysis.conclusions.rules.registry import Finding, finding, rule
from analysis.conclusions.sentences.findings import BASE, EXTRAPOLATED, SHARED, WAITING
from analysis.conclusions.wording import amount, between, percent, sizes, times, whole_size, whole_sizes
from analysis.numbers import significant

_LEAST_RATIO: Final = 1.1


def _cpu_falls(reading: Reading, first: SizeEntry, last: SizeEntry) -> bool:
    metric = reading.study.cpu_metric
    if metric is None or not reading.moves(metric) or last.median >= first.median:
        return False
    return metric != "cpu_mean_rank_s" or reading.larger(metric, first, last)


@rule
def cpu_scaling(reading: Reading) -> Iterator[Finding]:
    """Report by how much CPU time per rank falls over all sizes."""
    if reading.study.kind == "weak" or len(reading.cpu) < 2:
        return
    first, last = reading.cpu[0], reading.cpu[-1]
    ratio = first.median / last.median
    if ratio < _LEAST_RATIO or not _cpu_falls(reading, first, last):
        return
    yield finding(
        "cpu_scaling",
        reading.strength(),
        (
            *(Observation("CPU time per rank", c.median, "s", "cpu_mean_rank_s", c.size) for c in reading.cpu),
            Observation("Ratio", ratio, "1", interval=reading.ratio("cpu_mean_rank_s", first, last)),
            Observation("Ideal ratio", last.size / first.size, "1"),
        ),
        ratio=times(ratio),
        first=significant(first.size),
        last=sizes(last.size, reading.axis),
        before=amount(first.median, "s"),
        after=amount(last.median, "s"),
    )


@rule
def cpu_falls_time_rises(reading: Reading) -> Iterator[Finding]:
    """Report computing that shrinks while the run gets longer."""
    best, metric = reading.best, reading.study.time_metric
    if best is None or reading.study.kind == "weak" or not reading.moves(metric):
        return
    last = reading.times[-1]
    at = {c.size: c for c in reading.cpu}
    if best.size not in at or last.size not in at or best is last or not reading.larger(metric, last, best):
        return
    start, end = at[best.size], at[last.size]
    if not _cpu_falls(reading, start, end):
        return
    waits = {row.size: row for row in reading.breakdown}
    yield finding(
        "cpu_falls_time_rises",
        reading.strength(),
        (
            *(reading.time_evidence(entry) for entry in (best, last)),
            *(Observation("CPU time per rank", c.median, "s", "cpu_mean_rank_s", c.size) for c in (start, end)),
            *(
                Observation(WAITING[row.profiled], row.off_cpu_s, "s", "", row.size)
                for row in (waits[c.size] for c in (start, end))
            ),
        ),
        explains=(last.median - best.median) / last.median,
        caveat=SHARED if waits[last.size].oversubscribed else "",
        first=significant(best.size),
        last=sizes(last.size, reading.axis),
        fall=percent(1 - end.median / start.median),
        rise=percent(last.median / best.median - 1),
    )


@rule
def waiting_grows(reading: Reading) -> Iterator[Finding]:
    """Report a growing share of waiting while elapsed time still falls."""
    best, rows, metric = reading.best, reading.breakdown, reading.study.time_metric
    if best is None or len(rows) < 2 or not reading.moves(metric) or best is not reading.times[-1]:
        return
    first, last = rows[0], rows[-1]
    if last.off_cpu_share < 0.5 or last.off_cpu_share < first.off_cpu_share + 0.1:
        return
    yield finding(
        "waiting_grows",
        reading.strength(),
        (Observation(WAITING[row.profiled], row.off_cpu_share, "share", "", row.size) for row in rows),
        explains=last.off_cpu_share,
        caveat=SHARED if last.oversubscribed else "",
        waiting=WAITING[last.profiled],
        base=BASE[last.profiled],
        before=percent(first.off_cpu_share),
        after=percent(last.off_cpu_share),
        first=sizes(first.size, reading.axis),
        last=sizes(last.size, reading.axis),
    )


@rule
def packet_step(reading: Reading) -> Iterator[Finding]:
    """Report the step at which packets rise by more than the sizes."""
    places = reading.series("packets")
    if len(places) < 2 or not reading.moves("packets"):
        return
    steps = [(b.median / a.median, a, b) for a, b in pairwise(places) if a.median > 0]
    if not steps:
        return
    ratio, before, after = max(steps, key=lambda step: step[0])
    if ratio < 1.5 or ratio < 1.2 * after.size / before.size or not reading.larger("packets", after, before):
        return
    yield finding(
        "packet_step",
        reading.strength(),
        (
            *reading.evidence("Packets", "packets", "1"),
            Observation("Ratio", ratio, "1", interval=reading.ratio("packets", after, before)),
        ),
        ratio=times(ratio),
        first=significant(before.size),
        last=sizes(after.size, reading.axis),
        change=between(before.median, after.median),
    )


@rule
def predicted_best(reading: Reading) -> Iterator[Finding]:
    """Report the predicted best size if the data bound it."""
    metric, choice = reading.study.time_metric, reading.choice
    if reading.printed or reading.study.kind == "weak" or not reading.moves(metric) or choice is None:
        return
    fit = choice.chosen
    best = None if fit is None else fit.best_size
    if fit is None or best is None or best.low is None or best.high is None:
        return
    if best.high > 4 * max(best.value, 1.0) or best.low >= best.high:
        return
    yield finding(
        "predicted_best",
        "weak" if choice.extrapolated or fit.misfit.significant else "moderate",
        (
            Observation(f"Predicted best number of {reading.axis}", best.value, "1", interval=best.interval),
            *(
                Observation(name, e.value, "1", interval=e.interval)
                for name, e in fit.parameters.items()
                if name != "t1"
            ),
        ),
        caveat=choice.reason + (EXTRAPOLATED.format(axis=reading.axis) if choice.extrapolated else ""),
        model=fit.title,
        best=sizes(whole_size(best.value), reading.axis),
        interval=whole_sizes(best.low, best.high),
    )
