"""Captures reduced to headers give the same results, also with replaced addresses."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import zstandard

import analysis
from analysis.capture.anonymised import Anonymiser
from analysis.capture.reduced import CannotReduce, write_reduced
from analysis.capture.stream import stream
from analysis.packets import PacketTable
from tests.analysis.capture.encapsulations import KINDS, MACS, conversation
from tests.analysis.capture.link_layers import LINKS
from tests.analysis.capture_files import Frame, enhanced, interface, pcap, section
from tests.analysis.frames import ethernet, ipv4, ipv6, tcp, udp
from tests.analysis.oracles.tools import tshark_fields

KEY = bytes(range(32))
"""Of another, one in some hundreds leaves a network as it was."""
SECRET = b"a secret that no other user may read"
ENDS = [ipaddress.ip_address(text) for text in ("10.0.0.1", "10.0.0.2", "fd00::1", "fd00::2", "192.0.2.7")]
HELLO = struct.pack("<II", 7, 3) + b"OPAL-TCP-BTL".ljust(16, b"\0")
SYN = b"\x02\x04\x05\xb4\x01\x03\x03\x07"
ADD_ADDRESS = b"\x1e\x0a\x30\x01" + bytes((192, 0, 2, 7, 0, 80))


def arp() -> bytes:
    macs = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")
    packet = struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1) + macs[0] + ENDS[0].packed + macs[1] + ENDS[1].packed
    return ethernet(packet + SECRET, kind=0x0806)


def packets() -> list[bytes]:
    """One of each kind whose headers are read otherwise."""
    roce = bytes.fromhex("04000000000000110000000100000000") + SECRET
    inside = ipv4(tcp(payload=SECRET))
    return [
        ethernet(ipv4(tcp(flags=2, options=SYN))),
        ethernet(ipv4(tcp(seq=1, payload=HELLO + SECRET), identity=1)),
        ethernet(ipv4(tcp(seq=99, payload=SECRET), identity=2), vlans=((0x8100, 12),)),
        ethernet(ipv6(tcp(seq=5, payload=SECRET)), kind=0x86DD),
        ethernet(ipv4(tcp(seq=7, options=ADD_ADDRESS, payload=SECRET))),
        ethernet(ipv4(udp(1000, 53, SECRET), protocol=17)),
        ethernet(ipv4(udp(50_000, 4791, roce), protocol=17)),
        ethernet(ipv4(SECRET, protocol=6, fragment=0x0010)),
        ethernet(ipv4(b"\x03\x01\0\0\0\0\0\0" + inside, protocol=1)),
        ethernet(ipv4(tcp(payload=SECRET), options=b"\x07\x07\x08" + ENDS[0].packed)),
        ethernet(ipv4(struct.pack("!II", 1, 1) + SECRET, protocol=50)),
        ethernet(SECRET * 2, kind=0x88B5),
        arp(),
        *(wrap(ipv4(tcp(payload=SECRET)), 77) for wrap in KINDS.values()),
        *(wrap(ipv6(udp(9, 10, SECRET), next_header=17), 5) for wrap in KINDS.values()),
    ]


def frames() -> list[Frame]:
    return [Frame.whole(1_700_000_000_000_000_000 + 1000 * n, data) for n, data in enumerate(packets())]


def ng(some: list[Frame]) -> bytes:
    return section() + interface() + b"".join(map(enhanced, some))


def reduced(path: Path, hide: Anonymiser | None = None) -> Path:
    target = path.with_name(f"cut-{path.name}")
    with target.open("wb") as stream:
        write_reduced(path, stream, hide=hide)
    return target


def read(path: Path) -> tuple[PacketTable, dict[str, object]]:
    facts: dict[str, object] = {}
    (table,) = stream(path, facts=facts)
    return table, facts


def same_but_contents(before: PacketTable, after: PacketTable) -> None:
    for name in PacketTable.columns():
        if name not in ("cap_len", "fingerprint"):
            assert np.array_equal(getattr(before, name), getattr(after, name)), name
    assert np.array_equal(before.btl_handshakes, after.btl_handshakes)
    for name in ("hosts", "ports"):
        assert np.array_equal(before.flow_endpoints[name], after.flow_endpoints[name])
    assert np.array_equal(before.flow_network, after.flow_network)


@pytest.mark.parametrize("form", [ng, pcap])
@pytest.mark.parametrize("hide", [False, True])
def test_everything_but_contents_is_the_same(tmp_path: Path, form: Callable[[list[Frame]], bytes], hide: bool) -> None:
    path = tmp_path / "capture"
    path.write_bytes(form(frames()))
    cut = reduced(path, Anonymiser(KEY) if hide else None)
    (before, original), (after, its) = read(path), read(cut)
    same_but_contents(before, after)
    assert len(before.btl_handshakes) == 1
    assert {name: its[name] for name in ("format", "packets", "hidden", "not_ip", "notes")} == {
        name: original[name] for name in ("format", "packets", "hidden", "not_ip", "notes")
    }
    if not hide:
        assert before.hosts == after.hosts
        assert np.array_equal(before.fingerprint, after.fingerprint)
    else:
        assert len(set(after.hosts)) == len(before.hosts)
        assert not set(before.hosts) & set(after.hosts)


@pytest.mark.parametrize("form", [ng, pcap])
def test_no_content_and_no_address_is_left(tmp_path: Path, form: Callable[[list[Frame]], bytes]) -> None:
    path = tmp_path / "capture"
    path.write_bytes(form(frames()))
    assert SECRET[:4] not in reduced(path).read_bytes()
    hidden = reduced(path, Anonymiser(KEY)).read_bytes()
    addresses = [end.packed for end in ENDS] + [bytes.fromhex(f"02000000000{last}") for last in (1, 2)]
    assert all(row in path.read_bytes() for row in addresses)
    assert not [row for row in addresses if row in hidden]


def test_tshark_sees_the_same_lengths_and_other_addresses(tmp_path: Path) -> None:
    path = tmp_path / "capture.pcapng"
    path.write_bytes(ng(frames()))
    names = ("frame.time_epoch", "frame.len", "tcp.seq_raw", "tcp.window_size_value", "udp.length", "vxlan.vni")
    hide = Anonymiser(KEY)
    cut = reduced(path, hide)
    quoted = packets().index(ethernet(ipv4(b"\x03\x01\0\0\0\0\0\0" + ipv4(tcp(payload=SECRET)), protocol=1)))
    seen, still = tshark_fields(path, *names), tshark_fields(cut, *names)
    assert seen.pop(quoted)[3] == "500"
    assert still.pop(quoted)[3] == "", "what an error message quotes is content"
    assert seen == still
    before, after = tshark_fields(path, "ip.src", "ipv6.src"), tshark_fields(cut, "ip.src", "ipv6.src")
    assert len(before) == len(after) == len(packets())
    mapped = hide.text(repr(before).encode()).decode()
    assert mapped == repr(after), "one mapping, of tunnels too"


def test_a_recording_keeps_its_compression_counters_and_whether_it_is_verified(tmp_path: Path) -> None:
    counters = struct.pack("<III", 0, 0, 0) + struct.pack("<HHQHHQHH", 4, 8, 90, 7, 8, 3, 0, 0)
    statistics = struct.pack("<II", 5, len(counters) + 12) + counters + struct.pack("<I", len(counters) + 12)
    for checked in (True, False):
        path = tmp_path / f"{checked}.pcapng.zst"
        path.write_bytes(zstandard.ZstdCompressor(write_checksum=checked).compress(ng(frames()) + statistics))
        original, its = read(path)[1], read(reduced(path))[1]
        for name in ("compression", "received", "dropped", "unverified", "link_types"):
            assert original[name] == its[name], name
        assert (its["dropped"], its["unverified"] is None) == (3, checked)


def test_what_is_damaged_or_without_times_stays(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(ng(frames())[:-9])
    with pytest.raises(CannotReduce, match="incomplete"):
        write_reduced(path, BytesIO())
    path.write_bytes(section() + interface() + struct.pack("<IIIII", 3, 20, 4, 0, 20))
    with pytest.raises(CannotReduce, match="without a time"):
        write_reduced(path, BytesIO())


def test_long_captures_come_in_pieces(tmp_path: Path) -> None:
    path, count = tmp_path / "capture", 70_000
    path.write_bytes(pcap([Frame.whole(n, ethernet(ipv4(tcp(seq=n, payload=SECRET)))) for n in range(count)]))
    cut = reduced(path, Anonymiser(KEY))
    assert np.concatenate([table.seq for table in stream(cut)]).tolist() == list(range(count))


@pytest.mark.parametrize(
    ("address", "becomes"),
    [("192.0.2.1", "2.90.93.17"), ("2001:db8::1", "dd92:2c44:3fc0:ff1e:7ff9:c7f0:8180:7e00")],
)
def test_it_is_crypto_pan(address: str, becomes: str) -> None:
    """Two addresses as other implementations turn them by this key."""
    plain = np.frombuffer(ipaddress.ip_address(address).packed, np.uint8).reshape(1, -1)
    turned = Anonymiser(bytes(range(32)), keep=False).mapped(plain)[0].tobytes()
    assert ipaddress.ip_address(turned) == ipaddress.ip_address(becomes)


def test_networks_stay_together_and_special_addresses_special() -> None:
    hide = Anonymiser(KEY)
    some = np.random.default_rng(1).integers(0, 256, (4000, 4), np.uint8)
    some[:2000, :3] = some[0, :3]
    turned = hide.mapped(some)
    bits, after = np.unpackbits(some, axis=1), np.unpackbits(turned, axis=1)
    common = np.cumprod(bits[1:] == bits[:-1], axis=1).sum(axis=1)
    assert np.array_equal(common, np.cumprod(after[1:] == after[:-1], axis=1).sum(axis=1))

    def special(
        rows: np.ndarray[tuple[int, ...], np.dtype[np.uint8]],
    ) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        result: np.ndarray[tuple[int, ...], np.dtype[np.bool_]] = (
            (rows[:, 0] == 0) | (rows[:, 0] == 127) | (rows[:, 0] >> 4 == 14)
        )
        return result

    assert np.array_equal(special(some), special(turned))
    assert np.array_equal(some[special(some)], turned[special(some)])
    macs = np.array([[0] * 6, [255] * 6, [1, 0, 94, 0, 0, 1], [2, 0, 0, 0, 0, 1]], np.uint8)
    assert np.array_equal(hide.mapped(macs)[:2], macs[:2])
    assert np.array_equal(hide.mapped(macs)[:, 0] & 3, macs[:, 0] & 3)


def test_texts_lose_the_same_addresses_and_keep_versions(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(ng([Frame.whole(1, ethernet(ipv4(tcp(), source="198.51.7.1")))]))
    hide = Anonymiser(KEY)
    reduced(path, hide)
    text = b"version 4.1.2.7, at 12:34:56, 127.0.0.1, hash ab12:cd34"
    assert hide.text(text) == text
    replaced = hide.text(b"from 198.51.7.1:80 and 198.51.7.9 to [fd00::2]:5 by 02:00:00:00:00:01, 10.0.0.2/24").decode()
    for gone in ("198.51.7", "fd00::2", "02:00:00:00:00:01", "10.0.0.2"):
        assert gone not in replaced
    one, other = replaced.split()[1].split(":")[0], replaced.split()[3]
    assert one.rpartition(".")[0] == other.rpartition(".")[0], "neighbours stay neighbours"
    assert ":80 " in replaced
    assert replaced.endswith("/24")


CARRIED = [*conversation(), ipv6(tcp(5, 6, seq=8, payload=SECRET)), ipv4(SECRET, protocol=250)]


def of_link(path: Path, name: str, carried: list[bytes] = CARRIED) -> Path:
    """Packets in frames of a link type."""
    link, wrap = LINKS[name]
    frames = [Frame.whole(10**15 + 10**6 * n, wrap(packet)) for n, packet in enumerate(carried)]
    path.write_bytes(pcap(frames, link=link))
    return path


@pytest.mark.parametrize("name", LINKS)
def test_frames_of_any_link_type_are_cut_to_headers_that_say_the_same(tmp_path: Path, name: str) -> None:
    path = of_link(tmp_path / "capture.pcap", name)
    cut = reduced(path)
    (before, original_results), (after, its) = read(path), read(cut)
    same_but_contents(before, after)
    assert np.array_equal(before.fingerprint, after.fingerprint)
    assert (original_results["packets"], original_results["notes"], before.hosts) == (
        its["packets"],
        its["notes"],
        after.hosts,
    )
    assert SECRET[:4] not in cut.read_bytes()
    original, again = (analysis.analyse(item) for item in (path, cut))
    assert again.metrics == original.metrics
    assert again.trust.verdict == original.trust.verdict == "good"


@pytest.mark.parametrize("name", sorted(LINKS.keys() - {"ip-over-infiniband"}))
def test_addresses_are_replaced_in_frames_of_any_link_type(tmp_path: Path, name: str) -> None:
    # Without the acknowledgement whose numbers look like one of the addresses.
    path = of_link(tmp_path / "capture.pcap", name, [*CARRIED[:4], *CARRIED[5:]])
    cut = reduced(path, Anonymiser(KEY))
    before, after = read(path)[0], read(cut)[0]
    same_but_contents(before, after)
    assert not set(before.hosts) & set(after.hosts)
    for host in before.hosts:
        assert ipaddress.ip_address(host).packed not in cut.read_bytes()


def test_no_file_is_written_if_addresses_would_stay(tmp_path: Path) -> None:
    path = of_link(tmp_path / "capture.pcap", "ip-over-infiniband")
    with pytest.raises(CannotReduce, match=r"whose addresses would stay \(link type 242 \(IP over InfiniBand\)\)"):
        write_reduced(path, BytesIO(), hide=Anonymiser(KEY))


@pytest.mark.parametrize("kind", KINDS)
def test_addresses_of_frames_within_are_replaced_behind_any_link_type(tmp_path: Path, kind: str) -> None:
    frame = KINDS[kind](ipv4(tcp()), 5)
    kind_and_rest, rest = frame[12:], frame[14:]
    cooked = bytes([0, 0, 0, 1, 0, 6]) + bytes(8), kind_and_rest[:2] + bytes(18)
    for link, behind in ((113, cooked[0] + kind_and_rest), (276, cooked[1] + rest)):
        path = tmp_path / f"{link}"
        path.write_bytes(pcap([Frame.whole(1, behind)], link=link))
        cut = reduced(path, Anonymiser(KEY)).read_bytes()
        assert not [item for item in (MACS[:6], MACS[6:]) if item in cut], link
