"""One small exchange per TCP metric, with numbers that can be verified on paper."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from analysis.traffic.tcp import TcpAccumulator
from tests.analysis.segments import ACK, FIN, SYN, Segment, table_of

OPENING = [
    Segment(0, 0, 999, 0, SYN, window=500, wscale=2),
    Segment(20, 1, 4999, 1000, SYN | ACK, window=400, wscale=3),
    Segment(100, 0, 1000, 5000, ACK, window=60),
]


def metrics_of(segments: Sequence[Segment], *, opened: bool = True) -> dict[str, int | float]:
    accumulator = TcpAccumulator()
    accumulator.update(table_of([*OPENING, *segments] if opened else segments))
    return accumulator.result().metrics()[0]


def data(time_ns: int, start: int, size: int, **others: int) -> Segment:
    return Segment(time_ns, 0, 1000 + start, 5000, ACK, size, **others)


def answer(time_ns: int, upto: int, **others: int) -> Segment:
    return Segment(time_ns, 1, 5000, 1000 + upto, ACK, **others)


def test_a_retransmission_counts_the_bytes_that_were_seen_before() -> None:
    metrics = metrics_of([data(200, 0, 100), data(210, 100, 100), data(300, 50, 200)])
    assert (metrics["retransmitted_segments"], metrics["retransmitted_bytes"]) == (1, 150)
    assert metrics["goodput_bytes"] == 250


@pytest.mark.parametrize(("delay_ns", "ambiguous"), [(99, 0), (100, 1)])
def test_a_filled_gap_is_reordering_for_certain_only_within_one_round_trip(delay_ns: int, ambiguous: int) -> None:
    metrics = metrics_of([data(200, 0, 10), data(300, 20, 10), data(300 + delay_ns, 10, 10)])
    assert (metrics["out_of_order_segments"], metrics["retransmitted_segments"]) == (1, 0)
    assert metrics["ambiguous_segments"] == ambiguous


def test_the_last_byte_that_comes_after_the_fin_fills_a_gap_and_gives_no_round_trip() -> None:
    """The FIN was seen, so the byte below it, lost before, was missing."""
    metrics = metrics_of(
        [data(200, 0, 10), answer(240, 10), Segment(300, 0, 1011, 5000, ACK | FIN), data(500, 10, 1), answer(506, 12)]
    )
    assert (metrics["out_of_order_segments"], metrics["ambiguous_segments"]) == (1, 1)
    assert (metrics["rtt_samples"], metrics["rtt_min_s"]) == (1, pytest.approx(40e-9))
    assert metrics["goodput_bytes"] == 11


def test_an_ack_of_a_fin_covers_the_byte_below_it_that_never_came() -> None:
    metrics = metrics_of([data(200, 0, 10), Segment(300, 0, 1011, 5000, ACK | FIN), answer(400, 12)])
    assert metrics["acked_unseen_segments"] == 1


def test_the_third_duplicate_ack_in_a_row_is_a_triple_and_the_fourth_is_not_another() -> None:
    sent = [data(200, 0, 10), data(201, 10, 10), data(202, 20, 10)]
    metrics = metrics_of([*sent, answer(300, 10), *(answer(310 + k, 10) for k in range(4))])
    assert (metrics["duplicate_acks"], metrics["triple_duplicate_acks"]) == (4, 1)


def test_an_ack_with_another_window_or_with_nothing_outstanding_is_no_duplicate() -> None:
    metrics = metrics_of(
        [data(200, 0, 10), answer(210, 10), answer(220, 10), data(230, 10, 10), answer(240, 10, window=9)]
    )
    assert metrics["duplicate_acks"] == 0


def test_a_keep_alive_is_no_retransmission_but_an_unacknowledged_byte_or_a_whole_segment_is() -> None:
    metrics = metrics_of([data(200, 0, 10), answer(210, 10), data(900, 9, 1), data(1900, 9, 0)])
    assert (metrics["keep_alives"], metrics["retransmitted_segments"]) == (2, 0)
    for outstanding in ([data(200, 0, 10), data(900, 9, 1)], [data(200, 0, 1), answer(210, 1), data(900, 0, 1)]):
        metrics = metrics_of(outstanding)
        assert (metrics["keep_alives"], metrics["retransmitted_segments"]) == (0, 1)


def test_probes_of_a_closed_window_count_separately() -> None:
    closed = [data(200, 0, 10), answer(210, 10, window=0)]
    metrics = metrics_of([*closed, data(900, 10, 1), data(1800, 10, 1)])
    assert (metrics["zero_window_events"], metrics["zero_window_probes"]) == (1, 2)
    assert (metrics["retransmitted_segments"], metrics["keep_alives"], metrics["window_full_events"]) == (0, 0, 0)
    without_data = metrics_of([*closed, data(900, 9, 0)])
    assert (without_data["zero_window_probes"], without_data["keep_alives"]) == (1, 0)


def test_windows_are_scaled_except_in_the_syn() -> None:
    metrics = metrics_of([answer(200, 0, window=10), Segment(210, 1, 5000, 1000, FIN | ACK, window=7)])
    advertised = [500, 400, 60 << 2, 10 << 3, 7 << 3]
    assert metrics["window_mean_bytes"] == pytest.approx(sum(advertised) / 5)
    assert metrics["window_min_bytes"] == 7 << 3


def test_one_syn_without_the_option_switches_scaling_off_and_shifts_above_14_count_as_14() -> None:
    plain = [Segment(0, 0, 999, 0, SYN, window=500), Segment(1, 1, 4999, 1000, SYN | ACK, window=400, wscale=9)]
    assert metrics_of([*plain, answer(5, 0, window=10)], opened=False)["window_min_bytes"] == 10
    wide = [
        Segment(0, 0, 999, 0, SYN, window=500, wscale=40),
        Segment(1, 1, 4999, 1000, SYN | ACK, wscale=0, window=400),
    ]
    metrics = metrics_of([*wide, Segment(2, 0, 1000, 5000, ACK, window=3)], opened=False)
    assert metrics["window_mean_bytes"] == pytest.approx((500 + 400 + (3 << 14)) / 3)


def test_a_segment_up_to_the_right_edge_fills_the_window() -> None:
    metrics = metrics_of([answer(150, 0, window=5), data(200, 0, 39), data(210, 39, 1), answer(300, 40, window=5)])
    assert metrics["window_full_events"] == 1
    assert metrics["bytes_in_flight_max"] == 40


def test_an_ack_inside_a_super_segment_gives_a_round_trip() -> None:
    metrics = metrics_of([data(200, 0, 60000), answer(230, 1448), answer(270, 60000)])
    assert (metrics["rtt_samples"], metrics["rtt_min_s"], metrics["rtt_median_s"]) == (
        2,
        pytest.approx(30e-9),
        pytest.approx(50e-9),
    )


def test_repeated_bytes_give_no_round_trip_and_neither_do_bytes_that_waited_for_them() -> None:
    late = [data(200, 0, 10), data(210, 10, 10), data(400, 0, 10), answer(450, 20)]
    assert metrics_of(late)["rtt_samples"] == 0
    afterwards = [data(200, 0, 10), data(400, 0, 10), data(410, 10, 10), answer(450, 20)]
    assert metrics_of(afterwards)["rtt_min_s"] == pytest.approx(40e-9)


def test_an_ack_that_carries_data_is_a_response_not_a_round_trip() -> None:
    metrics = metrics_of([data(200, 0, 10), Segment(950, 1, 5000, 1010, ACK, 33)])
    assert (metrics["rtt_samples"], metrics["response_latency_s"]) == (0, pytest.approx(750e-9))


def test_the_handshake_splits_at_the_capture_point() -> None:
    metrics = metrics_of([])
    assert metrics["rtt_half_b_s"] == pytest.approx(20e-9)
    assert metrics["rtt_half_a_s"] == pytest.approx(80e-9)
    assert metrics["rtt_handshake_s"] == pytest.approx(100e-9)


def test_a_handshake_whose_last_ack_was_not_captured_has_no_time() -> None:
    assert "rtt_handshake_s" not in metrics_of([*OPENING[:2], data(5000, 0, 10)], opened=False)


@pytest.mark.parametrize("acked", [20, 30])
def test_acks_of_bytes_never_captured_are_counted_once(acked: int) -> None:
    """20: inside a gap; 30: beyond everything seen."""
    sent = [data(200, 0, 10), data(220, 20, 5)] if acked == 20 else [data(200, 0, 10)]
    assert metrics_of([*sent, answer(300, acked), answer(310, acked)])["acked_unseen_segments"] == 1


@pytest.mark.parametrize(("late_ns", "unseen"), [(10_000, 0), (1_000_000, 0), (1_000_001, 1)])
def test_an_ack_that_is_recorded_just_before_its_data_is_not_of_bytes_never_captured(late_ns: int, unseen: int) -> None:
    swapped = [
        data(200, 0, 10),
        answer(300, 20),
        data(300 + late_ns, 10, 10),
        answer(2_000_000, 30),
        answer(2_000_100, 30),
    ]
    metrics = metrics_of([*swapped[:3], data(1_900_000, 20, 10), *swapped[3:]])
    assert metrics["acked_unseen_segments"] == unseen
    assert metrics["retransmitted_segments"] == 0
    assert metrics["goodput_bytes"] == 30


def test_sequence_numbers_wrap() -> None:
    start = 2**32 - 15
    segments = [Segment(0, 0, start, 7, ACK, 10), Segment(10, 0, start + 10, 7, ACK, 10)]
    segments += [
        Segment(20, 0, start + 20, 7, ACK, 10),
        Segment(50, 1, 7, start + 30, ACK),
        Segment(60, 0, start, 7, ACK, 5),
    ]
    metrics = metrics_of(segments, opened=False)
    assert (metrics["goodput_bytes"], metrics["retransmitted_bytes"], metrics["out_of_order_segments"]) == (30, 5, 0)
    assert metrics["rtt_min_s"] == pytest.approx(30e-9)


def test_more_than_four_gibibytes_on_one_connection_stay_in_order() -> None:
    step = 2**31 - 1
    segments = [Segment(k, 0, 5 + k * step, 7, ACK, step) for k in range(5)]
    metrics = metrics_of(segments, opened=False)
    assert metrics["goodput_bytes"] == 5 * step
    assert metrics["retransmitted_segments"] == metrics["out_of_order_segments"] == 0


def test_the_bandwidth_delay_product_is_goodput_times_the_smallest_round_trip() -> None:
    metrics = metrics_of([data(200, 0, 1000), answer(250, 1000), data(1000, 1000, 1000)])
    assert metrics["bdp_bytes"] == pytest.approx(2000 / 1000e-9 * 50e-9)


@pytest.mark.parametrize(("near", "kept"), [(0, "ab"), (1, "ba")])
def test_at_a_host_only_round_trips_across_the_path_make_the_flows_rtt(near: int, kept: str) -> None:
    """Side ``near`` answers within a microsecond, the other takes ten milliseconds."""
    quick, slow = 1_000, 10_000_000
    answers, closes = (slow, slow + quick) if near == 0 else (quick, slow + quick)
    segments = [Segment(0, 0, 99, 0, SYN), Segment(answers, 1, 499, 100, SYN | ACK), Segment(closes, 0, 100, 500, ACK)]
    later = 10 * slow
    for side in (0, 1):
        segments.append(Segment(later + side * slow, side, (100, 500)[side], (500, 110)[side], ACK, 10))
        acknowledged = later + side * slow + (quick if 1 - side == near else slow)
        segments.append(Segment(acknowledged, 1 - side, (500, 110)[side], (110, 510)[side], ACK))
    accumulator = TcpAccumulator()
    accumulator.update(table_of(segments))
    (row,) = accumulator.result().flows()
    metrics, _ = accumulator.result().metrics()
    assert (row["rtt_of"], row["rtt_samples"], metrics["rtt_samples"]) == (kept, 1, 1)
    assert (row["rtt_samples_ab"], row["rtt_samples_ba"]) == (1, 1)
    for values in (row, metrics):
        assert values["rtt_min_s"] == values["rtt_median_s"] == values["rtt_p95_s"] == pytest.approx(slow * 1e-9)
    assert min(row["rtt_min_s_ab"], row["rtt_min_s_ba"]) == pytest.approx(quick * 1e-9)
    assert row["bdp_bytes"] == pytest.approx(20 / row["duration_s"] * slow * 1e-9)


@pytest.mark.parametrize("acked", [1, 31, 61])
def test_a_syn_with_data_opens_one_connection_whatever_of_it_is_acknowledged(acked: int) -> None:
    """TCP Fast Open: the server may take all, a part or nothing of the data."""
    segments = [
        Segment(0, 0, 100, 0, SYN, 60),
        Segment(10, 1, 500, 100 + acked, SYN | ACK),
        Segment(11, 1, 501, 100 + acked, ACK, 40),
        Segment(20, 0, 161, 541, ACK),
    ]
    metrics = metrics_of(segments, opened=False)
    assert (metrics["connections"], metrics["goodput_bytes"]) == (1, 100)
    assert metrics["retransmitted_segments"] == 0


def test_the_byte_of_a_probe_is_no_retransmission_when_it_is_sent_with_the_rest() -> None:
    closed = [
        data(10, 0, 100),
        answer(20, 100, window=0),
        data(30, 100, 1),
        answer(35, 100, window=0),
        data(40, 100, 1),
    ]
    opened = [*closed, answer(45, 100, window=1000), data(50, 100, 400)]
    metrics = metrics_of(opened)
    assert (metrics["zero_window_probes"], metrics["retransmitted_segments"], metrics["goodput_bytes"]) == (2, 0, 500)
    assert metrics_of([*opened, data(60, 100, 400)])["retransmitted_bytes"] == 400
    taken = [*closed, answer(45, 101, window=1000), data(50, 100, 400)]
    assert metrics_of(taken)["retransmitted_bytes"] == 1
