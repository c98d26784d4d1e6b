"""Link types: what carries IP is read as tshark reads it, what carries none is counted and told."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

import analysis
from analysis.capture import tables
from analysis.capture.link_types import NATIVE, ONLY_TSHARK
from analysis.capture.tshark_table import read_with_tshark
from analysis.packets import CUT, TCP
from tests.analysis import capture_files as files
from tests.analysis.capture.encapsulations import conversation
from tests.analysis.capture.link_layers import LINKS, UNKNOWN_TO_TSHARK, aggregate, logged, record, snap, wireless
from tests.analysis.capture.same_tables import SHARED, same_from_both
from tests.analysis.capture_files import Frame
from tests.analysis.frames import ethernet, ipv4, ipv6, tcp
from tests.analysis.oracles.tools import capinfos, tshark_fields

PACKETS = [*conversation(), ipv6(tcp(5, 6, seq=8, payload=b"s" * 90))]
MS = 1_000_000


def written(path: Path, link: int, frames: list[bytes], snap_length: int = 262_144) -> Path:
    whole = [Frame.whole(10**15 + MS * k, data, snap_length) for k, data in enumerate(frames)]
    path.write_bytes(files.pcap(whole, link=link))
    return path


@pytest.mark.parametrize("name", LINKS)
def test_packets_in_frames_of_any_link_type_are_read(tmp_path: Path, name: str) -> None:
    link, wrap = LINKS[name]
    path = written(tmp_path / "link.pcap", link, [wrap(packet) for packet in PACKETS])
    measured = analysis.analyse(path)
    assert (measured.capture["decoder"], measured.trust.verdict, measured.capture["notes"]) == ("native", "good", [])
    assert (measured.metrics["connections"], measured.metrics["retransmitted_bytes"]) == (2, 700)
    assert measured.metrics["payload_bytes"] == 2 * 700 + 30 + 90
    if name in UNKNOWN_TO_TSHARK:
        reference = written(tmp_path / "reference.pcap", 101, PACKETS)
        names = [column for column in SHARED if column not in ("orig_len", "cap_len")]
        ours, plain = (analysis.read_capture(each, decoder="native") for each in (path, reference))
        assert all(np.array_equal(getattr(ours, column), getattr(plain, column)) for column in names)
        return
    same_from_both(path)


@pytest.mark.parametrize("name", sorted(LINKS.keys() - UNKNOWN_TO_TSHARK))
def test_what_is_cut_anywhere_is_never_read_as_something_else(tmp_path: Path, name: str) -> None:
    link, wrap = LINKS[name]
    whole = wrap(PACKETS[3])
    first = {197: 40, 204: 1}.get(link, 0)  # tshark reads no file with less of what lies before the frames
    cuts = [Frame.whole(10**15 + k, whole, k) for k in range(first, len(whole) - 690)]
    path = tmp_path / "cut.pcap"
    path.write_bytes(files.pcap(cuts, link=link))
    native, second = analysis.read_capture(path, decoder="native"), read_with_tshark(path)
    both = native.kind & second.kind & TCP > 0
    for column in ("orig_len", "cap_len"):
        np.testing.assert_array_equal(getattr(native, column), getattr(second, column), err_msg=column)
    for column in ("seq", "ack", "window", "tcp_flags", "payload"):
        np.testing.assert_array_equal(getattr(native, column)[both], getattr(second, column)[both], err_msg=column)
    silent = np.flatnonzero(native.kind & (TCP | CUT) == 0)
    assert not len(silent), silent
    path.write_bytes(files.pcap(cuts[1:-40], link=link))
    assert analysis.analyse(path).trust.verdict != "good"


def test_capture_cards_tell_how_long_a_frame_was(tmp_path: Path) -> None:
    frame = ethernet(PACKETS[3])
    whole = record(2, frame[:90], padding=b"\0\0", wire=len(frame) + 4)
    path = written(tmp_path / "card.pcap", 197, [whole, record(24, b"\1\2\3\4")])
    native = analysis.read_capture(path, decoder="native")
    seen = tshark_fields(path, "frame.len", "frame.cap_len", "tcp.len")
    for row, (length, captured, payload) in enumerate(seen):
        told = (native.orig_len[row], native.cap_len[row], native.payload[row])
        assert told == (int(length), int(captured), int(payload or 0))
    assert (native.orig_len[0], native.cap_len[0], native.payload[0]) == (len(frame) + 4, 90, 700)
    path = written(tmp_path / "card.pcap", 197, [whole, record(24, b"\1\2\3\4"), whole[:12]])
    trust = analysis.analyse(path).trust
    assert trust.verdict == "degraded"
    assert "2 packets have a link type that nobody looks into: they are counted, and no more" in trust.reasons


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(wireless(snap(PACKETS[3]), flags=0x40), id="encrypted"),
        pytest.param(wireless(snap(PACKETS[3])[:300], flags=4), id="first-fragment"),
        pytest.param(wireless(snap(PACKETS[3])[300:], number=1), id="later-fragment"),
        pytest.param(aggregate(PACKETS[3], PACKETS[2]), id="two-at-once"),
        pytest.param(aggregate(PACKETS[3], PACKETS[2])[:130], id="two-at-once-cut"),
    ],
)
def test_wireless_frames_that_nobody_looks_into_are_told(tmp_path: Path, frame: bytes) -> None:
    path = tmp_path / "wireless.pcap"
    told = Frame(10**15, frame, len(aggregate(PACKETS[3], PACKETS[2])) if len(frame) == 130 else len(frame))
    path.write_bytes(files.pcap([told], link=105))
    trust = analysis.analyse(path).trust
    assert (trust.verdict, trust.reasons[0][:16]) == ("degraded", "1 packet carries")


def test_the_log_of_a_firewall_is_in_the_byte_order_of_its_machine(tmp_path: Path) -> None:
    path = tmp_path / "log.pcap"
    path.write_bytes(files.pcap([Frame.whole(10**15, logged(PACKETS[3], ">"))], link=239, order=">"))
    same_from_both(path)
    assert analysis.read_capture(path).payload.tolist() == [700]


def test_management_of_wireless_networks_is_no_reason_for_doubt(tmp_path: Path) -> None:
    beacon, answer, nothing = (wireless(bytes(40), control=control) for control in (0x80, 0xD4, 0x48))
    frames = [*(wireless(snap(packet)) for packet in PACKETS), beacon, answer, nothing]
    measured = analysis.analyse(written(tmp_path / "air.pcap", 105, frames))
    assert (measured.trust.verdict, measured.metrics["packets"]) == ("good", len(frames))


@pytest.mark.parametrize("link", [189, 201, 227, 147, 139, 196, 254, 400, 60_000])
def test_link_types_without_ip_are_counted_and_told(tmp_path: Path, link: int) -> None:
    path = written(tmp_path / "other.pcap", link, [bytes([1] * 60), bytes([2] * 80)])
    measured = analysis.analyse(path)
    assert (measured.capture["decoder"], measured.metrics["packets"]) == ("native", 2)
    assert measured.metrics["duration_s"] == 0.001
    assert (measured.trust.verdict, measured.metrics["connections"]) == ("degraded", 0)
    assert measured.trust.reasons == (
        "2 packets have a link type that nobody looks into: they are counted, and no more",
    )
    assert f"2 packets of link type {link}" in measured.capture["notes"][0]
    if link < 400:
        assert measured.metrics["wire_bytes"] == int(capinfos(path)["Data size (bytes)"])


def test_other_interfaces_of_a_capture_are_read_beside_what_is_not_looked_into(tmp_path: Path) -> None:
    blocks = [files.section(), files.interface(), files.interface(link=189), files.interface(link=204)]
    for k, packet in enumerate(PACKETS):
        blocks += [files.enhanced(Frame.whole(10**15 + MS * k, ethernet(packet)))]
        blocks += [files.enhanced(Frame.whole(10**15 + MS * k, bytes(64)), number=1)]
        directed = LINKS["ppp-directed"][1](PACKETS[-1])
        blocks += [files.enhanced(Frame.whole(10**15 + MS * k, directed), number=2)]
    path = tmp_path / "mixed.pcapng"
    path.write_bytes(b"".join(blocks))
    measured = analysis.analyse(path)
    assert (measured.metrics["packets"], measured.metrics["connections"]) == (3 * len(PACKETS), 2)
    assert measured.capture["notes"] == [f"{len(PACKETS)} packets of link type 189 (USB): counted, not looked into"]
    assert not np.any(analysis.read_capture(path).kind[1::3])


def test_what_only_tshark_takes_apart_goes_there_alone(tmp_path: Path) -> None:
    assert not ONLY_TSHARK & NATIVE
    path = written(tmp_path / "cable.pcap", 143, [b"\0\0" + struct.pack("!H", 90) + bytes(2) + ethernet(ipv4(tcp()))])
    assert analysis.analyse(path).capture["decoder"] == "pyshark"


def test_of_very_many_packets_what_only_tshark_takes_apart_is_counted_unless_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MOST_FOR_TSHARK", 5)
    frames = [b"\0\0" + struct.pack("!H", 90) + bytes(2) + ethernet(ipv4(tcp()))] * 6
    path = written(tmp_path / "cable.pcap", 143, frames)
    told = analysis.analyse(path)
    assert (told.capture["decoder"], told.metrics["packets"], told.metrics["connections"]) == ("native", 6, 0)
    assert told.trust.verdict == "degraded"
    assert "6 packets of link type 143: counted, not looked into" in told.capture["notes"][0]
    assert "--decoder pyshark" in told.capture["notes"][-1]
    assert analysis.analyse(path, decoder="pyshark").capture["decoder"] == "pyshark"
    shorter = written(tmp_path / "shorter.pcap", 143, frames[:5])
    assert analysis.analyse(shorter).capture["decoder"] == "pyshark"


def test_both_decoders_tell_of_encrypted_frames(tmp_path: Path) -> None:
    frames = [*(wireless(snap(packet)) for packet in PACKETS), wireless(snap(PACKETS[3]), flags=0x41)]
    path = written(tmp_path / "protected.pcap", 105, frames)
    trusts = [analysis.analyse(path, decoder=decoder).trust for decoder in ("native", "pyshark")]  # type: ignore[arg-type]
    assert [(trust.verdict, trust.reasons) for trust in trusts] == 2 * [(trusts[0].verdict, trusts[0].reasons)]
    assert trusts[0].reasons[0].startswith("1 packet carries something that cannot be looked into")
