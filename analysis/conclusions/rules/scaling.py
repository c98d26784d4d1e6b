"""Rules about the number of hosts: where time is best, what is lost beyond, and where computing and waiting part."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from analysis.conclusions.observations.reading import Place, Reading
from analysis.conclusions.rules.registry import Evidence, Finding, rule
from analysis.conclusions.wording import percent, size_range, sizes, times, whole_size, whole_sizes
from analysis.numbers import amount, between, significant
from analysis.scaling import TimeRow

_POLLING: Final = "CPU time counts an MPI library's polling while it waits, so computing may fall further than shown."
_SHARED: Final = "There are more ranks than cores: they also have to take turns."
_WORTH_A_WORD: Final = 1.1


def time_evidence(reading: Reading, place: Place, label: str = "Elapsed time") -> Evidence:
    """Median time at a size, with the interval of its repetitions."""
    row = next((r for r in reading.rows if r.size == place.size), None)
    interval = row.elapsed.interval if row else None
    return Evidence(label, place.median, "s", reading.study.time_metric, place.size, interval)


@rule
def best_size(reading: Reading) -> Iterator[Finding]:
    """Where elapsed time is best, by how much, and which sizes cannot be told from it."""
    best, axis, metric = reading.best, reading.axis, reading.study.time_metric
    if best is None or reading.study.kind == "weak" or not reading.moves(metric):
        return
    first, last = reading.times[0], reading.times[-1]
    close = [t.size for t in reading.times if t is not best and not reading.larger(metric, t, best)]
    if best is first:
        statement = (
            f"Elapsed time is best at {sizes(best.size, axis)}, the fewest measured ({amount(best.median, 's')}): "
            f"more {axis} never made it shorter."
        )
        fewer = f"fewer than {sizes(best.size, axis)}, or " if best.size > 1 else ""
        step = f"Measure {fewer}a larger problem."
    else:
        gain = 1 - best.median / first.median
        statement = (
            f"Elapsed time is best at {sizes(best.size, axis)}: {amount(best.median, 's')}, "
            f"{percent(gain)} less than the {amount(first.median, 's')} at {sizes(first.size, axis)}."
        )
        step = (
            _beyond(reading, last) if best is last else f"Measure between the neighbours of {sizes(best.size, axis)}."
        )
    caveat = f"{size_range(close, axis)} cannot be told apart from it." if close else ""
    row = next(r for r in reading.rows if r.size == best.size)
    evidence = [time_evidence(reading, t) for t in reading.times]
    evidence.append(Evidence("Speed-up", row.speedup.value, "1", "", best.size, row.speedup.interval))
    yield Finding(
        "best_size", "scaling", statement, reading.strength(doubtful=bool(close)), tuple(evidence), "time", step, caveat
    )


def _beyond(reading: Reading, last: Place) -> str:
    """What to do when the largest size is the best: more hosts, where the cluster has them."""
    has, axis = reading.study.most_hosts, reading.axis
    if axis != "hosts" or has is None or has > last.size:
        return f"Measure beyond {sizes(last.size, axis)}: the optimum was not reached."
    return f"The optimum was not reached and the cluster has {sizes(has, axis)}: measure on a larger one, or stay here."


@rule
def loss_beyond_best(reading: Reading) -> Iterator[Finding]:
    """What the largest size costs against the best."""
    best, metric = reading.best, reading.study.time_metric
    if best is None or reading.study.kind == "weak" or not reading.moves(metric):
        return
    last = reading.times[-1]
    if best is last or not reading.larger(metric, last, best):
        return
    axis, loss = reading.axis, last.median / best.median - 1
    enough = next(t for t in reading.times if t is best or not reading.larger(metric, t, best))
    yield Finding(
        "loss_beyond_best",
        "scaling",
        f"Elapsed time at {sizes(last.size, axis)} is {percent(loss)} above that at {sizes(best.size, axis)} "
        f"({amount(last.median, 's')} against {amount(best.median, 's')}).",
        reading.strength(),
        (
            time_evidence(reading, best),
            time_evidence(reading, last),
            Evidence("Ratio", last.median / best.median, "1", interval=reading.ratio(metric, last, best)),
        ),
        "speedup",
        f"Stop at {sizes(enough.size, axis)} for this problem, or give the {axis} beyond it more work each.",
    )


def _cpu_falls(reading: Reading, first: Place, last: Place) -> bool:
    metric = reading.study.cpu_metric
    if metric is None or not reading.moves(metric) or last.median >= first.median:
        return False
    return metric != "cpu_mean_rank_s" or reading.larger(metric, first, last)


@rule
def cpu_scaling(reading: Reading) -> Iterator[Finding]:
    """By how much CPU time per rank falls over the whole range."""
    if reading.study.kind == "weak" or len(reading.cpu) < 2:
        return
    first, last, axis = reading.cpu[0], reading.cpu[-1], reading.axis
    ratio = first.median / last.median
    if ratio < _WORTH_A_WORD or not _cpu_falls(reading, first, last):
        return
    yield Finding(
        "cpu_scaling",
        "scaling",
        f"CPU time per rank falls by {times(ratio)} from {significant(first.size)} to {sizes(last.size, axis)} "
        f"({amount(first.median, 's')} to {amount(last.median, 's')}).",
        reading.strength(),
        (
            *(Evidence("CPU time per rank", c.median, "s", "cpu_mean_rank_s", c.size) for c in reading.cpu),
            Evidence("Ratio", ratio, "1", interval=reading.ratio("cpu_mean_rank_s", first, last)),
            Evidence("Ideal ratio", last.size / first.size, "1"),
        ),
        "time",
        "Compare with the ideal ratio: what is missing is work that does not shrink with the size.",
        _POLLING,
    )


@rule
def cpu_falls_time_rises(reading: Reading) -> Iterator[Finding]:
    """Where computing still shrinks while the run gets longer."""
    best, metric = reading.best, reading.study.time_metric
    if best is None or reading.study.kind == "weak" or not reading.moves(metric):
        return
    last = reading.times[-1]
    at = {c.size: c for c in reading.cpu}
    if best.size not in at or last.size not in at or best is last or not reading.larger(metric, last, best):
        return
    start, end, axis = at[best.size], at[last.size], reading.axis
    if not _cpu_falls(reading, start, end):
        return
    waits = {row.size: row for row in reading.breakdown}
    shared = waits[last.size].oversubscribed
    yield Finding(
        "cpu_falls_time_rises",
        "scaling",
        f"From {significant(best.size)} to {sizes(last.size, axis)} CPU time per rank falls {percent(1 - end.median / start.median)} "
        f"while elapsed time rises {percent(last.median / best.median - 1)}: what is added is time off the CPU.",
        reading.strength(),
        (
            time_evidence(reading, best),
            time_evidence(reading, last),
            *(Evidence("CPU time per rank", c.median, "s", "cpu_mean_rank_s", c.size) for c in (start, end)),
            *(Evidence(_waiting(waits[c.size]), waits[c.size].off_cpu_s, "s", "", c.size) for c in (start, end)),
        ),
        "where-time-goes",
        "Look at the packets and round trips of these sizes, and at the MPI profile if there is one.",
        _SHARED if shared else "",
        explains=min(1.0, (last.median - best.median) / last.median),
    )


@rule
def waiting_grows(reading: Reading) -> Iterator[Finding]:
    """The share of waiting, where elapsed time has not turned yet."""
    best, rows, metric = reading.best, reading.breakdown, reading.study.time_metric
    if best is None or len(rows) < 2 or not reading.moves(metric) or best is not reading.times[-1]:
        return
    first, last, axis = rows[0], rows[-1], reading.axis
    if last.off_cpu_share < 0.5 or last.off_cpu_share < first.off_cpu_share + 0.1:
        return
    yield Finding(
        "waiting_grows",
        "time",
        f"{_waiting(last)} rises from {percent(first.off_cpu_share)} of the run at {sizes(first.size, axis)} "
        f"to {percent(last.off_cpu_share)} at {sizes(last.size, axis)}.",
        reading.strength(),
        tuple(Evidence(_waiting(row), row.off_cpu_share, "share", "", row.size) for row in rows),
        "where-time-goes",
        "Measure the largest size on a faster or shorter link: if the share falls, the network sets it.",
        _SHARED if last.oversubscribed else "",
        explains=min(1.0, last.off_cpu_share),
    )


def _waiting(row: TimeRow) -> str:
    """What is not computing, in the words of what it was measured by."""
    return "Time outside of computing" if row.profiled else "Time off the CPU"


@rule
def packet_step(reading: Reading) -> Iterator[Finding]:
    """The step between neighbouring sizes at which packets jump by more than the sizes do."""
    places = reading.series("packets")
    if len(places) < 2 or not reading.moves("packets"):
        return
    steps = [(b.median / a.median, a, b) for a, b in pairwise(places) if a.median > 0]
    if not steps:
        return
    ratio, before, after = max(steps, key=lambda step: step[0])
    if ratio < 1.5 or ratio < 1.2 * after.size / before.size or not reading.larger("packets", after, before):
        return
    axis = reading.axis
    yield Finding(
        "packet_step",
        "scaling",
        f"Packets rise {times(ratio)} from {significant(before.size)} to {sizes(after.size, axis)} "
        f"({between(before.median, after.median, digits=4)}).",
        reading.strength(),
        (
            *(Evidence("Packets", p.median, "1", "packets", p.size) for p in places),
            Evidence("Ratio", ratio, "1", interval=reading.ratio("packets", after, before)),
        ),
        "packets",
        f"Compare the process grid and the matrix of hosts at {significant(before.size)} and {sizes(after.size, axis)}: "
        "another decomposition sends other messages.",
    )


@rule
def weak_efficiency(reading: Reading) -> Iterator[Finding]:
    """In weak scaling: how much of the ideal constant time is left."""
    metric = reading.study.time_metric
    if reading.study.kind != "weak" or len(reading.rows) < 2 or not reading.moves(metric):
        return
    last, axis = reading.rows[-1], reading.axis
    yield Finding(
        "weak_efficiency",
        "scaling",
        f"With work that grows with the {axis}, efficiency is {percent(last.efficiency.value)} at {sizes(last.size, axis)}: "
        f"{amount(last.elapsed.median, 's')} against {amount(reading.rows[0].elapsed.median, 's')} at {sizes(last.reference, axis)}.",
        reading.strength(),
        tuple(
            Evidence("Efficiency", r.efficiency.value, "share", "", r.size, r.efficiency.interval) for r in reading.rows
        ),
        "efficiency",
        "Look at what grows with the size: messages per host, or their distance.",
    )


@rule
def predicted_best(reading: Reading) -> Iterator[Finding]:
    """What a model that predicts says about the best size; only from repeated trials, and only when the data bound it."""
    metric, choice = reading.study.time_metric, reading.choice
    if reading.printed or reading.study.kind == "weak" or not reading.moves(metric) or choice is None:
        return
    fit = choice.chosen
    if fit is None:
        return
    best = fit.best_size
    if best is None or best.interval is None or best.interval.low is None or best.interval.high is None:
        return
    axis, low, high = reading.axis, best.interval.low, best.interval.high
    if high > 4 * max(best.value, 1.0) or low >= high:
        return
    beyond = f" That lies outside of the measured {axis}: it is an extrapolation." if choice.extrapolated else ""
    yield Finding(
        "predicted_best",
        "scaling",
        f"{fit.title} predicts the best time at {sizes(whole_size(best.value), axis)} (95 % interval {whole_sizes(low, high)}).",
        "weak" if choice.extrapolated or fit.misfit.significant else "moderate",
        (
            Evidence(f"Predicted best number of {axis}", best.value, "1", interval=best.interval),
            *(Evidence(name, e.value, "1", interval=e.interval) for name, e in fit.parameters.items() if name != "t1"),
        ),
        "speedup",
        "Queue the suggested next points to narrow it.",
        f"{choice.reason}{beyond}",
    )
