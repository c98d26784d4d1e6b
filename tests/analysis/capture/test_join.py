"""Recordings of several hosts become one capture in the order of the wire."""

from __future__ import annotations

import struct
import tracemalloc
from pathlib import Path

import pytest

import analysis
from analysis.capture import join as capture_join
from analysis.capture import sharding
from analysis.capture.join import Joined, join
from analysis.capture.sharding import Recording
from analysis.capture.tables import read_capture
from analysis.errors import UnreadableCapture
from tests.analysis import capture_files as files
from tests.analysis.capture_files import Frame
from tests.analysis.frames import ethernet, ipv4, tcp
from tests.analysis.recorded_hosts import MS, START, WAY_NS, Sent, exact, recordings, traffic


def joined(directory: Path, made: list[Recording]) -> tuple[Joined, Path]:
    target = directory / "capture.pcapng.zst"
    return join(made, target), target


def test_every_frame_counts_once(tmp_path: Path) -> None:
    sent = traffic()
    result_of_join, path = joined(tmp_path, recordings(sent, tmp_path, [exact] * 3))
    result = analysis.analyse(path, mtu=1500)
    assert result_of_join.packets == result.metrics["packets"] == len(sent)
    assert result.metrics["wire_bytes"] == sum(max(len(s.data), 60) for s in sent)
    assert result.metrics["duplicated_packets"] == 0
    assert (result.trust.verdict, result.trust.reasons) == ("good", ())


def test_it_holds_the_very_bytes_and_lengths_of_the_frames(tmp_path: Path) -> None:
    sent = traffic(60)
    _, path = joined(tmp_path, recordings(sent, tmp_path, [exact] * 3))
    table = read_capture(path)
    assert sorted(table.payload.tolist()) == sorted(read_capture_of(sent, tmp_path).payload.tolist())
    assert sorted(table.seq.tolist()) == [1 + 100 * number for number in range(60)]


def read_capture_of(sent: list[Sent], directory: Path) -> analysis.PacketTable:
    path = directory / "truth.pcapng"
    path.write_bytes(files.pcapng([Frame.whole(START + s.time_ns, s.data) for s in sent]))
    return read_capture(path)


@pytest.mark.parametrize("offset_ns", [0, 38 * MS, -5 * 10**9])
def test_clock_offsets_are_reported_and_corrected(tmp_path: Path, offset_ns: int) -> None:
    sent = traffic()
    clocks = [exact, lambda _: float(offset_ns), lambda _: -2.0 * offset_ns]
    result_of_join, path = joined(tmp_path, recordings(sent, tmp_path, clocks))
    for host, truth in (("n2", offset_ns), ("n3", -2 * offset_ns)):
        offset = result_of_join.clocks[host]
        assert abs(offset.ns - truth) <= offset.unsure_ns + 1
        assert offset.unsure_ns <= 1.01 * WAY_NS
    table = read_capture(path)
    order = [s.data for s in sent]
    seqs = (1 + 100 * number for number in range(len(order)))
    where = {seq: number for number, seq in enumerate(table.seq.tolist())}
    # No frame is further from its true place than the ways of two frames.
    for number, seq in enumerate(seqs):
        assert abs(int(table.time_ns[where[seq]]) - START - sent[number].time_ns) <= 3 * WAY_NS


def test_a_clock_that_runs_fast_is_followed(tmp_path: Path) -> None:
    sent = traffic(2000)
    clocks = [exact, lambda t: 0.01 * t, exact]
    result_of_join, path = joined(tmp_path, recordings(sent, tmp_path, clocks))
    span_ns = sent[-1].time_ns - sent[0].time_ns
    assert result_of_join.clocks["n2"].change_ns == pytest.approx(0.01 * span_ns / 2, rel=0.15)
    table = read_capture(path)
    n2 = table.hosts.index("10.0.0.2")
    n3 = table.hosts.index("10.0.0.3")
    rows = [i for i in range(len(table)) if {int(table.src[i]), int(table.dst[i])} == {n2, n3}]
    errors = [abs(int(table.time_ns[i]) - START - sent[(int(table.seq[i]) - 1) // 100].time_ns) for i in rows]
    assert max(errors) < 5 * MS
    assert 0.01 * span_ns > 2 * max(errors)


def test_a_host_that_was_not_recorded_is_seen_by_the_others(tmp_path: Path) -> None:
    sent = traffic()
    result_of_join, path = joined(tmp_path, recordings(sent, tmp_path, [exact] * 3, hosts=(0, 2)))
    assert result_of_join.packets == len(sent)
    assert result_of_join.hosts == ("n1", "n3")
    assert analysis.analyse(path, mtu=1500).metrics["packets"] == len(sent)


def test_a_connection_keeps_the_times_of_one_clock(tmp_path: Path) -> None:
    """Round trips would be halved by stamps of sender and receiver."""
    sent = [s for s in traffic(900) if {s.source, s.target} == {0, 1}]
    made = recordings(sent, tmp_path, [exact, lambda _: 7.0 * MS, exact])
    alone = read_capture(made[0].path)
    _, path = joined(tmp_path, made)
    assert read_capture(path).time_ns.tolist() == alone.time_ns.tolist()


def test_frames_of_strangers_count_where_they_meet_a_host(tmp_path: Path) -> None:
    segment = tcp(22, 50_000, payload=b"x")
    stranger = Frame.whole(START, ethernet(ipv4(segment, source="10.9.9.9", destination="10.0.0.2")))
    paths = [tmp_path / "a.pcapng", tmp_path / "b.pcapng"]
    for path in paths:  # a switch may flood it to both
        path.write_bytes(files.pcapng([stranger]))
    made = [Recording(f"n{n + 1}", path, frozenset({f"10.0.0.{n + 1}"})) for n, path in enumerate(paths)]
    assert joined(tmp_path, made)[0].packets == 1


@pytest.mark.parametrize("claimed", [100_000, 1 << 31, (1 << 32) - 1])
def test_blocks_that_claim_more_bytes_than_they_have_are_refused(tmp_path: Path, claimed: int) -> None:
    """The bytes behind a recording are others of the worker's memory."""
    made = recordings(traffic(60), tmp_path, [exact] * 3, hosts=(0, 1))
    frame = Frame.whole(START, ethernet(ipv4(tcp(22, 50_000), source="10.0.0.2", destination="10.9.9.9")))
    damage = struct.pack("<III", 0xBAD, 12, 99)  # ends what is decoded, one packet
    lie = bytearray(files.enhanced(frame))
    lie[20:24] = struct.pack("<I", claimed)
    made[1].path.write_bytes(files.section() + files.interface() + files.obsolete(frame) + damage + lie)
    with pytest.raises(UnreadableCapture, match="not written by dumpcap"):
        joined(tmp_path, made)


def test_long_packets_are_joined_in_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (capture_join, sharding):
        monkeypatch.setattr(module, "WINDOW_BYTES", 1 << 20)

    def peak_bytes(packets: int) -> int:
        directory = tmp_path / str(packets)
        directory.mkdir()
        made = []
        for host in ("10.0.0.1", "10.0.0.2"):
            data = ethernet(ipv4(tcp(22, 50_000, payload=bytes(60_000)), source=host, destination="10.9.9.9"))
            path = directory / f"{host}.pcapng"
            path.write_bytes(files.pcapng([Frame.whole(START + number, data) for number in range(packets)]))
            made.append(Recording(host, path, frozenset({host})))
        tracemalloc.start()
        assert joined(directory, made)[0].packets == 2 * packets
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    assert peak_bytes(600) < peak_bytes(100) + (8 << 20)
