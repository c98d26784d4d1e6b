"""Network traffic of a trial: charts, matrices, largest connections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analysis import numbers
from dashboard.charts.traffic import interarrival_ccdf, neighbours_together, traffic_matrix
from dashboard.charts.trial import packet_sizes, size_classes, throughput_over_time
from dashboard.panels.trial.between import between_address, connection_filter
from experiments import workloads
from experiments.files import read_analysis
from experiments.models import Trial
from experiments.specification.design import link_of

MOST_QUEUE_PAIRS = 10


def roce_of(roce: Mapping[str, Any] | None, wire_bytes: float | None) -> dict[str, Any] | None:
    """Return the context of the RoCE panel; None without RoCE packets."""
    if not roce:
        return None
    rates = roce.get("rates") or {}
    return {
        "answer": _answer(roce, wire_bytes),
        "rows": [
            ("Mean rate", numbers.amount(rates.get("throughput_bps"), "bit/s")),
            ("Highest rate in 10 ms", numbers.amount(rates.get("peak_10ms_bps"), "bit/s")),
            *((name, numbers.grouped(count)) for name, count in roce["operations"].items()),
            ("Retransmitted packets", numbers.grouped(roce["retransmitted_packets"])),
            ("Packets marked by switches", numbers.grouped(roce["marked_packets"])),
            ("Congestion notifications", numbers.grouped(roce["congestion_notifications"])),
        ],
        "pairs": roce["queue_pairs"][:MOST_QUEUE_PAIRS],
        "pair_count": len(roce["queue_pairs"]),
    }


def _answer(roce: Mapping[str, Any], wire_bytes: float | None) -> str:
    share = f"{numbers.amount(roce['wire_bytes'] / wire_bytes, numbers.SHARE)} of all bytes" if wire_bytes else ""
    much = share or numbers.amount(roce["wire_bytes"], "B")
    again, packets = roce["retransmitted_packets"], roce["packets"]
    slowed = roce["marked_packets"] + roce["congestion_notifications"]
    lost = (
        f"{numbers.plural(again, 'packet')} of {numbers.grouped(packets)} "
        f"({numbers.amount(again / packets, numbers.SHARE)}) {'was' if again == 1 else 'were'} retransmitted"
    )
    if again and slowed:
        verdict = f"{lost}, and switches asked senders to slow down: the network was congested and lost packets"
    elif again:
        verdict = f"{lost}, but no switch asked to slow down: packets were lost, or acknowledgements late"
    elif slowed:
        verdict = "no packet was retransmitted, but switches asked senders to slow down: the network was congested"
    else:
        verdict = "no packet was retransmitted and no switch asked to slow down: no sign of congestion"
    return f"RoCEv2 carries {much}; {verdict}."


MOST_FLOWS = 10


def wire_of(trial: Trial, values: Mapping[str, float], *, has_packets: bool) -> dict[str, Any]:
    """Return charts and trust of the stored analysis, or nothing without capture."""
    analysis = read_analysis(trial)
    counters = ((analysis or {}).get("trust") or {}).get("counters") or {}
    series = (analysis or {}).get("series") or {}
    if analysis is None or not series.get("wire_bytes"):
        return {"analysis": False, "counters": counters}
    sizes = analysis.get("size_histogram") or {}
    mean = values.get("throughput_Bps")
    throughput = throughput_over_time(
        series["wire_bytes"],
        series.get("bin_s") or 1.0,
        mean_bytes_per_s=mean,
        port_bytes_per_s=_port_bytes_per_s(trial),
        zero_s=series.get("start_s"),
    )
    gaps = analysis.get("interarrival") or {}
    ccdf = gaps.get("ccdf") or {}
    workload = workloads.find(trial.experiment.workload)
    # The report of 2011 has no program of a user.
    legacy = (
        {}
        if workload is None or workload.registered or workload.slug == "command"
        else analysis.get("legacy_2011") or {}
    )
    return {
        "analysis": True,
        "bin_words": numbers.amount(series.get("bin_s") or 0, "s"),
        "mean_throughput": mean,
        "throughput": throughput,
        "sizes": packet_sizes(size_classes(sizes.get("orig_len") or [], sizes.get("packets") or [])),
        "small_share": values.get("small_packet_share"),
        "gaps": interarrival_ccdf(ccdf.get("gap_s") or [], ccdf.get("share_longer") or [], gaps.get("fits") or []),
        "fits": gaps.get("fits") or [],
        **_matrix(analysis.get("matrices") or {}, trial if has_packets else None),
        **_flows(analysis.get("flows") or []),
        "roce": roce_of(analysis.get("roce"), values.get("wire_bytes")),
        "counters": counters,
        "legacy": legacy.get("figures") or {},
        "legacy_caveats": legacy.get("caveats") or [],
    }


def _port_bytes_per_s(trial: Trial) -> float | None:
    """Return the rate of the shaped link of all hosts; None without one."""
    if trial.cluster is None or not trial.cluster.traits.emulates:
        return None
    link = link_of(trial.configuration.parameters)
    return None if link.rates or not link.bandwidth else link.bandwidth / 8


def _matrix(matrices: Mapping[str, Any], trial: Trial | None) -> dict[str, Any]:
    """Return the matrix by rank if all ranks are known, else by host with a reason."""
    ranks = matrices.get("ranks") or {}
    by_host_alone = ranks.get("by_host_alone") or ""
    of = "rank" if ranks.get("labels") and not by_host_alone else "host"
    chosen = matrices.get(f"{of}s") or {}
    leads = between_address(trial.pk, of) if trial else ""
    figure = traffic_matrix(chosen.get("labels") or [], chosen.get("wire_bytes") or [], of=of, leads=leads)
    together = neighbours_together(len(chosen.get("labels") or []))
    return {
        "matrix": figure,
        "matrix_of": of,
        "matrix_by_host": by_host_alone,
        "matrix_omitted": chosen.get("omitted") or 0,
        "matrix_together": together if together > 1 else 0,
    }


def _flows(flows: list[dict[str, Any]]) -> dict[str, Any]:
    total = sum(flow["wire_bytes"] for flow in flows) or 1
    largest = sorted(flows, key=lambda flow: -flow["wire_bytes"])[:MOST_FLOWS]
    return {
        "flows": [
            {
                **flow,
                "name": _between(flow),
                "filter": connection_filter(flow),
                "share": flow["wire_bytes"] / total,
                "percent": 100 * flow["wire_bytes"] / total,
            }
            for flow in largest
        ],
        "flow_count": len(flows),
    }


def _between(flow: Mapping[str, Any]) -> str:
    if flow.get("rank_a") is None or flow.get("rank_b") is None:
        return f"{flow['host_a']} ↔ {flow['host_b']}"
    return f"ranks {flow['rank_a']} ↔ {flow['rank_b']}"
