"""tshark as second decoder, for link types that the native one does not support.

It also reads encapsulations that the native decoder does not support, into the same PacketTable. The innermost IP
packet counts, as in the native decoder; packets quoted in ICMP errors do not. About 30 us per packet, at least 100
times the native decoder's time.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from analysis.addresses import Addresses
from analysis.capture.tshark import MOST_NS, nanoseconds, running
from analysis.kernels.handshake_signatures import (
    BTL_BYTES,
    LIBFABRIC_FIXED_BYTES,
    LIBFABRIC_HEADER_BYTES,
    LIBFABRIC_MOST_DATA,
    UCX_BYTES,
)
from analysis.packets import (
    COLUMNS,
    CUT,
    ENDS,
    FRAGMENT,
    GENEVE,
    GRE,
    ICMP,
    IPV4,
    IPV6,
    MOST_FLOWS,
    MOST_HOSTS,
    NO_FLOW,
    NO_HOST,
    NO_SCALE,
    REVERSE,
    SYN,
    TCP,
    UDP,
    VXLAN,
    WITHOUT_RANK,
    PacketTable,
)

_FIELDS: Final = (
    "frame.time_epoch", "frame.len", "frame.cap_len", "frame.protocols", "frame.encap_type",
    "ip.src", "ip.dst", "ip.frag_offset", "ip.proto", "ip.id", "ip.ttl",
    "ipv6.src", "ipv6.dst", "ipv6.fraghdr.offset", "ipv6.nxt", "ipv6.flow",
    "tcp.srcport", "tcp.dstport", "tcp.seq_raw", "tcp.ack_raw", "tcp.flags", "tcp.window_size_value", "tcp.len",
    "tcp.options.wscale.shift", "tcp.options.mss_val", "tcp.checksum",
    "udp.srcport", "udp.dstport", "udp.length", "udp.checksum",
    "ip.bogus_ip_length", "ip.dsfield.ecn", "ipv6.plen_exceeds_framing", "ipv6.tclass.ecn",
    "vxlan.vni", "geneve.vni", "gre.key",
    "infiniband.bth.opcode", "infiniband.bth.destqp", "infiniband.bth.psn",
    "wlan.fc.protected", "tcp.payload",
)  # fmt: skip
_MARK: Final = slice(_FIELDS.index("ip.src"), _FIELDS.index("wlan.fc.protected"))
"""Fields that identify a packet; VLANs do not, because a packet captured twice may be in two."""
_PREFERENCES: Final = (
    "tcp.analyze_sequence_numbers:FALSE", "tcp.desegment_tcp_streams:FALSE", "tcp.track_bytes_in_flight:FALSE",
    "ip.defragment:FALSE", "ipv6.defragment:FALSE",
)  # fmt: skip
_DECODE_AS: Final = ("udp.port==8472,vxlan",)
"""Port of VXLAN in Linux, used by overlay networks of containers."""
_CHUNK: Final = 20_000
_ROCE_PORT: Final = "4791"
_BTL_MAGIC: Final = b"OPAL-TCP-BTL"
_UCX_MAGIC: Final = 0xCAFEBABE12345678.to_bytes(8, "little")
_LIBFABRIC_REQUEST: Final = bytes([3, 0])
_ORDERS: Final[tuple[Literal["little", "big"], ...]] = ("little", "big")
_NETWORKS: Final = {
    "vxlan": ("vxlan.vni", VXLAN),
    "geneve": ("geneve.vni", GENEVE),
    "gre": ("gre.key", GRE),
}
"""Field and kind of virtual networks, by tshark's name of the protocol."""
_NAMING: Final = frozenset(field for field, _ in _NETWORKS.values())
_NEST: Final = 1_000_003
_NETWORK_MASK: Final = (1 << 56) - 1
_ERRORS: Final = frozenset({"icmp", "icmpv6"})
_QUOTING: Final = _ERRORS | {"sflow"}
"""Protocols that quote other packets."""
_HIDING: Final = frozenset({"esp", "macsec", "wg"})
_CARRYING: Final = frozenset(
    {
        "eth", "ethertype", "vlan", "etag", "vntag", "mpls", "llc", "pppoes", "ppp", "ieee8021ad", "ieee8021ah", "ieee8021cb", "hsr",
        "gre", "vxlan", "geneve", "ah", "wlan", "wlan_radio", "radiotap", "prism", "wlancap", "ppi", "chdlc", "fr", "tr", "fddi", "ipfc",
    }
)  # fmt: skip
"""Layers that end a truncated frame before its IP packet."""
_CARRYING_PORTS: Final = frozenset({"4789", "8472", "6081", "6635", "4754", "4791"})
"""UDP ports of supported tunnels and of RoCEv2."""
_TRUE: Final = ("1", "True")
Row = dict[str, int]
_EMPTY: Final[Row] = dict.fromkeys(COLUMNS, 0) | {
    "src": int(NO_HOST), "dst": int(NO_HOST), "flow": int(NO_FLOW), "wscale": int(NO_SCALE),
}  # fmt: skip


def stream_with_tshark(path: str | Path) -> Iterator[PacketTable]:
    """Yield tables of up to 20 000 packets with constant host and flow numbers.

    ``source`` of the last table describes the whole file. Raises UnreadableCapture, DecoderError.
    """
    arguments = ["-T", "fields", "-E", "separator=/t", "-E", "occurrence=a", "-E", "aggregator=,"]
    for field in _FIELDS:
        arguments += ["-e", field]
    for preference in _PREFERENCES:
        arguments += ["-o", preference]
    for rule in _DECODE_AS:
        arguments += ["-d", rule]
    reader = _Reader()
    with running(path, arguments, None) as run:
        while True:
            reader.source["first_packet"] = reader.packets
            table = reader.table(islice(run.stdout, _CHUNK))  # line by line: tshark continues meanwhile
            if reader.lines < _CHUNK:
                break
            yield table
    table.source.update(truncated_tail=run.truncated)
    if run.truncated:
        table.source["notes"] = ["the capture ends inside a record: all earlier records were read"]
    yield table


class _Reader:
    """Numbers hosts and flows, and converts lines of tshark's fields to columns."""

    def __init__(self) -> None:
        self.packets = 0
        self.lines = 0
        """Of the last table."""
        self._parts: list[str] = []
        self.source: dict[str, Any] = {"decoder": "pyshark", "format": "tshark", "first_packet": 0}
        self.source |= {"hidden": 0, "beyond_frame": 0, "addresses_not_kept": 0, "packets_beyond_flow_limit": 0}
        self.source["odd_stamps"] = 0
        self._hosts: dict[str, int] = {}
        self._flows: dict[tuple[int, int, int, int, int, int], int] = {}
        self._link_types: set[int] = set()

    def table(self, lines: Iterable[bytes]) -> PacketTable:
        rows: list[Row] = []
        signatures: list[tuple[int, int, int]] = []
        self.lines = 0
        for line in lines:
            if not line.endswith(b"\n"):
                break  # tshark was killed within a line; its caller reports that
            self.lines += 1
            self._parts = line.decode("ascii", "replace").rstrip("\r\n").split("\t")
            fields = dict(zip(_FIELDS, self._parts, strict=True))
            if not fields["frame.encap_type"]:
                continue  # a custom block or journal entry, which tshark numbers like a packet
            rows.append(self._row(fields))
            signature = _signature(fields["tcp.payload"], rows[-1]["payload"]) if fields["tcp.payload"] else None
            if signature is not None:
                signatures.append((len(rows) - 1, *signature))
        self.packets += len(rows)
        columns: dict[str, Any] = {
            name: np.array([row[name] for row in rows], dtype) for name, dtype in COLUMNS.items()
        }
        flows = list(self._flows)
        return PacketTable(
            **columns,
            hosts=Addresses.of(self._hosts),
            flow_endpoints=np.array([((key[0], key[2]), (key[1], key[3])) for key in flows], ENDS),
            flow_protocol=np.array([key[4] for key in flows], np.uint8),
            flow_network=np.array([key[5] for key in flows], np.uint64),
            btl_handshakes=np.array(signatures, np.int64).reshape(-1, 3),
            source={**self.source, "encapsulations": sorted(self._link_types)},
        )

    def _row(self, fields: dict[str, str]) -> Row:
        row = _EMPTY.copy()
        row["time_ns"] = nanoseconds(fields["frame.time_epoch"])
        self.source["odd_stamps"] += _is_odd(fields["frame.time_epoch"], row["time_ns"])
        row["orig_len"], row["cap_len"] = int(fields["frame.len"]), int(fields["frame.cap_len"])
        if fields["frame.encap_type"]:
            self._link_types.add(int(fields["frame.encap_type"]))
        protocols, quoted, hidden = _layers_of(fields["frame.protocols"])
        self.source["hidden"] += hidden or (fields["wlan.fc.protected"] in _TRUE and protocols[-1] == "data")
        self._network(row, fields, protocols[:quoted])
        if quoted < len(protocols) and protocols[quoted] in _ERRORS:
            row["kind"] |= ICMP
        elif row["kind"] and not row["kind"] & FRAGMENT:
            self.source["beyond_frame"] += _is_beyond_frame(fields)
            self._transport(row, fields, protocols[:quoted])
        if row["cap_len"] < row["orig_len"] and quoted == len(protocols) and _ends_early(fields, protocols[-1]):
            row["kind"] |= CUT
        return row

    def _network(self, row: Row, fields: dict[str, str], protocols: list[str]) -> None:
        inner = _innermost(protocols)
        if inner is None:
            return
        layer = protocols.count(inner) - 1
        source, target = _nth(fields[f"{inner}.src"], layer), _nth(fields[f"{inner}.dst"], layer)
        row["kind"] = IPV4 if inner == "ip" else IPV6
        if not source or not target or fields[f"{inner}.dst"].count(",") < layer:
            row["kind"] |= CUT
            return
        row["src"], row["dst"] = self._host(source), self._host(target)
        offset = _nth(fields["ip.frag_offset"], layer) if inner == "ip" else _nth(fields["ipv6.fraghdr.offset"], 0)
        if int(offset or "0", 0) > 0:
            row["kind"] |= FRAGMENT

    def _host(self, address: str) -> int:
        if len(self._hosts) >= MOST_HOSTS and address not in self._hosts:
            self.source["addresses_not_kept"] += 1
            return int(NO_HOST)
        return self._hosts.setdefault(address, len(self._hosts))

    def _transport(self, row: Row, fields: dict[str, str], protocols: list[str]) -> None:
        inner = next((name for name in reversed(protocols) if name in ("tcp", "udp", "ip", "ipv6")), "")
        layer = protocols.count(inner) - 1
        if inner == "tcp" and _nth(fields["tcp.window_size_value"], 0):
            length = _nth(fields["tcp.len"], 0)
            if not length:
                row["kind"] |= CUT
                return
            row["kind"] |= TCP
            row["payload"] = int(length)
            row["seq"], row["ack"], row["window"] = (
                int(_nth(fields[f"tcp.{name}"], 0) or 0) for name in ("seq_raw", "ack_raw", "window_size_value")
            )
            row["tcp_flags"] = int(_nth(fields["tcp.flags"], 0), 16) & 0xFF
            if row["tcp_flags"] & SYN:
                row["mss"] = int(_nth(fields["tcp.options.mss_val"], 0) or 0)
                row["wscale"] = int(_nth(fields["tcp.options.wscale.shift"], 0) or int(NO_SCALE))
        elif inner == "udp" and (claimed := int(_nth(fields["udp.length"], layer) or 0)) >= 8:
            row["kind"] |= UDP
            row["payload"] = claimed - 8
            if fields["infiniband.bth.psn"] and _last(fields["udp.dstport"]) == _ROCE_PORT:
                self._infiniband(row, fields, protocols)
        elif inner in ("tcp", "udp") or _last(fields["ip.proto"] or fields["ipv6.nxt"]) in ("6", "17"):
            row["kind"] |= CUT
            return
        else:
            return
        row["sport"], row["dport"] = (int(_nth(fields[f"{inner}.{end}port"], layer)) for end in ("src", "dst"))
        self._flow(row, 6 if inner == "tcp" else 17, _virtual_network(fields, protocols))
        row["fingerprint"] = zlib.crc32("\t".join(self._parts[_MARK]).encode())

    @staticmethod
    def _infiniband(row: Row, fields: dict[str, str], protocols: list[str]) -> None:
        row["window"] = int(_last(fields["infiniband.bth.opcode"]), 0)
        row["ack"], row["seq"] = (int(_last(fields[f"infiniband.bth.{name}"]), 0) for name in ("destqp", "psn"))
        inner = next(name for name in reversed(protocols) if name in ("ip", "ipv6"))
        row["tcp_flags"] = int(_last(fields["ip.dsfield.ecn" if inner == "ip" else "ipv6.tclass.ecn"]) or "0", 0)

    def _flow(self, row: Row, protocol: int, network: int) -> None:
        if NO_HOST in (row["src"], row["dst"]):
            return
        forward = (row["src"], row["sport"], row["dst"], row["dport"], protocol, network)
        backward = (row["dst"], row["dport"], row["src"], row["sport"], protocol, network)
        if backward in self._flows and forward != backward:
            row["flow"] = self._flows[backward]
            row["kind"] |= REVERSE
        elif len(self._flows) >= MOST_FLOWS and forward not in self._flows:
            self.source["packets_beyond_flow_limit"] += 1
        else:
            row["flow"] = self._flows.setdefault(forward, len(self._flows))


def _is_beyond_frame(fields: dict[str, str]) -> bool:
    return bool(fields["ip.bogus_ip_length"] or fields["ipv6.plen_exceeds_framing"])


def _is_odd(epoch: str, time_ns: int) -> bool:
    """Return True for impossible times: tshark's nanoseconds overflow above 2 s."""
    fraction = epoch.rpartition(".")[2]
    return epoch.startswith("-") or abs(time_ns) == MOST_NS or (len(fraction) > 9 and int(fraction) >= 2_000_000_000)


def _signature(payload: str, length: int) -> tuple[int, int] | None:
    """Return (jobid, rank) as kernels.handshake_signatures does."""
    first = bytes.fromhex(payload.rpartition(",")[2][: 2 * LIBFABRIC_FIXED_BYTES])
    if len(first) < UCX_BYTES:
        return None
    little, rank = int.from_bytes(first[:4], "little"), min(int.from_bytes(first[4:8], order) for order in _ORDERS)
    data = length - LIBFABRIC_HEADER_BYTES
    requests = (
        first == _LIBFABRIC_REQUEST + (data & 0xFFFF).to_bytes(2) + bytes(20) and 8 <= data <= LIBFABRIC_MOST_DATA
    )
    if first[:8] == _UCX_MAGIC or requests:
        return WITHOUT_RANK, 0
    if first[8:20] == _BTL_MAGIC and len(first) >= BTL_BYTES:
        return little, rank
    return None


def _innermost(protocols: list[str]) -> str | None:
    return next((name for name in reversed(protocols) if name in ("ip", "ipv6")), None)


@lru_cache(maxsize=4096)
def _layers_of(protocols: str) -> tuple[list[str], int, bool]:
    """Return protocols from outside in, unquoted ones, True if one is opaque."""
    names = protocols.split(":")
    quoted = next((at for at, name in enumerate(names) if name in _QUOTING), len(names))
    if "tcp" in names[:quoted]:  # a packet in a byte stream, as of OpenFlow, is quoted too
        quoted = names.index("tcp") + 1
    return names, quoted, not _HIDING.isdisjoint(names[:quoted])


def _ends_early(fields: dict[str, str], innermost_layer: str) -> bool:
    """Return True if a truncated frame ends before the content of its headers."""
    if innermost_layer == "infiniband":
        return not fields["infiniband.bth.psn"]
    return innermost_layer in _CARRYING or (
        innermost_layer == "udp" and _last(fields["udp.dstport"]) in _CARRYING_PORTS
    )


def _virtual_network(fields: dict[str, str], protocols: list[str]) -> int:
    """Return the word of the networks around the innermost IP packet."""
    if not any(fields[field] for field in _NAMING):
        return 0
    inner = max((at for at, name in enumerate(protocols) if name in ("ip", "ipv6")), default=0)
    waiting = {field: [value for value in fields[field].split(",") if value] for field, _ in _NETWORKS.values()}
    network = 0
    for name in protocols[:inner]:
        field, kind = _NETWORKS.get(name, ("", 0))
        if field and waiting[field]:
            number = int(waiting[field].pop(0), 0)
            network = (network * _NEST ^ (kind << 32 | number)) & _NETWORK_MASK
    return network


def _nth(values: str, index: int) -> str:
    """Return the value of the ``index``-th header, or of the last."""
    parts = values.split(",")
    return parts[min(index, len(parts) - 1)]


def _last(values: str) -> str:
    return values.rpartition(",")[2]
