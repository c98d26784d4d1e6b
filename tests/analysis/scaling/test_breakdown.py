"""Divisions of time, and the part that the network explains."""

from __future__ import annotations

import pytest

from analysis.scaling import Point, Study, time_breakdown, wire_part
from tests.analysis.scaling.studies import published_water

_STAR = {
    "labels": ["a", "b", "c"],
    "wire_bytes": [[0, 400, 400], [100, 0, 0], [100, 0, 0]],
}


def _point(**values: float) -> Point:
    return Point({"hosts": 4}, {name: [value] * 3 for name, value in values.items()}, ranks=8)


def test_it_splits_elapsed_time_of_the_published_study() -> None:
    rows = time_breakdown(published_water())
    assert rows[0].off_cpu_share == pytest.approx(1 - 141.84 / 245.99)
    assert rows[-1].off_cpu_s == pytest.approx(264.85 - 50.22)
    assert rows[-1].load_balance is None
    assert rows[-1].parallel_efficiency == pytest.approx(50.22 / 264.85)


def test_parallel_efficiency_is_load_balance_times_communication_efficiency() -> None:
    study = Study([_point(elapsed_s=100.0, cpu_mean_rank_s=40.0, cpu_max_rank_s=50.0)])
    (row,) = time_breakdown(study)
    assert row.load_balance == pytest.approx(0.8)
    assert row.communication_efficiency == pytest.approx(0.5)
    assert row.parallel_efficiency == pytest.approx(row.load_balance * row.communication_efficiency)


def test_it_reads_the_mean_from_the_sum_and_the_largest_from_the_imbalance() -> None:
    (row,) = time_breakdown(Study([_point(elapsed_s=100.0, cpu_s=320.0, cpu_imbalance=0.25)]))
    assert row.cpu_s == pytest.approx(40.0)
    assert row.load_balance == pytest.approx(0.8)


def test_it_counts_the_work_that_more_hosts_made() -> None:
    points = [
        Point({"hosts": 2}, {"elapsed_s": [60.0], "cpu_mean_rank_s": [50.0]}, ranks=2),
        Point({"hosts": 4}, {"elapsed_s": [50.0], "cpu_mean_rank_s": [40.0]}, ranks=4),
    ]
    rows = time_breakdown(Study(points, cores=2))
    assert [r.computation_scaling for r in rows] == pytest.approx([1.0, 100 / 160])
    assert [r.oversubscribed for r in rows] == [False, True]


def test_cpu_time_beyond_the_elapsed_time_is_no_negative_waiting() -> None:
    (row,) = time_breakdown(Study([_point(elapsed_s=10.0, cpu_mean_rank_s=10.4)]))
    assert (row.off_cpu_s, row.off_cpu_share) == (0.0, 0.0)


_CAPTURED = {
    "elapsed_s": 100.0, "duration_s": 100.0, "throughput_bps": 1e7, "line_rate_bps": 1.1e7, "packets": 1e6, "connections": 10,
    "pure_ack_share": 0.25, "rtt_median_s": 0.05, "rtt_handshake_s": 0.0004, "retransmitted_segments": 50,
    "retransmitted_bytes": 5e4, "payload_bytes": 1e8,
}  # fmt: skip


def test_without_a_chain_it_bounds_bytes_and_retransmissions_and_says_no_latency() -> None:
    point = Point({"hosts": 4}, {name: [value] for name, value in _CAPTURED.items()}, host_matrix=_STAR)
    (row,) = wire_part(Study([point], link_bandwidth_bps=1e8))
    assert row.link_busy_s == pytest.approx(1.1e7 * 100 * 0.8 / 1e8)
    assert row.busiest_link_known
    assert (row.volume_s, row.latency_s, row.explained_s) == (None, None, None)
    assert row.retransmission_s == pytest.approx((5 * 0.0004, 5 * 0.2)), "of the path, not of its queues"
    assert row.retransmitted_share == pytest.approx(5e-4)
    assert row.retransmission_rate_bound is None


def test_the_parts_of_the_chain_may_be_added_up() -> None:
    chain = {"chain_volume_s": 20.0, "chain_latency_s": 3.0, "chain_retransmission_s": 0.4}
    (row,) = wire_part(Study([_point(**_CAPTURED | chain)], link_bandwidth_bps=1e8))
    assert (row.volume_s, row.latency_s, row.retransmission_s) == (20.0, 3.0, (0.4, 0.4))
    assert row.explained_s == pytest.approx(23.4)


def test_zero_losses_are_given_with_their_upper_bound() -> None:
    (row,) = wire_part(Study([_point(elapsed_s=1.0, packets=3e6, retransmitted_segments=0)]))
    assert row.retransmission_rate_bound == pytest.approx(1e-6)


def test_without_a_capture_the_wire_explains_nothing() -> None:
    (row,) = wire_part(Study([_point(elapsed_s=1.0)], link_bandwidth_bps=1e9))
    assert (row.mean_bps, row.link_busy_s, row.latency_s, row.retransmission_s) == (None, None, None, None)
    assert not row.busiest_link_known
