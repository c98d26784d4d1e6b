"""Many hosts are counted exactly, and named only if a result shows them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

import analysis
from analysis import addresses
from analysis.capture import decoder
from analysis.capture.export import write_packets
from analysis.capture.sharding import Recording, _Observed
from analysis.capture.stream import stream
from analysis.packets import NO_FLOW, NO_HOST
from analysis.traffic.flow_gaps import interarrival_by_connection
from tests.analysis import capture_files as files
from tests.analysis.capture import hostile
from tests.analysis.capture.same_tables import same_from_both
from tests.analysis.capture_files import Frame
from tests.analysis.frames import ethernet, ipv4, ipv6, tcp

PACKETS, HOSTS = 100_000, 60_000


def ends_of(capture: bytes) -> np.ndarray[tuple[int, int], np.dtype[np.uint32]]:
    """Shape (N, 2): source and destination of every packet that ``hostile`` has made."""
    records = np.frombuffer(capture[24:], np.uint8).reshape(-1, 70)
    ends: np.ndarray[tuple[int, int], np.dtype[np.uint32]] = records[:, 42:50].copy().view(">u4").astype(np.uint32)
    return ends


def test_hosts_and_their_traffic_are_those_that_plain_python_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "random.pcap"
    path.write_bytes(hostile.at_random(PACKETS, HOSTS))
    named: list[tuple[int, int]] = []
    as_text = addresses._text

    def noted(high: int, low: int) -> str:
        named.append((high, low))
        return as_text(high, low)

    monkeypatch.setattr(addresses, "_text", noted)
    measured = analysis.analyse(path)

    pairs = Counter(map(tuple, ends_of(path.read_bytes()).tolist()))
    volume: Counter[int] = Counter()
    for (source, target), packets in pairs.items():
        volume[source] += 54 * packets
        volume[target] += 54 * packets * (source != target)
    hosts = measured.matrices["hosts"]
    assert len(volume) > 50_000
    assert len(hosts["labels"]) + hosts["omitted"] == len(volume)
    assert measured.trust.verdict == "good"
    assert measured.metrics["connections"] == len(pairs)

    rows = [
        sum(int(part) << shift for part, shift in zip(label.split("."), (24, 16, 8, 0), strict=True))
        for label in hosts["labels"]
    ]
    assert rows == sorted(rows)
    assert sorted((volume[host] for host in rows), reverse=True) == sorted(volume.values(), reverse=True)[:256]
    for row, source in enumerate(rows):
        for column, target in enumerate(rows):
            assert hosts["packets"][row][column] == pairs.get((source, target), 0)
    assert len(named) <= 256 + 2 * len(measured.flows)  # those of the matrix, and of the connections that have a row


def few_hosts(tmp_path: Path) -> Path:
    """Forty hosts of both versions that send to each other in turn, and back."""
    frames = []
    for number in range(200):
        one, other = sorted((number % 40, number * 7 % 40))
        segment = tcp(40_000, 20_000, seq=1 + number) if number % 3 else tcp(20_000, 40_000, seq=1 + number)
        one, other = (one, other) if number % 3 else (other, one)
        packet = (
            ethernet(ipv6(segment, source=f"fd00::{one:x}", destination=f"fd00::{other:x}"), kind=0x86DD)
            if (one + other) % 2
            else ethernet(ipv4(segment, source=f"10.0.0.{one}", destination=f"10.0.0.{other}"))
        )
        frames.append(Frame.whole(10**15 + 1000 * number, packet))
    path = tmp_path / "few.pcap"
    path.write_bytes(files.pcap(frames))
    return path


@pytest.mark.parametrize("most", [1, 2, 7, 30, 1000])
def test_hosts_without_room_have_no_number_in_decoders_and_exports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    path = few_hosts(tmp_path)
    whole = analysis.read_capture(path)
    monkeypatch.setattr(decoder, "MOST_HOSTS", most)
    monkeypatch.setattr("analysis.capture.tshark_table.MOST_HOSTS", most)
    table = same_from_both(path)
    assert table.hosts == whole.hosts[:most]
    for ours, all_of_them in ((table.src, whole.src), (table.dst, whole.dst)):
        np.testing.assert_array_equal(ours, np.where(all_of_them < most, all_of_them, NO_HOST))
    no_host = (table.src == NO_HOST) | (table.dst == NO_HOST)
    assert (table.flow[no_host] == NO_FLOW).all()
    assert (table.flow[~no_host] != NO_FLOW).all()
    assert bool(no_host.any()) == (most < len(whole.hosts))

    write_packets(path, tmp_path / "few.parquet", decoder="native")
    written = pyarrow.parquet.read_table(tmp_path / "few.parquet")
    for name, numbers in (("src", whole.src), ("dst", whole.dst)):
        names = [whole.hosts[number] if number < most else None for number in numbers.tolist()]
        assert written[name].to_pylist() == names


def test_the_directions_of_a_connection_have_their_own_gaps(tmp_path: Path) -> None:
    """The sender of the SYN is side a, even if an answer was captured first."""
    hosts = ("10.0.0.1", "10.0.0.2")
    segments = [
        (1, tcp(80, 4000, seq=9, ack=5, flags=0x12)), (0, tcp(4000, 80, seq=4, flags=0x02, ack=0)),
        (0, tcp(4000, 80, seq=5, ack=10)), (1, tcp(80, 4000, seq=10, ack=5)), (0, tcp(4000, 80, seq=5, ack=10)),
    ]  # fmt: skip
    times_ns = [0, 1000, 3000, 7000, 15_000]
    path = tmp_path / "answered.pcap"
    frames = [ethernet(ipv4(segment, source=hosts[side], destination=hosts[1 - side])) for side, segment in segments]
    path.write_bytes(files.pcap([Frame.whole(10**15 + t, frame) for t, frame in zip(times_ns, frames, strict=True)]))
    rows = interarrival_by_connection(stream(path))
    flows = analysis.analyse(path).flows
    assert [row["host_a"] for row in flows] == ["10.0.0.1"]
    assert rows[0]["interarrival_mean_s"] == pytest.approx(3.75e-6)
    assert rows[0]["interarrival_mean_s_ab"] == pytest.approx(7e-6)
    assert rows[0]["interarrival_mean_s_ba"] == pytest.approx(7e-6)


def test_addresses_that_come_late_belong_to_their_host(tmp_path: Path) -> None:
    path = few_hosts(tmp_path)
    table = analysis.read_capture(path)
    recordings = [Recording(f"n{k}", path, frozenset({f"10.0.0.{k}", f"fd00::{k:x}"})) for k in range(40)]
    owners = {address: number for number, recording in enumerate(recordings) for address in recording.addresses}
    expected = [
        min(owners[table.hosts[source]], owners[table.hosts[target]])
        for source, target in zip(table.src, table.dst, strict=True)
    ]
    for number in (0, 3, 17):
        whole, pieces = _Observed(number, owners, sample=0), _Observed(number, owners, sample=0)
        whole.add(table)
        seen = 0
        for begin in range(0, len(table), 9):
            columns = {name: getattr(table, name)[begin : begin + 9] for name in table.columns()}
            seen = max([seen, *(int(n) + 1 for end in ("src", "dst") for n in columns[end])])
            pieces.add(analysis.PacketTable(**columns, hosts=table.hosts[:seen]))
        rows = np.concatenate(whole.rows)
        assert rows.tolist() == [row for row, owner in enumerate(expected) if owner == number]
        np.testing.assert_array_equal(rows, np.concatenate(pieces.rows))
        for ours, theirs in zip(whole.sightings(), pieces.sightings(), strict=True):
            np.testing.assert_array_equal(ours, theirs)
