"""Analysis of one capture: decode, accumulate, assess the trust."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from analysis.capture.source import rereadable
from analysis.capture.tables import DecoderName, Progress
from analysis.numbers import SHARE, amount, grouped, plural
from analysis.traffic import legacy, trust
from analysis.traffic.flows import Limits
from analysis.traffic.interarrival import absent
from analysis.traffic.rates import ScopeRates
from analysis.traffic.reading import MOST_FLOWS, MetricsAndReasons, Reading
from analysis.traffic.scopes import ScopeAnalysis
from analysis.traffic.trust import DropCounters, Trust, TrustAccumulator

_JOINED: Final = "offloads joined packets: the times of single packets are unknown"
_NO_MPI = "no MPI traffic: no port range specified and no handshake of an MPI library captured"


@dataclass(frozen=True, slots=True)
class CaptureAnalysis:
    """Results of a capture.

    ``metrics`` by catalogue id; ``not_available``: reasons for absent ones.
    """

    file: str
    capture: dict[str, Any]
    """Facts of the file: format, link types, packets, unread_bytes, decoder, notes ..."""
    everything: ScopeAnalysis
    mpi: ScopeAnalysis
    """The same quantities for MPI traffic alone."""
    trust: Trust
    flows: list[dict[str, Any]]
    matrices: dict[str, Any]
    duration_ns: int
    window_sum: int
    roce: dict[str, Any] | None = None
    """RoCEv2, if the capture has any: see ``RoceAccumulator.result``."""

    @property
    def metrics(self) -> dict[str, float]:
        return self.everything.metrics

    @property
    def not_available(self) -> dict[str, str]:
        return self.everything.not_available

    @property
    def series(self) -> dict[str, Any]:
        return self.everything.series

    @property
    def interarrival(self) -> dict[str, Any]:
        return self.everything.interarrival

    @property
    def size_histogram(self) -> dict[str, list[int]]:
        return self.everything.size_histogram

    def legacy_2011(self, rtt_s: Decimal | str | None = None) -> dict[str, str]:
        """Return the 2011 report, label -> digits. Raises ValueError if T = 0."""
        packets, wire_bytes = int(self.metrics["packets"]), int(self.metrics["wire_bytes"])
        return legacy.legacy_report(packets, wire_bytes, self.duration_ns, self.window_sum, rtt_s)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data, as ``python -m analysis stats --json`` prints it."""
        return {
            "file": self.file,
            "capture": self.capture,
            **self.everything.to_dict(),
            "trust": self.trust.to_dict(),
            "flows": self.flows,
            "matrices": self.matrices,
            "roce": self.roce,
            "mpi": self.mpi.to_dict(),
        }


def analyse(
    path: str | Path,
    *,
    mpi_ports: tuple[int, int] | None = None,
    decoder: DecoderName = "native",
    drops: DropCounters | None = None,
    mtu: int | None = None,
    progress: Progress | None = None,
    bootstrap: int = 0,
    link_rate_bps: float | None = None,
    host_ranks: Mapping[str, Sequence[int]] | None = None,
    one_thread: bool = False,
) -> CaptureAnalysis:
    """Compute the metrics of a capture in bounded memory.

    Parameters
    ----------
    path
        Capture file; a pipe or standard input ("-") is copied first.
    mpi_ports
        TCP port range of the launcher, inclusive.
    decoder
        "native", or "tshark" for more link types.
    drops
        Report of the capture tool.
    mtu
        MTU of the links in bytes.
    progress
        Called with (bytes read, bytes of the file).
    bootstrap
        Replicates for p-values of the fits; 0 for none.
    link_rate_bps
        Rate of every host's link.
    host_ranks
        {address: its ranks}, for MPI libraries that do not name ranks on their connections.
    one_thread
        Work in the caller's thread, whose processor time ``progress`` may limit by an exception.

    Returns
    -------
    CaptureAnalysis
        Metrics in the units of the catalogue.

    Raises
    ------
    CaptureError
    """

    with rereadable(path) as file:
        reader = Reading(mtu, mpi_ports, link_rate_bps)
        results = reader.read(file, decoder, progress, bootstrap, host_ranks or {}, one_thread=one_thread)
    reading, connected = results.reading, results.connected
    reading.facts["notes"] += _left_out(connected.count, connected.limits) + reading.notes()
    whole, rates = results.everything
    _add_tcp(whole, rates, connected.everything)
    _add(whole, reading.ports.metrics(rates.duration_ns))
    _add(whole, reading.chains.metrics())
    mpi = _absent(whole)
    if results.mpi is not None:
        mpi, mpi_rates = results.mpi
        _add_tcp(mpi, mpi_rates, connected.mpi)
    _compare_scopes(whole, mpi)
    if reading.signs.were_split:
        for scope in (whole, mpi):
            _forget_single_times(scope)
    return CaptureAnalysis(
        file=str(path),
        capture=reading.facts,
        everything=whole,
        mpi=mpi,
        trust=_trust(whole, reading.facts | asdict(connected.limits) | reading.left_out(), drops, reading.signs, rates),
        flows=connected.flows,
        matrices=connected.matrices,
        duration_ns=rates.duration_ns,
        window_sum=rates.window_sum,
        roce=reading.roce.result(),
    )


def _left_out(connections: int, limits: Limits) -> list[str]:
    unlisted = max(connections - MOST_FLOWS, 0)
    counts = (
        (
            unlisted,
            "connection is",
            "connections are",
            f"not listed: only the {grouped(MOST_FLOWS)} largest are",
        ),
        (limits.gaps_forgotten, "gap", "gaps", "in sequence numbers dropped"),
        (limits.segments_forgotten, "unacknowledged segment", "unacknowledged segments", "dropped"),
    )
    notes = [f"{plural(count, one, many)} {what}" for count, one, many, what in counts if count]
    if limits.sampled_share < 1:
        notes.append(f"quantiles of TCP are those of {amount(limits.sampled_share, SHARE)} of the samples")
    return notes


def _add(analysis: ScopeAnalysis, measured: MetricsAndReasons) -> None:
    metrics, missing = measured
    analysis.metrics.update(metrics)
    analysis.not_available.update(missing)


def _add_tcp(analysis: ScopeAnalysis, rates: ScopeRates, measured: MetricsAndReasons) -> None:
    """Add the TCP metrics of the scope's flows and the goodput."""
    _add(analysis, measured)
    metrics, missing = measured
    reason = rates.without_time() or missing.get("goodput_bytes")
    if reason is None:
        analysis.metrics["goodput_bps"] = 8 * metrics["goodput_bytes"] / (rates.duration_ns / 1e9)
    else:
        analysis.not_available["goodput_bps"] = reason


def _absent(whole: ScopeAnalysis) -> ScopeAnalysis:
    ids = [*whole.metrics, *whole.not_available]
    return ScopeAnalysis(not_available=dict.fromkeys(ids, _NO_MPI))


def _compare_scopes(whole: ScopeAnalysis, mpi: ScopeAnalysis) -> None:
    packets = whole.metrics["packets"]
    if not packets or "packets" not in mpi.metrics:
        whole.not_available["non_mpi_share"] = _NO_MPI if packets else "no packets"
    else:
        whole.metrics["non_mpi_share"] = 1 - mpi.metrics["packets"] / packets


def _forget_single_times(scope: ScopeAnalysis) -> None:
    """Remove quantiles and peaks, which need the times of single packets."""
    mean_gap = {name: scope.metrics[name] for name in ("interarrival_mean_s",) if name in scope.metrics}
    for name in (*absent(""), "peak_1ms_bps"):
        if scope.metrics.pop(name, None) is not None:
            scope.not_available[name] = _JOINED
    scope.metrics.update(mean_gap)
    for name in mean_gap:
        scope.not_available.pop(name, None)
    scope.interarrival.clear()


def _trust(
    whole: ScopeAnalysis, facts: dict[str, Any], drops: DropCounters | None, signs: TrustAccumulator, rates: ScopeRates
) -> Trust:
    counters, missing = signs.counters(rates.packets, rates.tcp_packets)
    facts = facts | signs.left_out() | {"tool_reported": drops is not None and drops.received is not None}
    from_file, not_in_file = trust.file_counters(facts, drops)
    counters |= from_file
    counters["time_reversals"] = rates.reversals
    if "acked_unseen_segments" in whole.metrics:
        counters["acked_unseen_segments"] = whole.metrics["acked_unseen_segments"]
    whole.metrics.update({name: value for name, value in counters.items() if name != trust.LEFT})
    whole.not_available.update(missing | not_in_file)
    return trust.judge(counters, facts, packets=rates.packets, longest_reversal_ns=rates.longest_reversal_ns)
