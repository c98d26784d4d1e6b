"""tshark as the second decoder: the same PacketTable for link types and encapsulations that the native one does not know.

Where packets are encapsulated, the innermost IP packet counts, as in the native decoder; a packet quoted in an ICMP error does
not. About 30 us per packet, a hundred times the native decoder's time and more.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from analysis.addresses import Addresses
from analysis.capture.handshake_signatures import Greetings
from analysis.capture.tshark import MOST_NS, nanoseconds, running
from analysis.capture.tshark_fields import (
    ERRORS,
    TRUE,
    begins_fragments,
    content_bytes,
    ends_early,
    innermost,
    last,
    layers_of,
    named,
    nth,
    virtual_network,
)
from analysis.kernels.frames.framing import MOST_DROPPED
from analysis.kernels.handshake_signatures import (
    BTL_BYTES,
    LIBFABRIC_FIXED_BYTES,
    LIBFABRIC_HEADER_BYTES,
    LIBFABRIC_MOST_DATA,
    MOST_JOBS,
    MOST_RANKS,
    OLD_BYTES,
)
from analysis.packets import (
    CUT,
    ENDS,
    FRAGMENT,
    ICMP,
    IPV4,
    IPV6,
    MOST_FLOWS,
    MOST_HOSTS,
    NO_FLOW,
    NO_HOST,
    NO_SCALE,
    ONE_SIDED,
    REVERSE,
    SYN,
    TCP,
    UDP,
    WITHOUT_RANK,
    PacketTable,
)

_FIELDS: Final = (
    "frame.time_epoch", "frame.len", "frame.cap_len", "frame.protocols", "frame.encap_type", "frame.drop_count",
    "ip.src", "ip.dst", "ip.frag_offset", "ip.proto", "ip.id", "ip.ttl",
    "ipv6.src", "ipv6.dst", "ipv6.fraghdr.offset", "ipv6.nxt", "ipv6.flow",
    "tcp.srcport", "tcp.dstport", "tcp.seq_raw", "tcp.ack_raw", "tcp.flags", "tcp.window_size_value", "tcp.len",
    "tcp.options.wscale.shift", "tcp.options.mss_val", "tcp.checksum",
    "udp.srcport", "udp.dstport", "udp.length", "udp.checksum",
    "ip.len", "ip.hdr_len", "ip.bogus_ip_length", "ip.flags.mf", "ip.dsfield.ecn", "tcp.hdr_len",
    "ipv6.plen", "ipv6.plen_exceeds_framing", "ipv6.fraghdr.more", "ipv6.tclass.ecn",
    "vxlan.vni", "geneve.vni", "gre.key", "pppoe.session_id", "ieee8021ah.isid",
    "infiniband.bth.opcode", "infiniband.bth.destqp", "infiniband.bth.psn",
    "wlan.fc.protected", "tcp.payload", "vlan.id", "ieee8021ad.id", "ieee8021ad.svid", "ieee8021ad.cvid", "mpls.label",
)  # fmt: skip
_WAYS: Final = _FIELDS[-5:]
_NO_WAY: Final = ("",) * len(_WAYS)
_MARK: Final = slice(_FIELDS.index("ip.src"), _FIELDS.index("wlan.fc.protected"))
"""What tells packets apart: one that is seen twice may be under another VLAN then."""
_PREFERENCES: Final = (
    "tcp.analyze_sequence_numbers:FALSE", "tcp.desegment_tcp_streams:FALSE", "tcp.track_bytes_in_flight:FALSE",
    "ip.defragment:FALSE", "ipv6.defragment:FALSE",
)  # fmt: skip
_DECODE_AS: Final = ("udp.port==8472,vxlan",)
"""Linux' own port for VXLAN, which overlay networks of containers still use."""
_CHUNK: Final = 20_000
_ROCE_PORT: Final = "4791"
_BTL_MAGIC: Final = b"OPAL-TCP-BTL"
_UCX_MAGIC: Final = 0xCAFEBABE12345678.to_bytes(8, "little")
_LIBFABRIC_REQUEST: Final = bytes([3, 0])
_ORDERS: Final[tuple[Literal["little", "big"], ...]] = ("little", "big")
_TYPES: Final[dict[str, Any]] = {
    "time_ns": np.int64, "orig_len": np.uint32, "cap_len": np.uint32, "kind": np.uint8, "src": np.uint32, "dst": np.uint32,
    "sport": np.uint16, "dport": np.uint16, "flow": np.uint32, "payload": np.uint32, "seq": np.uint32, "ack": np.uint32,
    "window": np.uint16, "tcp_flags": np.uint8, "wscale": np.uint8, "mss": np.uint16, "fingerprint": np.uint32,
}  # fmt: skip
_COLUMNS: Final = tuple(_TYPES)
Row = dict[str, int]
_EMPTY: Final[Row] = dict.fromkeys(_COLUMNS, 0) | {
    "src": int(NO_HOST), "dst": int(NO_HOST), "flow": int(NO_FLOW), "wscale": int(NO_SCALE),
}  # fmt: skip


def stream_with_tshark(path: str | Path, *, timeout_s: float | None = None) -> Iterator[PacketTable]:
    """Tables of up to 20 000 packets in file order; ``hosts``, ``flow`` and the like keep their numbers from table to table.

    ``source`` of the last table tells of the whole file. Raises UnreadableCapture, DecoderError.
    """
    arguments = ["-T", "fields", "-E", "separator=/t", "-E", "occurrence=a", "-E", "aggregator=,"]
    for field in _FIELDS:
        arguments += ["-e", field]
    for preference in _PREFERENCES:
        arguments += ["-o", preference]
    for rule in _DECODE_AS:
        arguments += ["-d", rule]
    reader = _Reader()
    with running(path, arguments, timeout_s) as run:
        while True:
            reader.source["first_packet"] = reader.packets
            table = reader.table(islice(run.stdout, _CHUNK))  # line by line: tshark goes on meanwhile
            if reader.lines < _CHUNK:
                break
            yield table
    table.source.update(truncated_tail=run.truncated)
    if run.truncated:
        table.source["notes"] = ["the capture ends inside a record: everything before it was read"]
    yield table


def read_with_tshark(path: str | Path, *, timeout_s: float | None = None) -> PacketTable:
    """The whole capture as one table. Raises UnreadableCapture, DecoderError."""
    tables = list(stream_with_tshark(path, timeout_s=timeout_s))
    return PacketTable.joined(tables, source={**tables[-1].source, "first_packet": 0})


class _Reader:
    """Numbers hosts and flows as they appear, and turns lines of tshark's fields into columns."""

    def __init__(self) -> None:
        self.packets = 0
        self.lines = 0
        """Of the last table."""
        self._parts: list[str] = []
        self.source: dict[str, Any] = {"decoder": "pyshark", "format": "tshark", "first_packet": 0}
        self.source |= {"hidden": 0, "beyond_frame": 0, "addresses_not_kept": 0, "packets_beyond_flow_limit": 0}
        self.source["odd_stamps"] = 0
        self._hosts: dict[str, int] = {}
        self._addresses = Addresses()
        self._flows: dict[tuple[int, int, int, int, int, int], int] = {}
        self._ends, self._protocols = np.zeros(0, ENDS), np.zeros(0, np.uint8)
        self._networks = np.zeros(0, np.uint64)
        self._ways: dict[tuple[int, int], tuple[str, ...]] = {}
        self._strays: dict[int, int] = {}
        self._link_types: set[int] = set()
        self._greetings = Greetings()

    def table(self, lines: Iterable[bytes]) -> PacketTable:
        rows: list[Row] = []
        greetings: list[tuple[int, int, int]] = []
        self.lines = 0
        for line in lines:
            if not line.endswith(b"\n"):
                break  # tshark was ended in the middle of a line; whoever ended it reports that
            self.lines += 1
            self._parts = line.decode("ascii", "replace").rstrip("\r\n").split("\t")
            fields = dict(zip(_FIELDS, self._parts, strict=True))
            if not fields["frame.encap_type"]:
                continue  # a custom block or a journal entry, which tshark numbers like a packet
            rows.append(self._row(fields))
            said = _greeting(fields["tcp.payload"], rows[-1]["payload"]) if fields["tcp.payload"] else None
            if said is not None:
                greetings.append((len(rows) - 1, *said))
        self.packets += len(rows)
        columns: dict[str, Any] = {name: np.array([row[name] for row in rows], _TYPES[name]) for name in _COLUMNS}
        self._note_hosts_and_flows()
        heard = np.array(greetings, np.int64).reshape(-1, 3)
        confirmed = self._greetings.confirmed(heard, columns["flow"], columns["kind"])
        self.source["greetings_forgotten"] = self._greetings.forgotten
        return PacketTable(
            **columns,
            hosts=self._addresses,
            flow_endpoints=self._ends,
            flow_protocol=self._protocols,
            flow_network=self._networks,
            flow_strays=self._strays_of_all(),
            btl_handshakes=confirmed,
            source={**self.source, "encapsulations": sorted(self._link_types)},
        )

    def _note_hosts_and_flows(self) -> None:
        """Arrays of all so far: only the new ones are looked at, or a table would cost more the more there were before it."""
        if len(self._hosts) > len(self._addresses):
            self._addresses = self._addresses.with_more(islice(self._hosts, len(self._addresses), None))
        new = list(islice(self._flows, len(self._ends), None))
        if new:
            ends = np.array([((key[0], key[2]), (key[1], key[3])) for key in new], ENDS)
            self._ends = np.concatenate([self._ends, ends])
            self._protocols = np.concatenate([self._protocols, np.array([key[4] for key in new], np.uint8)])
            self._networks = np.concatenate([self._networks, np.array([key[5] for key in new], np.uint64)])

    def _row(self, fields: dict[str, str]) -> Row:
        row = _EMPTY.copy()
        row["time_ns"] = nanoseconds(fields["frame.time_epoch"])
        self.source["odd_stamps"] += _is_odd(fields["frame.time_epoch"], row["time_ns"])
        row["orig_len"], row["cap_len"] = int(fields["frame.len"]), int(fields["frame.cap_len"])
        if fields["frame.encap_type"]:
            self._link_types.add(int(fields["frame.encap_type"]))
        protocols, quoted, hidden = layers_of(fields["frame.protocols"])
        if dropped := int(fields["frame.drop_count"] or 0):
            told = self.source.get("dropped_between_packets", 0)
            self.source["dropped_between_packets"] = min(told + dropped, MOST_DROPPED)
        self.source["hidden"] += hidden or (fields["wlan.fc.protected"] in TRUE and protocols[-1] == "data")
        self._network(row, fields, protocols[:quoted])
        if quoted < len(protocols) and protocols[quoted] in ERRORS:
            row["kind"] |= ICMP
        elif row["kind"] and not row["kind"] & FRAGMENT:
            self.source["beyond_frame"] += _is_beyond_frame(fields)
            self._transport(row, fields, protocols[:quoted])
        if row["cap_len"] < row["orig_len"] and quoted == len(protocols) and ends_early(fields, protocols[-1]):
            row["kind"] |= CUT
        return row

    def _network(self, row: Row, fields: dict[str, str], protocols: list[str]) -> None:
        """Addresses and fragmentation of the innermost IP header."""
        inner = innermost(protocols)
        if inner is None:
            return
        layer = protocols.count(inner) - 1
        source, target = nth(fields[f"{inner}.src"], layer), nth(fields[f"{inner}.dst"], layer)
        row["kind"] = IPV4 if inner == "ip" else IPV6
        if not source or not target or fields[f"{inner}.dst"].count(",") < layer:
            row["kind"] |= CUT
            return
        row["src"], row["dst"] = self._host(source), self._host(target)
        offset = nth(fields["ip.frag_offset"], layer) if inner == "ip" else nth(fields["ipv6.fraghdr.offset"], 0)
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
        if inner == "tcp" and nth(fields["tcp.window_size_value"], 0):
            length = self._segment(fields, protocols)
            if length is None:
                row["kind"] |= CUT
                return
            row["kind"] |= TCP
            row["payload"] = length
            row["seq"], row["ack"], row["window"] = (
                int(nth(fields[f"tcp.{name}"], 0) or 0) for name in ("seq_raw", "ack_raw", "window_size_value")
            )
            row["tcp_flags"] = int(nth(fields["tcp.flags"], 0), 16) & 0xFF
            if row["tcp_flags"] & SYN:
                row["mss"] = int(nth(fields["tcp.options.mss_val"], 0) or 0)
                row["wscale"] = int(nth(fields["tcp.options.wscale.shift"], 0) or int(NO_SCALE))
        elif inner == "udp" and (claimed := _claimed(fields, protocols)) >= 8:
            row["kind"] |= UDP
            row["payload"] = self._datagram(fields, protocols, claimed) - 8
            if fields["infiniband.bth.psn"] and last(fields["udp.dstport"]) == _ROCE_PORT:
                self._infiniband(row, fields, protocols)
        elif inner in ("tcp", "udp") or last(fields["ip.proto"] or fields["ipv6.nxt"]) in ("6", "17"):
            row["kind"] |= CUT
            return
        else:
            return
        row["sport"], row["dport"] = (int(nth(fields[f"{inner}.{end}port"], layer)) for end in ("src", "dst"))
        self._flow(row, 6 if inner == "tcp" else 17, virtual_network(fields, protocols))
        if row["flow"] != NO_FLOW and (inner == "tcp" or row["dport"] == int(_ROCE_PORT)):
            under = any(self._parts[-len(_WAYS) :])
            self._note_way(row, tuple(named(name, fields[name]) for name in _WAYS) if under else _NO_WAY)
        row["fingerprint"] = zlib.crc32("\t".join(self._parts[_MARK]).encode())

    def _segment(self, fields: dict[str, str], protocols: list[str]) -> int | None:
        """Payload of a TCP segment: of a first fragment what that one holds, which tshark does not say. None: no header of TCP."""
        if length := nth(fields["tcp.len"], 0):
            return int(length)
        content, header = content_bytes(fields, protocols), int(nth(fields["tcp.hdr_len"], 0) or 0)
        return content - header if content is not None and 20 <= header <= content else None

    def _datagram(self, fields: dict[str, str], protocols: list[str], claimed: int) -> int:
        """Bytes of a UDP datagram: as it says, at most what its IP packet has for it."""
        content = content_bytes(fields, protocols)
        if content is None:
            return claimed
        more = claimed > content and not begins_fragments(fields, protocols)
        self.source["beyond_frame"] += more and not _is_beyond_frame(fields)
        return max(min(claimed, content), 8)

    @staticmethod
    def _infiniband(row: Row, fields: dict[str, str], protocols: list[str]) -> None:
        """What RoCEv2 puts where TCP has numbers and flags (PacketTable)."""
        row["window"] = int(last(fields["infiniband.bth.opcode"]), 0)
        row["ack"], row["seq"] = (int(last(fields[f"infiniband.bth.{name}"]), 0) for name in ("destqp", "psn"))
        inner = next(name for name in reversed(protocols) if name in ("ip", "ipv6"))
        row["tcp_flags"] = int(last(fields["ip.dsfield.ecn" if inner == "ip" else "ipv6.tclass.ecn"]) or "0", 0)

    def _note_way(self, row: Row, way: tuple[str, ...]) -> None:
        """As kernels.endpoints.note_way."""
        if self._ways.setdefault((row["flow"], row["kind"] & REVERSE), way) != way:
            self._strays[row["flow"]] = self._strays.get(row["flow"], 0) + 1

    def _strays_of_all(self) -> npt.NDArray[np.uint32]:
        strays = np.zeros(len(self._flows), np.uint32)
        strays[list(self._strays)] = list(self._strays.values())
        return strays

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


def _claimed(fields: dict[str, str], protocols: list[str]) -> int:
    """How long a UDP datagram says that it is; 0 stands for what a jumbogram of IPv6 holds."""
    length = int(nth(fields["udp.length"], protocols.count("udp") - 1) or 0)
    return length if length or innermost(protocols) == "ip" else content_bytes(fields, protocols) or 0


def _is_beyond_frame(fields: dict[str, str]) -> bool:
    """Whether tshark found the length of an IP packet to be more than there is room for in its frame."""
    return bool(fields["ip.bogus_ip_length"] or fields["ipv6.plen_exceeds_framing"])


def _is_odd(epoch: str, time_ns: int) -> bool:
    """Whether tshark prints what no clock says: its 32 bits for nanoseconds overflow where a fraction is longer than two seconds."""
    fraction = epoch.rpartition(".")[2]
    return epoch.startswith("-") or abs(time_ns) == MOST_NS or (len(fraction) > 9 and int(fraction) >= 2_000_000_000)


def _greeting(payload: str, length: int) -> tuple[int, int] | None:
    """What the native decoder makes of the first ``length`` bytes that a side says (kernels.greetings)."""
    said = bytes.fromhex(payload.rpartition(",")[2][: 2 * LIBFABRIC_FIXED_BYTES])
    if len(said) < OLD_BYTES:
        return None
    little, rank = int.from_bytes(said[:4], "little"), min(int.from_bytes(said[4:8], order) for order in _ORDERS)
    data = length - LIBFABRIC_HEADER_BYTES
    requests = said == _LIBFABRIC_REQUEST + (data & 0xFFFF).to_bytes(2) + bytes(20) and 8 <= data <= LIBFABRIC_MOST_DATA
    if said[:8] == _UCX_MAGIC or requests:
        return WITHOUT_RANK, 0
    if said[8:20] == _BTL_MAGIC and len(said) >= BTL_BYTES:
        return little, rank
    jobs = [int.from_bytes(said[:4], order) for order in _ORDERS]
    of_jobs = any(1 <= job & 0xFFFF <= MOST_JOBS and job > 0xFFFF for job in jobs)
    return (little | ONE_SIDED, rank) if length == OLD_BYTES and of_jobs and rank < MOST_RANKS else None
