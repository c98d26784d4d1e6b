"""How far a capture may be believed."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import analysis
from analysis import DropCounters
from analysis.traffic.trust import TrustAccumulator, judge
from tests.analysis import capture_files as files
from tests.analysis.capture_files import Frame
from tests.analysis.frames import ethernet, ipv4, tcp
from tests.analysis.recordings.undisturbed import analysed_stream
from tests.analysis.segments import ACK, Segment, table_of

MS = 10**6
MSS_1460 = b"\x02\x04\x05\xb4"


def analysed(tmp_path: Path, frames: list[Frame], **options: object) -> analysis.CaptureAnalysis:
    path = tmp_path / "file.pcap"
    path.write_bytes(files.pcap(frames))
    return analysis.analyse(path, **options)  # type: ignore[arg-type]


def data(time_ns: int, identity: int, *, seq: int = 1, size: int = 100) -> Frame:
    return Frame.whole(10**15 + time_ns, ethernet(ipv4(tcp(seq=seq, payload=b"d" * size), identity=identity)))


def steady(count: int = 10) -> list[Frame]:
    return [data(k * MS, k, seq=1 + 100 * k) for k in range(count)]


def test_a_clean_capture_is_good(tmp_path: Path) -> None:
    trust = analysed(tmp_path, steady(), mtu=1500).trust
    assert (trust.verdict, trust.reasons) == ("good", ())


def test_the_tools_own_report_counts(tmp_path: Path) -> None:
    result = analysed(tmp_path, steady(), drops=DropCounters(captured=10, received=12, dropped=0))
    assert result.metrics["tail_lost"] == 2
    assert result.trust.verdict == "degraded"
    assert "stopped too early" in result.trust.reasons[0]


@pytest.mark.parametrize(("unacknowledged", "reasons"), [(4096, ()), (4100, ("4 unacknowledged segments",))])
def test_missing_round_trips_lower_the_trust(tmp_path: Path, unacknowledged: int, reasons: tuple[str, ...]) -> None:
    sent = [data(k * MS, k, seq=1 + 10 * k, size=10) for k in range(unacknowledged)]
    answer = ipv4(tcp(20_000, 40_000, seq=1, ack=1 + 10 * unacknowledged), source="10.0.0.2", destination="10.0.0.1")
    result = analysed(tmp_path, [*sent, Frame.whole(10**15 + unacknowledged * MS, ethernet(answer))])
    expected = tuple(f"{forgotten} that did not fit into memory: round trips are missing" for forgotten in reasons)
    assert (result.trust.verdict, result.trust.reasons) == ("degraded" if reasons else "good", expected)


def test_without_a_report_nothing_is_claimed_about_drops(tmp_path: Path) -> None:
    result = analysed(tmp_path, steady())
    for name in ("dropped_by_kernel", "received_by_filter", "captured", "tail_lost"):
        assert name not in result.metrics
        assert "report" in result.not_available[name]


@pytest.mark.parametrize(("dropped", "verdict"), [(0, "good"), (1, "unusable")])
def test_many_drops_make_it_unusable(tmp_path: Path, dropped: int, verdict: str) -> None:
    drops = DropCounters(captured=10, received=10, dropped=dropped)
    assert analysed(tmp_path, steady(), drops=drops).trust.verdict == verdict


def test_few_drops_degrade_it() -> None:
    facts = {"packets": 1000}
    trust = judge({"dropped_by_kernel": 3}, facts, packets=1000, longest_reversal_ns=0)
    assert (trust.verdict, trust.reasons) == ("degraded", ("3 packets dropped during capture",))


def test_a_frame_seen_twice_counts_once_in_the_flow(tmp_path: Path) -> None:
    frames = [copy for frame in steady() for copy in (frame, Frame(frame.time_ns, frame.data, frame.orig_len))]
    result = analysed(tmp_path, frames)
    assert result.metrics["duplicated_packets"] == 10
    assert result.metrics["packets"] == 20
    assert result.metrics["retransmitted_segments"] == 0
    assert "captured more than once" in result.trust.reasons[0]


def test_a_retransmission_is_no_duplicate(tmp_path: Path) -> None:
    """The sender numbers it anew (IPv4), or sends it more than 1 ms later."""
    anew = [*steady(3), data(2 * MS + 300, 77, seq=201)]
    later = [*steady(3), data(3 * MS + 1, 2, seq=201)]
    for frames in (anew, later):
        result = analysed(tmp_path, frames)
        assert result.metrics["duplicated_packets"] == 0
        assert result.metrics["retransmitted_segments"] == 1


def _seen_twice(between: int) -> analysis.PacketTable:
    """A segment, others of its hash bucket, and the first again at that moment."""
    sent = [Segment(0, 0, 10 * k, 5, ACK, 10) for k in range(between + 1)]
    table = table_of([*sent, sent[0]])
    return dataclasses.replace(table, fingerprint=np.full(len(table), 7, np.uint32))


@pytest.mark.parametrize(("between", "repeated"), [(40, 1), (100, 0)])
def test_crafted_similar_frames_are_compared_with_few_others(between: int, repeated: int) -> None:
    _, duplicate = TrustAccumulator().update(_seen_twice(between))
    assert np.count_nonzero(duplicate) == repeated


def test_an_answer_to_a_repeated_syn_is_no_duplicate(tmp_path: Path) -> None:
    """The peer's timer and the repeated SYN send the same SYN-ACK at once."""
    answer = ethernet(ipv4(tcp(20_000, 40_000, seq=9, ack=1, flags=0x12), source="10.0.0.2", destination="10.0.0.1"))
    answers = [Frame.whole(10**15 + after, answer) for after in (10_000, 50_000)]
    result = analysed(tmp_path, [*answers, data(MS, 1), data(2 * MS, 2, seq=101)], mtu=1500)
    assert result.metrics["duplicated_packets"] == 0
    assert result.metrics["packets"] == 4
    assert result.trust.reasons == ()


def test_resets_that_answer_late_segments_are_no_duplicates(tmp_path: Path) -> None:
    """Each late segment gets an equal one; captures with duplicates have others."""
    reset = ethernet(ipv4(tcp(20_000, 40_000, seq=9, flags=0x04), source="10.0.0.2", destination="10.0.0.1"))
    resets = [Frame.whole(10**15 + 2 * MS + after, reset) for after in (10_000, 50_000, 90_000)]
    sent = [data(MS, 1), data(2 * MS, 2, seq=101)]
    result = analysed(tmp_path, [*sent, *resets], mtu=1500)
    assert (result.metrics["duplicated_packets"], result.trust.verdict) == (0, "good")
    twice = analysed(tmp_path, [*sent, sent[1], *resets], mtu=1500)
    assert (twice.metrics["duplicated_packets"], twice.trust.verdict) == (3, "degraded")


def test_segments_above_the_peers_mss_are_super_segments(tmp_path: Path) -> None:
    def syn(source: int, destination: int, flags: int) -> bytes:
        ends = {"source": f"10.0.0.{source}", "destination": f"10.0.0.{destination}"}
        ports = (40_000, 20_000) if source == 1 else (20_000, 40_000)
        return ethernet(ipv4(tcp(*ports, flags=flags, options=MSS_1460), **ends))

    opening = [Frame.whole(10**15, syn(1, 2, 0x02)), Frame.whole(10**15 + 1, syn(2, 1, 0x12))]
    result = analysed(tmp_path, [*opening, data(5, 1, size=1460), data(6, 2, seq=1461, size=4 * 1460 + 1)])
    assert result.metrics["super_segments"] == 1
    assert result.metrics["super_segment_share"] == 0.25
    assert result.metrics["wire_packets_estimated"] == result.metrics["packets"] == 3 + 5
    assert result.trust.verdict == "estimated"
    assert "offloads" in result.trust.reasons[0]


def test_without_a_syn_the_mtu_decides_and_without_both_nothing(tmp_path: Path) -> None:
    frames = [data(0, 1, size=1400), data(1, 2, seq=1401, size=9000)]
    known = analysed(tmp_path, frames, mtu=1500)
    assert known.metrics["super_segments"] == 1
    assert known.metrics["wire_packets_estimated"] == 1 + 7
    unknown = analysed(tmp_path, frames)
    assert "super_segments" not in unknown.metrics
    assert "no SYN" in unknown.not_available["super_segments"]


def test_neighbours_swapped_by_microseconds_are_counted_without_a_verdict() -> None:
    frames = {"packets": 1000}
    assert judge({"time_reversals": 3}, frames, packets=1000, longest_reversal_ns=4000).verdict == "good"
    assert judge({"time_reversals": 30}, frames, packets=1000, longest_reversal_ns=4000).verdict == "degraded"
    assert judge({"time_reversals": 1}, frames, packets=1000, longest_reversal_ns=2 * MS).verdict == "degraded"


def test_a_clock_set_back_is_seen_and_order_is_kept(tmp_path: Path) -> None:
    frames = [*steady(5), data(-50 * MS, 99, seq=501), data(-49 * MS, 100, seq=601)]
    result = analysed(tmp_path, frames)
    assert result.metrics["time_reversals"] == 1
    assert "earlier than the one before" in result.trust.reasons[0]
    assert "throughput_Bps" in result.not_available


def test_offloads_are_recognised_on_a_real_link(tmp_path: Path) -> None:
    sent = ("-n", "3M")
    plain = analysed_stream(tmp_path / "plain.pcapng", *sent, offloads=False)
    offloaded = analysed_stream(tmp_path / "offloaded.pcapng", *sent, offloads=True)
    assert plain.metrics["super_segments"] == 0
    assert plain.trust.verdict == "good", plain.trust.reasons
    assert offloaded.metrics["super_segments"] > 0
    assert offloaded.trust.verdict == "estimated", offloaded.trust.reasons
    assert offloaded.metrics["wire_packets_estimated"] - offloaded.capture["packets"] > 1000
    assert plain.metrics["dropped_by_kernel"] == plain.metrics["tail_lost"] == 0
