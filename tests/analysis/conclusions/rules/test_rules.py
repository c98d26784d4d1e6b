"""Each rule speaks where the data bear its claim, and is silent where they do not."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from analysis.conclusions import Finding
from analysis.conclusions.rules.report import find
from analysis.conclusions.sentences.findings import FINDINGS, advice
from analysis.scaling import NOT_STARTED, Study
from tests.analysis.scaling.studies import published_water, simulated, usl_time
from tests.words import plain

_TRUTH = usl_time(300, 0.3, 0.04)


def _findings(study: Study, rule: str) -> list[Finding]:
    return [f for f in find(study).findings if f.rule == rule]


def _study(*, point: dict[str, Any] | None = None, noise: float = 0.02, **truth: Any) -> Study:
    facts = {
        k: truth.pop(k) for k in ("cores", "link_bandwidth_bps", "link_certified", "capture_at", "kind") if k in truth
    }
    metrics: dict[str, Callable[[float], float]] = {"elapsed_s": _TRUTH} | {
        name: value if callable(value) else (lambda n, v=value: v) for name, value in truth.items()
    }
    return simulated(metrics, noise=noise, point=point, **facts)


def _flow(**values: Any) -> dict[str, Any]:
    return {
        "payload_bytes": 1e6, "goodput_bps": 5e7, "rtt_median_s": 0.004, "window_mean_bytes_ab": 32768.0,
        "window_mean_bytes_ba": 65535.0, "window_full_events": 12, "zero_window_events": 0, "bytes_in_flight_p95": 32000.0,
    } | values  # fmt: skip


def test_a_predicted_best_size_is_an_integer_in_words_and_raw_in_numbers() -> None:
    study = simulated({"elapsed_s": usl_time(100, 0.05, 0.02)}, noise=0.02)
    (predicted,) = _findings(study, "predicted_best")
    assert predicted.statement.startswith(
        "Universal Scalability Law predicts the best time at 7 hosts (95 % interval 6 to 7)."
    )
    assert predicted.evidence[0].value == pytest.approx(6.9, abs=0.5)
    assert predicted.evidence[0].value != round(predicted.evidence[0].value)


def test_nothing_is_predicted_from_fewer_sizes_than_test_a_model() -> None:
    study = simulated({"elapsed_s": usl_time(100, 0.05, 0.05)}, hosts=(1, 2, 4, 8), noise=0.02)
    assert not _findings(study, "predicted_best")


def test_it_says_where_computing_falls_while_time_rises() -> None:
    (finding,) = _findings(_study(cpu_mean_rank_s=lambda n: 200 / n, cores=8), "cpu_falls_time_rises")
    assert finding.statement.startswith("From 4 to 12 hosts CPU time per rank falls")
    assert "more ranks than cores" in finding.caveat
    assert not _findings(_study(cpu_mean_rank_s=20.0), "cpu_falls_time_rises")


def test_cpu_time_as_a_sum_over_ranks_serves_as_well() -> None:
    (finding,) = _findings(_study(cpu_s=lambda n: 400.0 + 20 * n), "cpu_scaling")
    assert finding.statement.startswith("CPU time per rank falls by")
    assert not _findings(_study(cpu_s=lambda n: 100.0 * n), "cpu_scaling")


def test_it_names_the_step_at_which_packets_jump() -> None:
    (finding,) = _findings(_study(packets=lambda n: 2e5 if n <= 4 else 4.7e5), "packet_step")
    assert finding.statement.startswith("Packets rise 2.4 times from 4 to 6 hosts") or "2.3 times" in finding.statement
    assert not _findings(_study(packets=lambda n: 1e5 * n), "packet_step")


def test_waiting_that_grows_is_said_if_time_has_not_turned() -> None:
    study = _study(elapsed_s=lambda n: 100 + 300 / n, cpu_mean_rank_s=lambda n: 480 / n)
    (finding,) = _findings(study, "waiting_grows")
    assert finding.statement.startswith("Time off the CPU rises from")


@pytest.mark.parametrize(
    ("metric", "above", "below", "rule", "words"),
    [
        ("small_packet_share", 0.42, 0.1, "small_packets", "hosts (6 sizes) are below 100 bytes."),
        ("interarrival_cv", 4.2, 1.0, "arrivals", "Packets come in bursts"),
        ("cpu_imbalance", 0.3, 0.02, "load_imbalance", "The load is uneven"),
        ("iteration_period_s", 0.0123, None, "iteration", "The traffic repeats every 12"),
        ("packet_size_mean_bytes", 612.0, None, "packet_size", "is 606 to 630"),
    ],
)
def test_it_reads_one_metric(metric: str, above: float, below: float | None, rule: str, words: str) -> None:
    (finding,) = _findings(_study(**{metric: above}), rule)
    assert words in finding.statement
    assert any(e.metric == metric for e in finding.evidence)
    assert not _findings(_study(**({metric: below} if below is not None else {})), rule)


def test_a_full_link_is_saturated_and_bursts_may_fill_it() -> None:
    full = {"link_bandwidth_bps": 1e8, "link_certified": True, "capture_at": "host"}
    (finding,) = _findings(_study(throughput_bps=9.3e7, **full), "link_load")
    assert finding.statement.startswith("The link is saturated at")
    assert finding.strength == "strong"
    (finding,) = _findings(_study(throughput_bps=1.2e7, port_peak_10ms_bps=9.7e7, **full), "link_load")
    assert finding.statement.startswith("Bursts fill the link")
    (finding,) = _findings(_study(throughput_bps=1.2e7, port_peak_10ms_bps=2.02e8, **full), "link_load")
    assert "10 ms peak is 205 % of 100 Mbit/s" in plain(finding.statement)
    (finding,) = _findings(_study(throughput_bps=1.2e7, link_bandwidth_bps=1e8), "link_load")
    assert finding.statement.startswith("The link is not full at 2")
    assert "no certificate" in finding.caveat
    assert not _findings(_study(throughput_bps=1.2e7), "link_load")


def test_bytes_of_many_links_are_no_saturated_link_and_their_bursts_fill_none() -> None:
    (finding,) = _findings(_study(throughput_bps=1.2e7, peak_10ms_bps=1.5e8, link_bandwidth_bps=1e8), "link_load")
    assert finding.statement.startswith("The link is not full")
    (finding,) = _findings(_study(throughput_bps=9.3e7, link_bandwidth_bps=1e8, capture_at="bridge"), "link_load")
    assert "saturated" not in finding.statement
    assert "the true load is at most this" in finding.caveat


def test_it_separates_window_bound_from_latency_bound_flows() -> None:
    window = _study(point={"flows": [_flow()]})
    (finding,) = _findings(window, "window_bound")
    assert plain(finding.statement).startswith("1 connection runs at the limit of the TCP window at 2 hosts: 50 Mbit/s")
    # A capture in the middle of the path sees half of the round trip: the limit is that of the whole.
    (finding,) = _findings(_study(point={"flows": [_flow(rtt_handshake_s=0.005)]}), "window_bound")
    assert finding.evidence[2].value == pytest.approx(8 * 32768 / 0.005)
    latency = _flow(bytes_in_flight_p95=1000.0, goodput_bps=1.8e6, window_full_events=0)
    (finding,) = _findings(_study(point={"flows": [latency] * 3}), "latency_bound")
    assert finding.statement.startswith("3 connections run one message per round trip")
    fast = _flow(window_full_events=0, goodput_bps=1e9, bytes_in_flight_p95=4e6)
    assert not _findings(_study(point={"flows": [fast]}), "window_bound")
    assert not _findings(_study(point={"flows": [fast]}), "latency_bound")
    unknown = dict.fromkeys(_flow())
    assert not _findings(_study(point={"flows": [unknown]}), "window_bound")


def test_retransmissions_come_with_what_they_cost() -> None:
    lossy = {"retransmitted_bytes": 8e5, "payload_bytes": 1e8, "retransmitted_segments": 600.0, "connections": 12.0}
    (finding,) = _findings(_study(rtt_handshake_s=0.0002, **lossy), "retransmissions")
    assert "% of the payload is retransmitted" in finding.statement
    assert "costs each connection between" in finding.statement
    (finding,) = _findings(_study(rtt_handshake_s=0.0002, chain_retransmission_s=1.5, **lossy), "retransmissions")
    assert ", and the run waits 1." in finding.statement
    assert not _findings(_study(**lossy | {"retransmitted_bytes": 1e3}), "retransmissions")


def test_the_wires_part_of_waiting_is_bounded() -> None:
    study = _study(cpu_mean_rank_s=lambda n: 100 / n, throughput_bps=1e6, link_bandwidth_bps=1e8, link_certified=True)
    (finding,) = _findings(study, "waiting_explained")
    assert finding.statement.startswith("Moving the bytes explains at most")
    in_a_row = _study(
        cpu_mean_rank_s=lambda n: 100 / n, throughput_bps=1e6, link_bandwidth_bps=1e8, chain_volume_s=90.0
    )
    assert not _findings(in_a_row, "waiting_explained"), "one host after the other moves more than one port does"


_EVEN = [[0 if i == j else 100 for j in range(4)] for i in range(4)]
_PAIR = [[0, 900, 10, 10], [900, 0, 10, 10], [10, 10, 0, 10], [10, 10, 10, 0]]
_STAR = [[0, 300, 300, 300], [300, 0, 0, 0], [300, 0, 0, 0], [300, 0, 0, 0]]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (_PAIR, "of the bytes go between host a and host b"),
        (_STAR, "host a sends or receives 100 % of all bytes"),
        (_EVEN, None),
    ],
    ids=["pair", "star", "even"],
)
def test_it_sees_traffic_concentrated_on_a_pair_or_a_host(table: list[list[int]], words: str | None) -> None:
    findings = _findings(_study(point={"host_matrix": {"labels": list("abcd"), "wire_bytes": table}}), "matrix_skew")
    assert [words in plain(f.statement) for f in findings if words] == ([True] if words else [])
    assert bool(findings) == bool(words)


def test_ranks_that_share_cores_are_said_to() -> None:
    (finding,) = _findings(_study(cores=16), "oversubscribed")
    assert finding.statement.startswith("From 10 hosts on, 20 to 24 ranks share 16 cores")
    assert not _findings(_study(cores=24), "oversubscribed")
    (finding,) = _findings(_study(cores=48, point={"threads": 4}), "oversubscribed")
    assert "24 ranks with 4 threads each share 48 cores" in finding.statement


def test_no_advice_is_followed_already_with_one_rank_per_host() -> None:
    study = _study(cores=16)
    points = [replace(p, parameters={**p.parameters, "ranks_per_host": 1}) for p in study.points]
    (finding,) = _findings(replace(study, points=points), "oversubscribed")
    assert "rank per host" not in finding.next_step
    assert "virtual hosts share this machine's cores" in finding.next_step
    steps = [(name.partition(",")[0], text.next_step) for name, text in FINDINGS.items()]
    fewer = {name for name, step in steps if "per host" in step and name != "threads_as_cores"}
    assert len(fewer) == 7
    assert not [name for name, step in steps if name in fewer and "per host" in advice(name, step, True, 2)]


def test_captures_and_links_that_are_not_good_are_named_with_the_reason() -> None:
    point = {
        "trust": {"good": 4, "degraded": 1},
        "trust_reasons": ["0.31 % of the packets were dropped"],
        "link_warnings": ["delay 5.1 ms instead of 4 ms"],
        "excluded": {"warm-up": 1, "failed": 2},
    }
    study = _study(point=point)
    assert _findings(study, "degraded_capture")[0].statement == (
        "6 captures at 2 to 12 hosts (6 sizes) are flagged (0.31 % of the packets were dropped)."
    )
    reasons = ["other programs took 67.5 % of this trial's cores", "other programs took 80 % of this trial's cores"]
    loaded = _findings(_study(point={**point, "trust_reasons": reasons}), "degraded_capture")[0].statement
    assert ("67.5 %" in loaded, "80 %" in loaded) == (True, False)
    one, *others = study.points
    once = replace(study, points=[one, *(replace(other, trust={"good": 5}) for other in others)])
    assert _findings(once, "degraded_capture")[0].statement.startswith("1 capture at 2 hosts is flagged")
    assert "delay 5.1 ms instead of 4 ms" in _findings(study, "degraded_link")[0].statement
    assert _findings(study, "left_out")[0].statement == (
        "12 trials at 2 to 12 hosts (6 sizes) are excluded: failed, lost or cancelled."
    )
    assert not _findings(_study(point={"trust": {"good": 5}, "excluded": {"warm-up": 1, NOT_STARTED: 2}}), "left_out")


_TRAFFIC: dict[str, Any] = {
    "throughput_bps": 3e7, "packets": lambda n: 2e5 if n <= 4 else 4.7e5, "small_packet_share": 0.4, "interarrival_cv": 4.0,
    "iteration_period_s": 0.01, "packet_size_mean_bytes": 600.0, "cpu_mean_rank_s": lambda n: 200 / n, "cores": 8,
    "retransmitted_bytes": 1e4, "payload_bytes": 1e6, "link_bandwidth_bps": 1e8, "capture_at": "host",
}  # fmt: skip
_PROFILE: dict[str, Any] = {
    "mpi_window_s": 90.0, "mpi_useful_s": lambda n: 300.0 + 60 * n, "mpi_useful_max_rank_s": 89.0, "mpi_load_balance": 0.7,
    "mpi_communication_efficiency": 0.6, "mpi_parallel_efficiency": 0.42, "mpi_useful_share": 0.4, "mpi_no_core_share": 0.4,
    "mpi_descheduled_share": 0.3, "mpi_blocked_outside_share": 0.1, "mpi_transfer_efficiency": 0.6, "mpi_wait_share": 0.3,
    "mpi_serialisation_efficiency": 0.7, "mpi_wait_no_core_share": 0.8, "cpu_mean_rank_s": 20.0,
}  # fmt: skip
_BAD = {"trust": {"degraded": 5}, "link_warnings": ["delay 5 ms instead of 4 ms"], "excluded": {"failed": 2}}


@pytest.mark.parametrize(
    "study",
    [
        published_water(link_bandwidth_bps=1e9),
        _study(**_TRAFFIC),
        _study(**_PROFILE),
        _study(**_PROFILE, cores=8),
        _study(noise=0.3, point=_BAD | {"flows": [_flow(), _flow(bytes_in_flight_p95=1000.0, window_full_events=0)]}),
    ],
)
def test_each_finding_names_its_sizes(study: Study) -> None:
    statements = [plain(finding.statement) for finding in find(study).findings]
    assert len(statements) > 2
    assert not [words for words in statements if not re.search(r"\d(-host| hosts?)\b", words)]
