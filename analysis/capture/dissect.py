"""Every field of a few packets: tshark's dissection tree, read through pyshark.

The second decoder is ``analysis.capture.tshark_table``; pages that show packets do not load its kernels, which take 55 MB.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lxml import etree, objectify  # type: ignore[import-untyped]
from pyshark.tshark.output_parser.tshark_xml import DEL_BAD_XML_CHARS, packet_from_xml_packet

from analysis.capture.tshark import check_filter, nanoseconds, running, selection
from analysis.errors import DecoderError
from analysis.packets import NO_TIME

__all__ = ["check_filter", "dissect"]


def dissect(
    capture: str | Path,
    *,
    frames: tuple[int, int] | None = None,
    display_filter: str | None = None,
    limit: int = 50,
    timeout_s: float = 20.0,
) -> list[dict[str, Any]]:
    """Return the first ``limit`` packets of ``frames`` that pass ``display_filter``.

    ``frames`` is (first, last), numbered from 1, inclusive. One packet:
    ``{"number", "time_ns", "length", "captured_length", "protocol", "layers": [layer]}``; a layer or field:
    ``{"name", "label", "value", "position", "size", "fields": [field]}`` with ``name`` as display filters know it, ``label`` as
    Wireshark prints it, ``position`` and ``size`` in bytes of the frame. Raises ValueError for invalid frame numbers,
    FilterError, UnreadableCapture, and DecoderError when tshark fails or needs longer than ``timeout_s``.
    """
    arguments = ["-T", "pdml", *selection(frames, None, display_filter, limit)]
    packets = []
    with running(capture, arguments, timeout_s) as run:
        for document in run.packets():
            packets.append(_packet(document))
            if len(packets) == limit:
                run.enough = True
                break
    return packets


def _packet(document: bytes) -> dict[str, Any]:
    parser = objectify.makeparser(recover=True, encoding="utf-8", resolve_entities=False, no_network=True)
    text = document.decode(errors="replace").translate(DEL_BAD_XML_CHARS)
    try:
        element = objectify.fromstring(text.encode(), parser)
    except etree.XMLSyntaxError as error:
        raise DecoderError(f"tshark's tree of a packet cannot be read: {error}") from error
    packet = packet_from_xml_packet(element)
    if packet.number is None:
        raise DecoderError("this record of the capture is not a packet of a network")
    return {
        "number": int(packet.number),
        "time_ns": _time_ns(packet.frame_info.get_field_value("time_epoch")),
        "length": int(packet.length, 0),
        "captured_length": int(packet.captured_length, 0),
        "protocol": packet.highest_layer,
        "layers": [_node(layer) for layer in element.iterchildren("proto") if layer.get("name") != "geninfo"],
    }


def _time_ns(epoch: str | None) -> int | None:
    time_ns = nanoseconds(str(epoch or ""))
    return None if time_ns == NO_TIME else time_ns


def _node(element: Any) -> dict[str, Any]:
    """Return a layer or field with its children, without entries that Wireshark hides."""
    children = element.iterchildren("field", "proto")
    return {
        "name": element.get("name", ""),
        "label": element.get("showname") or element.get("show") or element.get("name", ""),
        "value": element.get("show", ""),
        "position": int(element.get("pos") or 0),
        "size": int(element.get("size") or 0),
        "fields": [_node(child) for child in children if child.get("hide") != "yes"],
    }
