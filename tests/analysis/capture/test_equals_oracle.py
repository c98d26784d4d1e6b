"""Generated traffic gives the numbers of a slow, obvious reader."""

from __future__ import annotations

import json
import struct
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import analysis
from analysis.capture.stream import CaptureReader
from analysis.capture_analysis import CaptureAnalysis
from analysis.packets import PacketTable
from tests.analysis import capture_files as files
from tests.analysis.capture_files import Frame
from tests.analysis.frames import ethernet, ipv4, ipv6, tcp, udp
from tests.analysis.oracles import capture as oracle

BOUNDED = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
ADDRESSES = ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
ADDRESSES_V6 = ["fd00::1", "fd00::2"]
MSS = b"\x02\x04\x05\xb4"
HANDSHAKE = struct.pack("<II", 7, 1) + b"OPAL-TCP-BTL".ljust(16, b"\0")
"""Late in a connection, it makes MPI of packets that were read before: the reader has to look twice."""

flags = st.sampled_from([0x10, 0x10, 0x18, 0x02, 0x12, 0x11, 0x04, 0x00])
ports = st.sampled_from([20_000, 20_001, 40_000, 50_000])
sizes = st.one_of(st.integers(0, 30), st.sampled_from([1448, 9000, 60_000]))


@st.composite
def contents(draw: st.DrawFn) -> bytes:
    """Draw a frame: TCP or UDP over IPv4 or IPv6, some tagged, some without IP."""
    which = draw(st.integers(0, 9))
    if which == 0:
        return ethernet(b"arp?", kind=0x0806)
    payload = HANDSHAKE if which == 4 else bytes(draw(sizes))
    number = st.integers(0, 3)
    segment = (
        udp(draw(ports), draw(ports), payload)
        if which == 1
        else tcp(
            draw(ports), draw(ports), seq=draw(number), ack=draw(number), flags=draw(flags), window=draw(number),
            options=draw(st.sampled_from([b"", MSS])), payload=payload,
        )
    )  # fmt: skip
    protocol = 17 if which == 1 else 6
    vlans = ((0x8100, 1),) if which == 2 else ()
    if which == 3:
        ends = {"source": draw(st.sampled_from(ADDRESSES_V6)), "destination": draw(st.sampled_from(ADDRESSES_V6))}
        return ethernet(ipv6(segment, next_header=protocol, **ends), kind=0x86DD, vlans=vlans)
    ends = {"source": draw(st.sampled_from(ADDRESSES)), "destination": draw(st.sampled_from(ADDRESSES))}
    return ethernet(ipv4(segment, protocol=protocol, identity=draw(number), **ends), vlans=vlans)


@st.composite
def traffic(draw: st.DrawFn, backwards: bool = False) -> list[Frame]:
    """Draw 2 to 60 frames with gaps from nothing to beyond every window."""
    count = draw(st.integers(2, 60))
    now, frames = 10**15, []
    for _ in range(count):
        step = draw(st.sampled_from([0, 1, 999, 50_000, 1_000_000, 3_000_000, 40_000_000, 200_000_000]))
        now += -step if backwards and draw(st.integers(0, 5)) == 0 else step
        frames.append(Frame.whole(now, draw(contents()), 128))
    return frames


def written(data: bytes) -> Path:
    with tempfile.NamedTemporaryFile(delete=False, suffix=".pcap") as file:
        file.write(data)
    return Path(file.name)


def analysed(data: bytes, **options: Any) -> CaptureAnalysis:
    path = written(data)
    try:
        return analysis.analyse(path, **options)
    finally:
        path.unlink()


def numbers(result: CaptureAnalysis) -> str:
    """Return all results as text: equal texts are equal to the last bit."""
    plain = result.to_dict()
    del plain["file"], plain["capture"]
    for name in ("captured", "received_by_filter", "dropped_by_kernel"):
        for place in ("metrics", "not_available"):
            plain[place].pop(name, None)
    return json.dumps(plain, sort_keys=True)


@BOUNDED
@given(traffic())
def test_every_metric_equals_that_of_the_oracle(frames: list[Frame]) -> None:
    if frames[0].time_ns == frames[-1].time_ns:
        return
    path = written(files.pcap(frames))
    try:
        packets = [oracle.packet(record) for record in oracle.records(path)]
        measured = analysis.analyse(path).metrics
    finally:
        path.unlink()
    assume(not measured.get("super_segments"))  # split as on the wire, not as recorded: traffic/test_wire.py
    for name, value in oracle.volume(packets).items():
        assert measured[name] == pytest.approx(value, rel=1e-9, abs=1e-18), name


@BOUNDED
@given(traffic(backwards=True), st.sampled_from(["pcap>", "pcapng<", "pcapng>"]))
def test_byte_order_and_format_change_nothing(frames: list[Frame], variant: str) -> None:
    write: Any = files.pcap if variant.startswith("pcap") and "ng" not in variant else files.pcapng
    other = write(frames, order=variant[-1])
    assert numbers(analysed(files.pcap(frames))) == numbers(analysed(other))


class _SmallPieces(CaptureReader):
    """Reads with a buffer and tables as small as asked for."""

    buffer_bytes, most_rows = 64, 1

    def __init__(self, path: str | Path) -> None:
        super().__init__(path, buffer_bytes=self.buffer_bytes, most_rows=self.most_rows)


@BOUNDED
@given(traffic(backwards=True), st.integers(40, 400), st.integers(1, 7))
def test_any_split_into_chunks_gives_the_same_result(frames: list[Frame], buffer_bytes: int, most_rows: int) -> None:
    data = files.pcap(frames)
    whole = numbers(analysed(data))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_SmallPieces, "buffer_bytes", buffer_bytes)
        patch.setattr(_SmallPieces, "most_rows", most_rows)
        patch.setattr("analysis.capture.stream.CaptureReader", _SmallPieces)
        assert numbers(analysed(data)) == whole


@BOUNDED
@given(traffic(backwards=True), st.data())
def test_every_packet_is_accounted_for(frames: list[Frame], data: st.DataObject) -> None:
    whole = files.pcap(frames)
    length = data.draw(st.integers(24, len(whole)))
    result = analysed(whole[:length])
    facts = result.capture
    used = 24 + sum(16 + len(frame.data) for frame in frames[: facts["packets"]])
    assert used + facts["unread_bytes"] == length
    assert result.metrics["packets"] == facts["packets"] or result.metrics["super_segments"]  # those are split
    assert result.metrics["packets"] >= facts["packets"]
    assert facts["not_ip"] + facts["unparsed"] <= facts["packets"]


@BOUNDED
@given(traffic(backwards=True))
def test_all_traffic_is_mpi_traffic_and_the_rest(frames: list[Frame]) -> None:
    result = analysed(files.pcap(frames), mpi_ports=(20_000, 20_001))
    assume(not result.metrics.get("super_segments"))
    path = written(files.pcap(frames))
    try:
        table: PacketTable = analysis.read_capture(path)
    finally:
        path.unlink()
    ends = np.stack([table.sport, table.dport])
    mpi = (((ends >= 20_000) & (ends <= 20_001)).any(axis=0)) & ((table.kind & 4) != 0)
    count = int(np.count_nonzero(mpi))
    if count:
        assert result.mpi.metrics["packets"] == count
        assert result.mpi.metrics["wire_bytes"] == int(table.orig_len[mpi].sum())
        assert result.metrics["non_mpi_share"] == pytest.approx(1 - count / len(table))
    gaps = np.diff(table.time_ns[mpi])
    if count >= 2 and gaps.sum() > 0:
        assert result.mpi.metrics["interarrival_median_s"] == pytest.approx(np.quantile(gaps, 0.5) / 1e9)
