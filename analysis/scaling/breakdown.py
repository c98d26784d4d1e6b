"""Division of time: computing, waiting, imbalance, waiting for the network.

POP's model (Performance Optimisation and Productivity, metrics of 2015): parallel efficiency = load balance x communication
efficiency. It asks for useful computation, which is the time outside of MPI if every trial has a profile. Otherwise there is
CPU time, and an MPI library that polls burns CPU while it waits: then every share of computing is an upper bound and every
share of waiting a lower one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from analysis.scaling.study import Point, Study

SMALLEST_TIMEOUT_S: Final = 0.2
"""Linux's smallest retransmission time-out (TCP_RTO_MIN)."""


@dataclass(frozen=True, slots=True)
class TimeRow:
    """Medians of one size, seconds; None if a part was not measured."""

    size: float
    elapsed_s: float
    cpu_s: float
    """CPU time per rank, mean over the ranks."""
    off_cpu_s: float
    """elapsed - cpu; never below 0. With a profile the window from MPI_Init to MPI_Finalize - computing, so that polling is waiting."""
    off_cpu_share: float
    """Of the elapsed time; with a profile of the window, as all shares of the profile."""
    load_balance: float | None
    """Mean / largest CPU time of a rank; with a profile of the time outside of MPI."""
    communication_efficiency: float | None
    """Largest CPU time of a rank / elapsed; with a profile largest time outside of MPI / window."""
    parallel_efficiency: float
    """Mean CPU time of a rank / elapsed = load balance x communication efficiency."""
    computation_scaling: float | None
    """CPU time of all ranks at the smallest size / here: below 1, more hosts made more work (strong scaling only)."""
    oversubscribed: bool
    """More ranks than cores."""
    parts_s: Mapping[str, float] = field(default_factory=dict)
    """The workload's own breakdown, by metric id."""
    profiled: bool = False
    """Measured inside every rank, not taken from CPU time."""
    no_core_share: float | None = None
    """With a profile: share of the ranks' time that was outside of MPI and on no processor."""
    descheduled_share: float | None = None
    """Share of run delay: the ranks were runnable and had no core."""


def cpu_per_rank(study: Study, point: Point) -> float | None:
    """Return the median CPU time of a rank: measured, or the sum divided by ranks."""
    direct = point.median("cpu_mean_rank_s")
    if direct is not None:
        return direct
    total = point.median("cpu_s")
    return total / point.ranks if total is not None and point.ranks else None


def is_profiled(study: Study) -> bool:
    """Return whether every size with a time has a profile."""
    sized = study.sized(study.time_metric)
    return bool(sized) and all(len(point.array("mpi_parallel_efficiency")) for _, point in sized)


def time_breakdown(study: Study) -> list[TimeRow]:
    """Return the division of the ranks' time by size.

    Returns
    -------
    list of TimeRow
        Medians in s, without sizes that lack elapsed or CPU time.
    """
    if is_profiled(study):
        sized = study.sized(study.time_metric)
        useful = sized[0][1].median("mpi_useful_s")
        return [_profiled_row(study, size, point, useful) for size, point in sized]
    rows: list[TimeRow] = []
    reference: float | None = None
    for size, point in study.sized(study.time_metric):
        elapsed, cpu = point.median(study.time_metric), cpu_per_rank(study, point)
        if not elapsed or cpu is None:
            continue
        total = cpu * point.ranks if point.ranks else None
        reference = total if not rows else reference
        scaling = reference / total if study.kind == "strong" and reference and total else None
        rows.append(_row(study, size, point, elapsed, cpu, scaling))
    return rows


def _profiled_row(study: Study, size: float, point: Point, reference: float | None) -> TimeRow:
    window, useful = point.median("mpi_window_s") or 0.0, point.median("mpi_useful_s")
    share = 1 - (point.median("mpi_useful_share") or 0.0)
    return TimeRow(
        size=size,
        elapsed_s=point.median(study.time_metric) or 0.0,
        cpu_s=cpu_per_rank(study, point) or window * (1 - share),
        off_cpu_s=window * share,
        off_cpu_share=share,
        load_balance=point.median("mpi_load_balance"),
        communication_efficiency=point.median("mpi_communication_efficiency"),
        parallel_efficiency=point.median("mpi_parallel_efficiency") or 0.0,
        computation_scaling=reference / useful if study.kind == "strong" and reference and useful else None,
        oversubscribed=point.outnumbers(study.cores),
        profiled=True,
        no_core_share=point.median("mpi_no_core_share"),
        descheduled_share=point.median("mpi_descheduled_share"),
    )


def _row(study: Study, size: float, point: Point, elapsed: float, cpu: float, scaling: float | None) -> TimeRow:
    imbalance, largest = point.median("cpu_imbalance"), point.median("cpu_max_rank_s")
    if largest is None and imbalance is not None:
        largest = cpu * (1 + imbalance)
    return TimeRow(
        size=size,
        elapsed_s=elapsed,
        cpu_s=cpu,
        off_cpu_s=max(elapsed - cpu, 0.0),
        off_cpu_share=max(1 - cpu / elapsed, 0.0),
        load_balance=cpu / largest if largest else None,
        communication_efficiency=largest / elapsed if largest else None,
        parallel_efficiency=cpu / elapsed,
        computation_scaling=scaling,
        oversubscribed=point.outnumbers(study.cores),
    )


@dataclass(frozen=True, slots=True)
class WireRow:
    """Network figures of one size; None if capture or link do not provide them."""

    size: float
    mean_bps: float | None
    peak_bps: float | None
    """Largest rate of one port in one direction in 10 ms: a capture of all hosts holds the sum of all links."""
    bandwidth_bps: float | None
    link_busy_s: float | None
    """Time that the busiest link needs for its bytes at full rate. Without a host matrix: all bytes over one link, at most."""
    busiest_link_known: bool
    volume_s: float | None
    latency_s: float | None
    """With ``volume_s`` and ``retransmission_s`` the parts of the longest chain of messages (analysis.traffic.chains): they
    follow one another. Latency is that of the unloaded path, and at most this: a host may have had no need to wait."""
    retransmission_s: tuple[float, float] | None
    """Bounds of the wait for retransmissions. Without a chain, per connection: a round trip to a time-out each."""
    retransmitted_share: float | None
    """Retransmitted / all payload bytes."""
    retransmission_rate_bound: float | None
    """Without retransmissions: 95 % upper bound of the rate per packet (rule of three, Hanley and Lippman-Hand 1983)."""
    small_packet_share: float | None

    @property
    def explained_s(self) -> float | None:
        """Return volume, latency and retransmissions together; None if one is unknown."""
        if self.volume_s is None or self.latency_s is None:
            return None
        return self.volume_s + self.latency_s + (self.retransmission_s or (0.0, 0.0))[0]


def wire_part(study: Study) -> list[WireRow]:
    """Return network figures by size.

    Returns
    -------
    list of WireRow
        Medians of the captures, s, bit/s and shares.
    """
    return [_wire(study, size, point) for size, point in study.sized(study.time_metric)]


def mean_rate_bps(point: Point) -> float | None:
    """Return the median rate of the capture in bit/s, whichever unit was stored."""
    rate, bytes_per_s = point.median("throughput_bps"), point.median("throughput_Bps")
    return rate if rate is not None else None if bytes_per_s is None else 8 * bytes_per_s


def _wire(study: Study, size: float, point: Point) -> WireRow:
    bandwidth = study.bandwidth_of(point)
    mean, duration = mean_rate_bps(point), point.median("duration_s") or point.median(study.time_metric)
    line = point.median("line_rate_bps") or mean
    share = busiest_link_share(point.host_matrix)
    busy = line * duration * (share or 1.0) / bandwidth if line and duration and bandwidth else None
    retransmitted, payload = point.median("retransmitted_bytes"), point.median("payload_bytes")
    segments, packets = point.median("retransmitted_segments"), point.median("packets")
    return WireRow(
        size=size,
        mean_bps=mean,
        peak_bps=point.median("port_peak_10ms_bps"),
        bandwidth_bps=bandwidth,
        link_busy_s=busy,
        busiest_link_known=share is not None,
        volume_s=point.median("chain_volume_s"),
        latency_s=point.median("chain_latency_s"),
        retransmission_s=_retransmission_s(point),
        retransmitted_share=retransmitted / payload if retransmitted is not None and payload else None,
        retransmission_rate_bound=3 / packets if segments == 0 and packets else None,
        small_packet_share=point.median("small_packet_share"),
    )


def _round_trip_s(point: Point) -> float | None:
    """Return the round trip of the unloaded path, without queueing."""
    handshake = point.median("rtt_handshake_s")
    return handshake if handshake is not None else point.median("rtt_min_s")


def _retransmission_s(point: Point) -> tuple[float, float] | None:
    measured = point.median("chain_retransmission_s")
    if measured is not None:
        return measured, measured
    segments, connections, round_trip = (
        point.median("retransmitted_segments"),
        point.median("connections"),
        _round_trip_s(point),
    )
    if segments is None or not connections or not round_trip:
        return None
    per_connection = segments / connections
    return per_connection * round_trip, per_connection * max(SMALLEST_TIMEOUT_S, round_trip)


def busiest_link_share(matrix: Mapping[str, Any] | None, *, quantity: str = "wire_bytes") -> float | None:
    """Return the share of all bytes of the busiest host's link; None without a matrix."""
    table = (matrix or {}).get(quantity)
    if not table:
        return None
    total = sum(sum(row) for row in table)
    heaviest = max([*(sum(row) for row in table), *(sum(column) for column in zip(*table, strict=True))])
    return heaviest / total if total else None
