"""Packets of a capture as rows and trees for the inspector, from tshark's dissection. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_ADDRESSES = (("ip.src", "ip.dst"), ("ipv6.src", "ipv6.dst"), ("arp.src.proto_ipv4", "arp.dst.proto_ipv4"))
_HARDWARE = ("eth.src", "eth.dst")
_UNNAMED = ("data", "fake-field-wrapper")
_PORTS = (("tcp.srcport", "tcp.dstport"), ("udp.srcport", "udp.dstport"))


@dataclass(frozen=True, slots=True)
class Row:
    """One packet of the list; `time_s` counts from the first packet of the capture, None where none is recorded."""

    number: int
    time_s: float | None
    source: str
    destination: str
    protocol: str
    length: int
    info: str


def row(packet: Mapping[str, Any]) -> Row:
    """The packet in one line, in the manner of Wireshark's list."""
    values = dict(_values(packet["layers"]))
    source, destination = _ends(values)
    relative = values.get("frame.time_relative")
    return Row(
        number=packet["number"],
        time_s=float(relative) if relative and packet["time_ns"] is not None else None,
        source=source,
        destination=destination,
        protocol=protocol(packet),
        length=packet["length"],
        info=_info(packet["layers"], values),
    )


def protocol(packet: Mapping[str, Any]) -> str:
    """The highest protocol that tshark knows: bytes that it cannot name belong to the layer below."""
    named = [layer["name"] for layer in packet["layers"] if layer["name"] not in _UNNAMED]
    return str(named[-1].upper() if packet["protocol"] == "DATA" and named else packet["protocol"])


def _values(nodes: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Every field with its value, inner ones first, so that an outer header's value wins over a tunnelled one's."""
    for node in reversed(nodes):
        yield from _values(node["fields"])
        yield node["name"], node["value"]


def _ends(values: Mapping[str, str]) -> tuple[str, str]:
    for names in (*_ADDRESSES, _HARDWARE):
        if names[0] in values:
            return values[names[0]], values.get(names[1], "")
    return "", ""


def _info(layers: Sequence[Mapping[str, Any]], values: Mapping[str, str]) -> str:
    """Ports, flags and numbers of TCP; ports of UDP; what the innermost layer says of itself otherwise."""
    ports = next((f"{values[a]} → {values.get(b, '')}" for a, b in _PORTS if a in values), "")
    if "tcp.seq" in values:
        numbers = f"Seq={values['tcp.seq']} Ack={values.get('tcp.ack', '0')} Len={values.get('tcp.len', '0')}"
        return f"{ports} [{_flags(layers)}] {numbers} Win={values.get('tcp.window_size', '')}"
    named = [layer for layer in layers if layer["label"]]
    label: str = named[-1]["label"] if named else ""
    return f"{ports} {label}".strip()


def _flags(layers: Sequence[Mapping[str, Any]]) -> str:
    """'SYN, ACK' out of 'Flags: 0x012 (SYN, ACK)'."""
    tcp = next(layer for layer in layers if layer["name"] == "tcp")
    label: str = next((field["label"] for field in tcp["fields"] if field["name"] == "tcp.flags"), "")
    return label.partition("(")[2].rstrip(")")
