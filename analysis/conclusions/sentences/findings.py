"""The words of findings, by rule: group, chart, statement, what to try, and what qualifies it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from analysis.conclusions.wording import percent
from analysis.numbers import amount, grouped, significant

Group = Literal["scaling", "time", "traffic", "network", "trust"]

_WAITING: Final = "Ranks wait {waiting} of their time in receives and collectives{at}, {part} of it "
_TYPICAL: Final = "From the connections of one typical trial; rates are means over their whole life."
_BY_PAIR: Final = "The page of each trial shows it for every pair of ranks."
_NOT_BANDWIDTH: Final = "more bandwidth will not help"


@dataclass(frozen=True, slots=True)
class Text:
    """Templates of one rule; their fields are named by the rule."""

    group: Group
    chart: str
    """Element of the experiment page that shows it: time, speedup, where-time-goes, packets, throughput, interarrival ..."""
    statement: str
    next_step: str
    caveat: str = ""


_ROWS: Final[Mapping[tuple[Group, str], Mapping[str, tuple[str, ...]]]] = {
    ("scaling", "time"): {
        "cpu_scaling": (
            "CPU time per rank falls by {ratio} from {first} to {last} ({before} to {after}).",
            "Compare with the ideal ratio: what is missing is work that does not shrink with the size.",
            "CPU time counts an MPI library's polling while it waits, so computing may fall further than shown.",
        ),
    },
    ("scaling", "where-time-goes"): {
        "cpu_falls_time_rises": (
            "From {first} to {last} CPU time per rank falls {fall} while elapsed time rises {rise}: what is added is time off the CPU.",
            "Look at the packets and round trips of these sizes, and at the MPI profile if there is one.",
        ),
    },
    ("time", "where-time-goes"): {
        "waiting_grows": (
            "{waiting} rises from {before} of the run at {first} to {after} at {last}.",
            "Measure the largest size on a faster or shorter link: if the share falls, the network sets it.",
        ),
        "load_imbalance": (
            "The load is uneven{at}: the busiest rank uses {more} more CPU time than the mean.",
            "Try another decomposition or the program's own balancing: the others wait for the busiest rank.",
        ),
    },
    ("scaling", "packets"): {
        "packet_step": (
            "Packets rise {ratio} from {first} to {last} ({change}).",
            "Compare the process grid and the matrix of hosts at {first} and {last}: another decomposition sends other messages.",
        ),
    },
    ("scaling", "speedup"): {
        "predicted_best": (
            "{model} predicts the best time at {best} (95 % interval {interval}).",
            "Queue the suggested next points to narrow it.",
        ),
    },
    ("trust", "where-time-goes"): {
        "oversubscribed": (
            "{where}{ranks} ranks{threads} share {cores}: they also have to take turns.{measured}",
            "Compare sizes below that one only, use one rank per host, or run on real hosts.",
        ),
    },
    ("time", "inside-mpi"): {
        "mpi_load_imbalance": (
            "The load is uneven{at}: {busiest} spends {more} more time outside MPI than the mean, and the others wait for it in MPI.",
            "Try another decomposition or the program's own balancing.",
        ),
        "computation_grows": (
            "From {first} to {last} the ranks together spend {more} more time outside MPI: the work itself "
            "grows, or each part of it gets slower.",
            "Look for work that every rank repeats, and for memory or cores that ranks share.",
        ),
        "mpi_no_core": (
            "Ranks had work and no core for {share} of their time{at}.",
            "Look at what else runs on the hosts; use fewer ranks per host.",
        ),
        "mpi_blocked_outside": (
            "Ranks are {state} for {share} of their time{at}: {why}.",
            "Look for sleeps, locks, and reads and writes of files in the program.",
        ),
        "serialisation_costs": (
            "On an ideal network too, ranks wait for each other for {share} of the run{at}.",
            "Look for ranks that work one after another; a faster network will not help there.",
        ),
        "late_senders": (
            "{who}{at}.",
            f"Let the sender send earlier or the receiver ask later; a faster network will not help. {_BY_PAIR}",
        ),
        "waits_without_core": (
            f"{_WAITING}because a rank that could have gone on had no processor.",
            f"Give every rank a processor of its own: fewer ranks per host, or more hosts. {_BY_PAIR}",
        ),
    },
    ("network", "inside-mpi"): {
        "transfer_costs": (
            "The link costs {share} of the run{at}: on an ideal one the trial is so much shorter.",
            "Measure on a faster or shorter link, or send fewer and larger messages.",
        ),
        "waits_on_full_links": (
            f"{_WAITING}because the link is full.",
            f"Measure on a faster link, or send less. {_BY_PAIR}",
        ),
        "waits_for_lost_packets": (
            f"{_WAITING}for packets that were lost and sent again.",
            f"Find where packets are lost: cables, queues that are too short, or a link that is too full. {_BY_PAIR}",
        ),
        "waits_for_closed_windows": (
            f"{_WAITING}because a receiver's TCP window was closed to what had been sent.",
            f"Let the receiver post its receives and enter MPI earlier, or give its sockets larger buffers. {_BY_PAIR}",
        ),
    },
    ("network", "throughput"): {
        "link_load": (
            "The link is not full: {most} of {link} on average.",
            "More bandwidth alone is unlikely to help; look at round trips and at the number of messages.",
        ),
        "link_load, saturated": (
            "The link is saturated{at}: {share} of {link} on average.",
            "Measure on a faster link, or send less: the time cannot fall before the load does.",
        ),
        "link_load, bursts": (
            "Bursts fill the link{at}: the fullest port's 10 ms peak {peak}, its mean at most {share}.",
            "Measure on a faster link: bursts of a synchronous program may be what all ranks wait for.",
        ),
        "window_bound": (
            "{run} at the limit of the TCP window{at}: {rate}, where window / round trip allows {limit}.",
            f"Raise the TCP buffers, or shorten the round trip; {_NOT_BANDWIDTH} these connections.",
            _TYPICAL,
        ),
        "latency_bound": (
            "{run} one message per round trip{at}: {rate}, set by latency and not by bandwidth.",
            f"Shorten the round trip, overlap messages with computing, or combine them; {_NOT_BANDWIDTH}.",
            _TYPICAL,
        ),
    },
    ("network", "packets"): {
        "retransmissions": (
            "{share} of the payload is sent again{at}{cost}.",
            "Look for the loss: the link's certificate, queue length, and drops on the hosts.",
        ),
    },
    ("network", "where-time-goes"): {
        "waiting_explained": (
            "Moving the bytes explains at most {part} of the time {waiting} at {size} ({moving} of {whole}).",
            "Compare delay 0 with the present one; the MPI profile shows what the ranks do in the rest.",
            "On average {share} of the run is {waiting}.",
        ),
    },
    ("traffic", "throughput"): {
        "packet_size": (
            "Mean packet size is {sizes}{how}.",
            "Compare with the largest possible, 1514 bytes on plain Ethernet: much below it, packets carry "
            "small messages or acknowledgements.",
        ),
    },
    ("traffic", "packets"): {
        "small_packets": (
            "{share} of the packets are below 100 bytes.",
            "Where they are not acknowledgements, combine small messages: fewer, larger ones cost fewer round trips.",
        ),
    },
    ("traffic", "interarrival"): {
        "arrivals": (
            "Packets come in bursts: the variation of inter-arrival times is {variation}, where a Poisson stream has 1.",
            "Judge the link by its peak rate in 10 ms and not by its mean; models with exponential arrivals do not hold.",
        ),
        "iteration": (
            "The traffic repeats every {period}{at}.",
            "Compare with the program's time step: where they agree, every step waits for the network once per period.",
            "A period is the strongest significant peak of an autocorrelation; its multiples are possible too.",
        ),
    },
    ("traffic", "matrix"): {
        "matrix_skew": (
            "Traffic is concentrated{at}: {what}.",
            "Place ranks that talk most on the same host, or spread the one that all wait for.",
        ),
    },
    ("trust", "packets"): {
        "degraded_capture": (
            "{captures}{at} cannot be trusted fully{why}.",
            "Their traffic is in none of these figures; their times are. Fix what the reasons name, then run them again.",
        ),
    },
    ("trust", "link"): {
        "degraded_link": (
            "The link was not the one asked for{at}: {warnings}.",
            "Draw x at the achieved values, or repeat these trials on a link that passes its certificate.",
        ),
    },
    ("trust", "time"): {
        "noisy": (
            "Elapsed time scatters by {spread} (standard deviation) between repetitions{at}.",
            "About {needed} would bring its 95 % interval to ±5 %; look first for what else runs on the machine.",
        ),
        "left_out": (
            "{trials}{at} {are} not counted: failed, lost or cancelled.",
            "Read their logs: if they fail more often at large sizes, the counted ones are a selection.",
        ),
    },
    ("trust", "interarrival"): {
        "rows_disagree": (
            "The {row} row's packet intensity and inter-arrival time disagree by {apart}: 1 / {gap} is "
            "{implied}, the table says {intensity}.",
            "Compare both with packets / elapsed time; the one that agrees is the likelier.",
        ),
    },
}
FINDINGS: Final = {name: Text(*place, *texts) for place, rows in _ROWS.items() for name, texts in rows.items()}

TAKE_TURNS: Final = (
    "Ranks share cores: while one computes, another waits for a core inside MPI, "
    "and the ideal network takes processor time too."
)
SHARED: Final = "There are more ranks than cores: they also have to take turns."
EXTRAPOLATED: Final = " That lies outside of the measured {axis}: it is an extrapolation."
WAITING: Final = {False: "Time off the CPU", True: "Time outside of computing"}
"""What is not computing, by whether a profile measured it."""
OUTSIDE_COMPUTING: Final = {False: "off the CPU", True: "outside of computing"}
BANDWIDTH_ASKED: Final = "The bandwidth is the one asked for; no certificate says what the link reached."
BANDWIDTH_STATED: Final = (
    "The bandwidth is what the cluster's facts or its network cards say; what the link reaches was not measured."
)
UPPER_BOUND: Final = "All captured bytes are set against one link, so the true load is at most this."


def late_sender(waiting: float, part: float, rank: float | None = None, late: float | None = None) -> str:
    """Return for which part of the waiting others send late: named by rank, if they are the same in every trial."""
    if rank is None or late is None:
        return (
            f"Ranks wait {percent(waiting)} of their time in receives and collectives, "
            f"{percent(part)} of it because others send late"
        )
    return f"Rank {grouped(rank)} waits {percent(waiting)} of its time, {percent(part)} of it because rank {grouped(late)} sends late"


def shared_from(size: str, only: bool) -> str:
    return f"At {size}, " if only else f"From {size} on, "


def with_threads(threads: Sequence[int]) -> str:
    """ " with 4 threads each", " with 1 to 4 threads each"; "" if no rank has more than one."""
    if threads[-1] == 1:
        return ""
    return f" with {threads[0]}{'' if len(threads) == 1 else f' to {threads[-1]}'} threads each"


def lacked_core(share: float) -> str:
    return f" Ranks had work and no core for up to {percent(share)} of their time."


def bursts_reach(peak: float, link: str) -> str:
    return f"reaches all of {link}" if peak >= 1 else f"is {percent(peak)} of {link}"


def retransmission_cost(bounds_s: tuple[float, float] | None, elapsed_s: float) -> tuple[str, str]:
    """Return how the sentence ends, and its caveat: waits that were seen, or bounds."""
    if bounds_s is None:
        return "", ""
    if bounds_s[0] == bounds_s[1]:
        return (
            f", and the run waits {amount(bounds_s[0], 's')} for it",
            "Waits on the longest chain of messages in the capture.",
        )
    low, high = (min(bound, elapsed_s) for bound in bounds_s)
    # A connection cannot lose more than the run takes: if the bounds reach it, only the lower one says anything.
    costs = f"between {amount(low, 's')} and {amount(high, 's')}" if high < elapsed_s else f"{amount(low, 's')} or more"
    return f", which costs each connection {costs}", "One round trip each at least, a time-out of 200 ms each at most."


def heaviest_pair(name: str, one: str, other: str, share: float, even: float) -> str:
    return f"{percent(share)} of the bytes go between {name} {one} and {name} {other}; even shares would be {percent(even)}"


def heaviest_host(name: str, centre: str, share: float) -> str:
    return f"{name} {centre} sends or receives {percent(share)} of all bytes"


CANNOT_TELL: Final[Mapping[str, str]] = {
    "printed": "The printed values have no repetitions: how much they would scatter is not known.",
    "no CPU time": "No CPU time was measured, so computing and waiting cannot be told apart.",
    "no trusted capture": "No capture can be trusted fully, so nothing can be said about the wire.",
    "no packets": "No packets were captured, so nothing can be said about the wire.",
    "no bandwidth": "The link's bandwidth is not known, so its load is not either.",
    "virtual hosts": "All hosts are virtual ones of one machine: real hosts have their own cores, caches and memory.",
}
NO_TRIAL: Final = {True: "No trial finished, so there is nothing to judge.", False: "No trial has been counted yet."}
"""By whether trials were lost."""


def joint_verdict(axis: str, slices: Sequence[tuple[str, float | None, Mapping[str, Any]]]) -> str:
    """Return the sentence about slices of different (class, best size, place)."""
    words = [
        f"{verdict}{f' (best {significant(best)})' if best else ''} at {_parameters(where)}"
        for verdict, best, where in slices
    ]
    return f"How it scales with {axis} depends on the other parameters: {'; '.join(words[:6])}."


def _parameters(where: Mapping[str, Any]) -> str:
    """ "link.bandwidth = 100 000 000, molecules = 512"."""
    return ", ".join(
        f"{name} = {significant(value) if isinstance(value, float) else value}" for name, value in where.items()
    )
