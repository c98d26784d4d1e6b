"""Texts of findings by rule: group, chart, statement, next step and caveat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from analysis.conclusions.wording import amount, clauses, percent
from analysis.numbers import grouped, significant

Group = Literal["scaling", "time", "traffic", "network", "trust"]

_WAITING: Final = "Ranks wait {waiting} of the MPI window in receives and collectives{at}, {part} of it "
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
            "Compare with the ideal ratio: the difference is work that does not shrink with the size.",
            "CPU time counts an MPI library's polling while it waits, so computing may fall further than shown.",
        ),
    },
    ("scaling", "where-time-goes"): {
        "cpu_falls_time_rises": (
            "From {first} to {last} CPU time per rank falls {fall} while elapsed time rises {rise}: the added time is off the CPU.",
            "Look at the packets, the round trips and the MPI profile of these sizes.",
        ),
    },
    ("time", "where-time-goes"): {
        "waiting_grows": (
            "{waiting} rises from {before} of {base} at {first} to {after} at {last}.",
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
            "{where}{ranks} ranks{threads} share {cores}.{measured}",
            "Times at such sizes hold for this machine only: for other machines compare smaller sizes, use one rank per host, "
            "or run on real hosts.",
        ),
    },
    ("network", "time"): {
        "port_saturated": (
            "{what} reached {share} of its rate in one second{at}.",
            "Use fewer ranks per host, or send less: larger messages, another decomposition.",
            "The busiest second of one port; the mean may be far lower.",
        ),
        "networks_disagree,fewer": (
            "Ports and interfaces sent {share} of the bytes that ranks on different hosts sent each other{at}.",
            "Find the network without counters on the tab Counters of a trial's page.",
            "Messages of collectives are not in these bytes, so the missing part is a lower bound.",
        ),
        "networks_disagree,more": (
            "Ports and interfaces sent {more} more than messages, headers and collectives explain{at}.",
            "Look for files on the network or other programs, then measure when they are idle.",
            "Bytes of collectives on the network depend on the library's algorithms.",
        ),
        "fabric_congestion": (
            "Fabric ports had data and no credits in {share} of their ticks{at}: the fabric is congested.",
            "Place the hosts nearer to each other, or measure when other jobs are idle.",
            "Other jobs on the same switches cause it too.",
        ),
        "link_errors": (
            "Fabric ports counted {errors}{at}, {most} of them on one port.",
            "Show the administrator the port: its cable or the switch's port may be faulty.",
        ),
    },
    ("time", "time"): {
        "throttled_host": (
            "Heat slowed cores {times}{at}.",
            "Compare the hosts' temperatures and frequencies on the tab Counters of a trial's page.",
        ),
        "uneven_power": (
            "One host draws {more} more power than another one{at}.",
            "Compare the work and the frequency of these hosts on the tab Counters of a trial's page.",
            "Packages and memory; other programs on the host count too.",
        ),
    },
    ("time", "inside-mpi"): {
        "shared_core": (
            "{what}{at}: they take turns.",
            "Give each rank a core of its own: `bind: core`, or fewer ranks per host.",
        ),
        "threads_as_cores": (
            "{what}{at}: two hardware threads of a core compute little faster than one.",
            "Measure one rank per core too: half the ranks per host with `bind: core`.",
        ),
        "idle_socket": (
            "{what}{at}: its caches and memory bandwidth are unused.",
            "Sweep `bind: [none, socket]`: the answer says which placement is faster.",
        ),
        "migrated_rank": (
            "{what}{at}: memory that they used before is far away then.",
            "Bind ranks to cores, NUMA nodes or sockets (`bind`).",
        ),
        "mpi_load_imbalance": (
            "The load is uneven{at}: {busiest} spends {more} more time outside MPI than the mean; the others wait for it in MPI.",
            "Try another decomposition or the program's own balancing.",
        ),
        "computation_grows": (
            "From {first} to {last} all ranks together spend {more} more time outside MPI: the work grows, "
            "or it gets slower, or ranks are descheduled.",
            "Look for work that every rank repeats, and for shared memory or cores.",
        ),
        "instructions_grow": (
            "From {first} to {last} all ranks together execute {change} more instructions outside MPI: ranks repeat work.",
            "Look for loops over the whole problem in every rank, and for overlapping parts of it.",
            "Loops that poll outside MPI, or wait for other threads, execute instructions too.",
        ),
        "ipc_falls": (
            "From {first} to {last} instructions per cycle outside MPI fall by {change}: cores wait for memory.{misses}",
            "Measure fewer ranks per host: if they compute faster, ranks share memory bandwidth or caches.",
        ),
        "frequency_falls": (
            "From {first} to {last} the clock of the cores outside MPI falls by {change}.",
            "Compare with fewer ranks per host; look at heat and power limits on the tab Counters of a trial's page.",
            "Time in the kernel counts as time without cycles.",
        ),
        "mpi_no_core": (
            "Ranks were descheduled, runnable without a CPU core, for {shares} of the MPI window{at}.",
            "Stop other load on the hosts, or use fewer ranks per host.",
        ),
        "mpi_blocked_outside": (
            "Ranks are {state} for {share} of the MPI window{at}: {why}.",
            "Look for sleeps, locks, and reads and writes of files in the program.",
        ),
        "serialisation_costs": (
            "Even on an ideal network, ranks wait for each other for {share} of the MPI window{at}.",
            "Look for ranks that work one after another; a faster network will not help.",
        ),
        "mpi_waits": (
            "Ranks wait for messages for {share} of the MPI window{at}.",
            f"Look for ranks that work one after another, then at the link. {_BY_PAIR}",
            "Blocked in MPI, without the time in which a rank was descheduled.",
        ),
        "late_senders": (
            "{who}{at}.",
            f"Send earlier, or receive later; a faster network will not help. {_BY_PAIR}",
        ),
        "waits_without_core": (
            f"{_WAITING}because a rank was descheduled.",
            f"Give each rank its own CPU core: fewer ranks per host, or more hosts. {_BY_PAIR}",
        ),
    },
    ("network", "inside-mpi"): {
        "transfer_costs": (
            "The link costs {share} of the MPI window{at}: on an ideal network it is that much shorter.",
            "Measure on a faster or shorter link, or send fewer and larger messages.",
        ),
        "waits_on_full_links": (
            f"{_WAITING}because the link is full.",
            f"Measure on a faster link, or send less. {_BY_PAIR}",
        ),
        "waits_for_lost_packets": (
            f"{_WAITING}for retransmissions of lost packets.",
            f"Find the loss: cables, short queues or a full link. {_BY_PAIR}",
        ),
        "waits_for_closed_windows": (
            f"{_WAITING}because a receiver's TCP window was closed.",
            f"Post receives earlier, or give the receiver's sockets larger buffers. {_BY_PAIR}",
        ),
    },
    ("network", "throughput"): {
        "link_load": (
            "The link is not full{at}: {most} of {link} on average.",
            "More bandwidth alone is unlikely to help; look at round trips and the number of messages.",
        ),
        "link_load, saturated": (
            "The link is saturated{at}: {share} of {link} on average.",
            "Measure on a faster link, or send less: the time cannot fall before the load does.",
        ),
        "link_load, bursts": (
            "Bursts fill the link{at}: the largest 10 ms peak is {peak}, the mean at most {share}.",
            "Measure on a faster link: all ranks of a synchronous program may wait for its bursts.",
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
            "{share} of the payload is retransmitted{at}{cost}.",
            "Look for the loss in the link's certificate, queue lengths and drops on the hosts.",
        ),
    },
    ("network", "where-time-goes"): {
        "waiting_explained": (
            "Moving the bytes explains at most {part} of the time {waiting} at {size} ({moving} of {whole}).",
            "Compare with delay 0; the MPI profile shows the rest of the time.",
            "On average {share} of {base} is {waiting}.",
        ),
    },
    ("traffic", "throughput"): {
        "packet_size": (
            "Mean packet size{at} is {sizes}{how}.",
            "Compare with 1514 bytes, the maximum on plain Ethernet: much smaller packets are small messages "
            "or acknowledgements.",
        ),
    },
    ("traffic", "packets"): {
        "small_packets": (
            "{share} of the packets{at} are below 100 bytes.",
            "If they are not acknowledgements, combine small messages into fewer, larger ones.",
        ),
    },
    ("traffic", "interarrival"): {
        "arrivals": (
            "Packets come in bursts{at}: the inter-arrival CV is {variation}; a Poisson stream has 1.",
            "Judge the link by its 10 ms peak rate, not by its mean; models with exponential arrivals do not apply.",
        ),
        "iteration": (
            "The traffic repeats every {period}{at}.",
            "Compare with the program's time step: if they agree, each step waits for the network once.",
            "A period is the strongest significant peak of an autocorrelation; its multiples are possible too.",
        ),
    },
    ("traffic", "matrix"): {
        "matrix_skew": (
            "Traffic is concentrated{at}: {what}.",
            "Place ranks that exchange most on one host, or divide the work of the central rank.",
        ),
    },
    ("trust", "packets"): {
        "degraded_capture": (
            "{captures}{at} {are} flagged{why}.",
            "Their traffic is excluded, their times are not. Fix the reasons, then repeat these trials.",
        ),
    },
    ("trust", "link"): {
        "degraded_link": (
            "The link differs from its specification{at}: {warnings}.",
            "Plot the achieved values, or repeat these trials on a link that passes its certificate.",
        ),
    },
    ("trust", "time"): {
        "noisy": (
            "Elapsed time scatters by {spread} (standard deviation) between repetitions{at}.",
            "First look for other load; {needed} in all would narrow the 95 % interval to ±5 %.",
        ),
        "left_out": (
            "{trials}{at} {are} excluded: failed, lost or cancelled.",
            "Read their logs: if more fail at large sizes, the remaining trials are a biased selection.",
        ),
    },
    ("trust", "interarrival"): {
        "rows_disagree": (
            "The {row} row's packet intensity and inter-arrival time disagree by {apart}: 1 / {gap} is "
            "{implied}, the table has {intensity}.",
            "Compare both with packets / elapsed time; the one that agrees is more likely.",
        ),
    },
}
_SHARED_BY_HOSTS: Final = "The virtual hosts share this machine's cores."
_WITH_ONE_RANK: Final = {
    "oversubscribed": "Times at such sizes hold for this machine only: for other machines compare smaller sizes, or run on real hosts.",
    "port_saturated": "Send less: larger messages, another decomposition.",
    "shared_core": "Give each rank a core of its own: `bind: core`.",
    "ipc_falls": "Compare with real hosts: ranks may share memory bandwidth or caches.",
    "frequency_falls": "Look at heat and power limits on the tab Counters of a trial's page.",
    "mpi_no_core": "Stop other load on the hosts.",
    "waits_without_core": f"Give each rank its own CPU core: a larger machine, or real hosts. {_BY_PAIR}",
}
"""Next steps with one rank per host, of findings that else advise fewer."""


def advice(finding: str, next_step: str, has_one_rank: bool, shared_cores: int | None) -> str:
    """Return a next step; with one rank per host, without advice to use fewer."""
    if not has_one_rank or finding not in _WITH_ONE_RANK:
        return next_step
    return f"{_WITH_ONE_RANK[finding]} {_SHARED_BY_HOSTS}" if shared_cores else _WITH_ONE_RANK[finding]


FINDINGS: Final = {name: Text(*heading, *texts) for heading, rows in _ROWS.items() for name, texts in rows.items()}

PLACEMENT: Final = ("shared_core", "threads_as_cores", "idle_socket", "migrated_rank")
"""Findings of `analysis.mpi.placement`."""
TAKE_TURNS: Final = (
    "Ranks share cores: while one computes, another waits for a core inside MPI, "
    "and the ideal network takes CPU time too."
)
SHARED: Final = "There are more ranks than cores, so ranks also wait for a CPU core."
EXTRAPOLATED: Final = " This is an extrapolation beyond the measured {axis}."
WAITING: Final = {False: "Time off the CPU", True: "Time outside computing"}
"""Label of all time but computing, without and with a profile."""
OUTSIDE_COMPUTING: Final = {False: "off the CPU", True: "outside computing"}
BASE: Final = {False: "the elapsed time", True: "the MPI window"}
"""Base of the shares of the ranks' time, without and with a profile."""
BANDWIDTH_ASKED: Final = "The bandwidth is the specified one; no certificate measured the link."
BANDWIDTH_STATED: Final = "The bandwidth is from the cluster's facts or network cards; the link was not measured."
UPPER_BOUND: Final = "All captured bytes are counted against one link, so the true load is at most this."


def late_sender(waiting: float, part: float, rank: float | None = None, late: float | None = None) -> str:
    """Return the share of late senders, with ranks if all trials agree."""
    if rank is None or late is None:
        return (
            f"Ranks wait {percent(waiting)} of the MPI window in receives and collectives, "
            f"{percent(part)} of it because others send late"
        )
    return f"Rank {grouped(rank)} waits {percent(waiting)} of its MPI window, {percent(part)} of it because rank {grouped(late)} sends late"


def shared_from(size: str, only: bool) -> str:
    return f"At {size}, " if only else f"From {size} on, "


def with_threads(threads: Sequence[int]) -> str:
    """Return " with 1 to 4 threads each", or "" for single threads."""
    if threads[-1] == 1:
        return ""
    return f" with {threads[0]}{'' if len(threads) == 1 else f' to {threads[-1]}'} threads each"


def descheduled_shares(outside: float, inside: float) -> str:
    return f"{percent(outside)} (outside MPI) and {percent(inside)} (in MPI)"


def lacked_core(shares: str, at: str) -> str:
    return f" Ranks were descheduled for {shares} of the MPI window{at}." if shares else ""


def cache_misses_grow(change: float) -> str:
    return f" Cache misses per instruction grow by {percent(change)}."


def bursts_reach(peak: float, link: str) -> str:
    return f"all of {link}" if percent(peak) == percent(1.0) else f"{percent(peak)} of {link}"


def retransmission_cost(bounds_s: tuple[float, float] | None, elapsed_s: float) -> tuple[str, str]:
    """Return the end of the sentence and its caveat: measured waits, or bounds."""
    if bounds_s is None:
        return "", ""
    if bounds_s[0] == bounds_s[1]:
        return (
            f", and the run waits {amount(bounds_s[0], 's')} for it",
            "Waits on the critical path of messages in the capture.",
        )
    low, high = (min(bound, elapsed_s) for bound in bounds_s)
    # A connection cannot lose more than the run takes: if the bounds reach it, only the lower one says anything.
    costs = f"between {amount(low, 's')} and {amount(high, 's')}" if high < elapsed_s else f"{amount(low, 's')} or more"
    return f", which costs each connection {costs}", "At least one round trip each, at most a time-out of 200 ms each."


def heaviest_pair(name: str, one: str, other: str, share: float, even: float) -> str:
    return f"{percent(share)} of the bytes go between {name} {one} and {name} {other}; even shares would be {percent(even)}"


def heaviest_host(name: str, centre: str, share: float) -> str:
    return f"{name} {centre} sends or receives {percent(share)} of all bytes"


LIMITATIONS: Final[Mapping[str, str]] = {
    "printed": "The printed values have no repetitions, so their scatter is not known.",
    "no CPU time": "No CPU time was measured, so computing and waiting cannot be distinguished.",
    "no trusted capture": "All captures are flagged or missing, so the network traffic is not known.",
    "no packets": "No packets were captured, so the network traffic is not known.",
    "no bandwidth": "The link's bandwidth is not known, so its load is not known.",
    "virtual hosts": "All hosts are virtual hosts of one machine; real hosts have their own cores, caches and memory.",
}
NO_TRIAL: Final = {True: "No trial finished, so there is no result.", False: "No trial has finished yet."}
"""Verdicts without trials: none was lost, or some were."""
_VERDICTS: Final[Mapping[str, str]] = {
    "scales": "still scales {size}",
    "limited": "limited {size}",
    "unclear": "not enough data yet",
    "failed": "no trial finished",
}


def joint_verdict(axis: str, slices: Sequence[tuple[str, float | None, Mapping[str, Any]]]) -> str:
    """Return the sentence about slices of different (class, best size, place)."""
    words = [
        f"{_VERDICTS[verdict].format(size=f'at {significant(best)}' if best else '')} with {_parameters(where)}"
        for verdict, best, where in slices
    ]
    return f"Scaling with {axis} depends on the other parameters: {clauses(words)}."


def _parameters(where: Mapping[str, Any]) -> str:
    """Return "link.bandwidth = 100 000 000, molecules = 512"."""
    return ", ".join(
        f"{name} = {significant(value) if isinstance(value, float) else value}" for name, value in where.items()
    )
