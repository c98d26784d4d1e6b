"""Sentences of causes: the parts of a longer time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from analysis.conclusions.answer import ChangePart
from analysis.conclusions.context import ExperimentQuestion
from analysis.conclusions.observations.parts import ELAPSED, UNEXPLAINED, Division
from analysis.conclusions.wording import amount, lower_first, percent, point_words
from analysis.numbers import grouped
from analysis.scaling import Point

_NAMES: Final[Mapping[str, str]] = {
    "computing": "computing",
    "descheduled": "waiting for a CPU core to compute",
    "blocked": "blocked outside MPI: sleep, files or locks",
    "off": "off the CPU outside MPI",
    "imbalance": "waiting in MPI for {busiest}, which computes longest",
    "communication": "in MPI{base}{calls}",
    "on_cpu": "on the CPU",
    "off_cpu": "off the CPU",
    UNEXPLAINED: "not explained",
}
_WAITS: Final[Mapping[str, str]] = {
    "late_sender": "waits for late senders",
    "line_rate": "waits at line rate",
    "under_way": "waits for data in transit",
    "retransmission": "waits for lost packets",
    "closed_window": "waits for a closed window",
    "receiver": "after the last packet",
    "no_core": "waits for a descheduled rank",
}
"""Words for a part of the time in MPI, by the causes of waits of a trace."""
_CALLS: Final[Mapping[str, str]] = {
    "mpi_point_to_point_share": "point-to-point calls",
    "mpi_collective_share": "collective calls",
    "mpi_synchronisation_share": "barriers and calls on communicators",
    "mpi_waiting_share": "wait and test calls",
    "mpi_one_sided_share": "one-sided calls",
    "mpi_input_output_share": "MPI input and output",
}
_NETWORK: Final[Mapping[str, str]] = {
    "chain_volume_s": "bytes on the critical path take {} at the links' rate",
    "chain_latency_s": "messages on the critical path take up to {} of latency",
}
"""Words for what the links require, by the metrics of observations.parts.CRITICAL_PATH."""
IDEAL_FROM: Final = "ideal from "
NOT_EXPLAINED: Final = "not explained by the profile"
_DESCHEDULED: Final = ", mostly descheduled while waiting for messages"
"""No cause: a rank that polls gives its core up, whatever the message waits for."""
_MOST_OF_IT: Final = 0.5
_MUCH: Final = 0.25
_MATTERS: Final = 0.01
"""Least share of the time in MPI that waits for cores need to be named: less is not visible in three digits."""


def compared(question: ExperimentQuestion, good: Point, bad: Point, *, is_ideal: bool) -> tuple[str, str]:
    """Return the names of two compared points: ("ideal from 1 host", "2 hosts")."""
    first, last = (point_words(question.of_role("scale"), point.parameters) for point in (good, bad))
    return f"{IDEAL_FROM}{first}" if is_ideal else first, last


def grown(
    question: ExperimentQuestion, division: Division, part: ChangePart, bad: Point, ideal_from: Point | None
) -> str:
    """Return "0.9 s of the 1.1 s more is in MPI", or "1.2 s more in MPI".

    The latter if the parts that grew exceed the whole; it names what the time is compared with.
    """
    detail = _detail(division, part)
    name = f"{_name(division, part, bad)}{detail}"
    if division.exceeds_the_whole:
        ideal = "" if ideal_from is None else f"against the {compared(question, ideal_from, bad, is_ideal=True)[0]}, "
        return f"{_at(question, bad)}{ideal}{_seconds(part.change_s)} more {name}"
    return f"{_at(question, bad)}{_seconds(part.change_s)} of {_of_the_whole(question, division, ideal_from is not None)} is {name}"


def _at(question: ExperimentQuestion, bad: Point) -> str:
    """Return the size of a cause: "at 4 hosts, "."""
    return f"at {point_words(question.of_role('scale'), bad.parameters)}, "


def more(division: Division, part: ChangePart, bad: Point, *, is_ideal: bool) -> str:
    """Return a part that grew in a few words: "0.9 s more than ideal in MPI"."""
    within = "" if division.undivided is None else "from MPI_Init to MPI_Finalize "
    detail = _detail(division, part)
    _, separator, of_links = detail.partition(";")
    name = _name(division, part, bad).partition(",")[0]
    than = " than ideal" if is_ideal else ""
    end = f"{separator}{of_links}" or (detail if detail == _DESCHEDULED else "")
    return f"{within}{_seconds(part.change_s)} more{than} {name}{end}"


def outside_loop(question: ExperimentQuestion, bad: Point, change_s: float) -> str:
    return (
        f"{_at(question, bad)}{_seconds(change_s)} of these causes is between MPI_Init and MPI_Finalize, "
        "but outside the loop that the program times"
    )


def more_launch(change_s: float) -> str:
    return f"{_seconds(change_s)} more launch overhead"


def fallen(question: ExperimentQuestion, division: Division, part: ChangePart, bad: Point) -> str:
    return f"{_at(question, bad)}{_seconds(-part.change_s)} less {_name(division, part, bad)}"


def not_explained(missed_s: float) -> str:
    """Return the cause of a change that is mostly outside the profiled window."""
    return (
        f"{NOT_EXPLAINED}: the time outside it is {_seconds(abs(missed_s))} {'longer' if missed_s < 0 else 'shorter'}"
    )


def small_part(question: ExperimentQuestion, share: float) -> str:
    """Return why a profile of the whole run shows no cause, in a few words."""
    return f"no cause visible, as {_measured_part(question)} is {percent(share)} of the run; raise the problem size"


def of_small_part(question: ExperimentQuestion, bad: Point, share: float) -> str:
    return (
        f"{_at(question, bad)}{_measured_part(question)} is {percent(share)} of the run: "
        f"the profile is of the whole run and shows no cause for {lower_first(question.deciding.label)}. "
        "A larger problem size makes it a larger part"
    )


def _measured_part(question: ExperimentQuestion) -> str:
    return "the measured part" if question.measured_part is None else lower_first(question.measured_part.label)


def launch(question: ExperimentQuestion, bad: Point, change_s: float, *, is_profiled: bool) -> str:
    when = "before MPI_Init and after MPI_Finalize" if is_profiled else "before and after the program's own work"
    deciding = question.deciding
    outside = "" if deciding.metric == ELAPSED else f", outside {lower_first(deciding.label)}"
    return f"{_at(question, bad)}launch overhead, {when}{outside}, takes {_seconds(change_s)} more"


def _of_the_whole(question: ExperimentQuestion, division: Division, above: bool) -> str:
    whole = f"the {_seconds(division.change_s)}"
    if above:
        return f"{whole} above the ideal"
    if division.whole.name == question.deciding.metric:
        return f"{whole} more"
    if division.whole.name == question.own_time:
        return f"{whole} that its own loop takes longer"
    return f"{whole} that {'the ranks run longer' if division.profiled else 'the launch takes longer'}"


def _name(division: Division, part: ChangePart, bad: Point) -> str:
    """Return the name of a part; "in MPI" says if waits for cores are another part."""
    ranks = set(bad.values.get("mpi_busiest_rank", ()))
    busiest = f"rank {grouped(ranks.pop())}" if len(ranks) == 1 else "the rank"
    waits = [max(d.before_s, d.after_s) for d in division.details if d.name == "core_in_mpi"]
    has_grown = part.change_s > 0
    has_base = max(waits, default=0.0) > (_MATTERS if has_grown else 0.0) * max(part.before_s, part.after_s)
    is_descheduled = has_grown and _detail(division, part).startswith(_DESCHEDULED)
    base = " excluding waits for descheduled ranks" if has_base and not is_descheduled else ""
    return _NAMES[part.name].format(busiest=busiest, base=base, calls=_calls(division, part) if has_grown else "")


def _calls(division: Division, part: ChangePart) -> str:
    """Return " (above all collective calls)" if these surely take most of the growth.

    Growth of calls that exceeds the part is of other parts, such as waits for the busiest rank: it may be in any calls.
    """
    grew = {detail.name: max(detail.change_s, 0.0) for detail in division.details if detail.name in _CALLS}
    most = max(grew, key=grew.__getitem__, default="")
    of_others = max(sum(grew.values()) - part.change_s, 0.0)
    is_most = grew and grew[most] - of_others > _MOST_OF_IT * part.change_s
    return f" (above all {_CALLS[most]})" if is_most else ""


def _detail(division: Division, part: ChangePart) -> str:
    """Return the details of a part.

    In MPI: the wait that grew most, by a trace; else whether MPI was mostly on CPU, descheduled or blocked. Waiting for a core:
    its time in MPI.
    """
    if part.name == "descheduled":
        inside = next((d.change_s for d in division.details if d.name == "core_in_mpi"), 0.0)
        return f", {_seconds(min(inside, part.change_s))} of it in MPI for other ranks" if inside > 0 else ""
    if part.name != "communication":
        return ""
    waits = [detail for detail in division.details if detail.name in _WAITS and detail.has_grown]
    largest = max(waits, key=lambda detail: detail.change_s, default=None)
    if largest is not None and largest.change_s >= _MOST_OF_IT * part.change_s:
        return f", {_seconds(min(largest.change_s, part.change_s))} of it {_WAITS[largest.name]}"
    grew = {detail.name: detail.change_s for detail in division.details}
    if "mpi_on_cpu" not in grew:
        return ""
    descheduled = grew.get("mpi_descheduled", 0.0)
    if grew["mpi_on_cpu"] >= _MOST_OF_IT * part.change_s:
        rest = ", else descheduled" if descheduled >= _MUCH * part.change_s else ""
        return f", mostly on CPU (polling, copying){rest}{_network(division, part)}"
    if descheduled >= _MOST_OF_IT * part.change_s:
        return f"{_DESCHEDULED}{_network(division, part)}"
    return f", mostly blocked{_network(division, part)}"


def _network(division: Division, part: ChangePart) -> str:
    """Return what the links require if it is most of the longer time in MPI, or ""."""
    required = [detail for detail in division.details if detail.name in _NETWORK]
    most = max(required, key=lambda detail: detail.change_s, default=None)
    if most is None or most.change_s < _MOST_OF_IT * part.change_s:
        return ""
    return f"; {_NETWORK[most.name].format(_seconds(most.after_s))}"


def _seconds(amount_s: float) -> str:
    return amount(amount_s, "s")
