"""Capture filters in pcap's language, compiled by libpcap if the machine has it."""

from __future__ import annotations

import ctypes
import functools
import ipaddress
import re
from typing import Final

_LIBRARIES: Final = ("libpcap.so.0.8", "libpcap.so.1")
"""Names of libpcap: of Debian, and of other distributions."""
_ETHERNET, _LONGEST = 1, 65_535
_ANY_NETMASK: Final = 0xFFFFFFFF
_WORDS: Final = frozenset(
    (
        "and", "or", "not", "src", "dst", "host", "net", "mask", "port",
        "portrange", "less", "greater", "len", "proto", "ether", "gateway", "broadcast", "multicast",
        "vlan", "mpls", "inbound", "outbound", "ip", "ip6", "arp", "rarp", "tcp",
        "udp", "icmp", "icmp6", "igmp", "sctp", "ah", "esp",
    )
)  # fmt: skip
"""Words of the language; libpcap would resolve others as names of hosts, networks or services."""
_TOKEN: Final = re.compile(r"[\w.:-]+|\\")
_TWO_WORDS: Final = re.compile(r"(?<![\w.:\\-])([A-Za-z][\w.-]*)\s+(?=([A-Za-z][\w.-]*))")
_NUMBER: Final = re.compile(
    r"0x[0-9A-Fa-f]+|[0-9]+(?:[:-][0-9]+|(?:\.[0-9]+){1,3})?|(?:[0-9A-Fa-f]{1,2}[:-]){5}[0-9A-Fa-f]{1,2}"
)
"""A number, a range, an address of IPv4 or of Ethernet."""
_LONGEST_COMPILED: Final = 1000
"""Characters: the time of libpcap grows with their cube."""


class _Program(ctypes.Structure):
    """``struct bpf_program`` of libpcap."""

    _fields_ = (("bf_len", ctypes.c_uint), ("bf_insns", ctypes.c_void_p))


def why_not_compiled(text: str) -> str:
    """Return why a filter cannot be compiled, or "".

    Long filters, those with names, which would be resolved, and machines without libpcap: only the brackets are checked.
    """
    for first, last in ("()", "[]"):
        if text.count(first) != text.count(last):
            more = first if text.count(first) > text.count(last) else last
            return f"one “{more}” has no partner"
    if match := next((match for match in _TWO_WORDS.finditer(text) if _WORDS.isdisjoint(match.groups())), None):
        return f"“{match[1]} {match[2]}” has no “and” or “or”"
    is_plain = text.isascii() and "\0" not in text and len(text) <= _LONGEST_COMPILED
    return _compiled(text) if is_plain and all(map(_is_no_name, _TOKEN.findall(text))) else ""


def _is_no_name(token: str) -> bool:
    if token in _WORDS or _NUMBER.fullmatch(token):
        return True
    try:
        return bool(ipaddress.IPv6Address(token))
    except ValueError:
        return False


@functools.lru_cache(maxsize=64)
def _compiled(text: str) -> str:
    library = _library()
    handle = library.pcap_open_dead(_ETHERNET, _LONGEST) if library is not None else None
    if library is None or not handle:
        return ""
    program = _Program()
    try:
        if library.pcap_compile(handle, ctypes.byref(program), text.encode(), 1, _ANY_NETMASK) == 0:
            library.pcap_freecode(ctypes.byref(program))
            return ""
        return str(library.pcap_geterr(handle).decode(errors="replace"))
    finally:
        library.pcap_close(handle)


@functools.cache
def _library() -> ctypes.CDLL | None:
    for name in _LIBRARIES:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        library.pcap_open_dead.restype = ctypes.c_void_p
        library.pcap_open_dead.argtypes = (ctypes.c_int, ctypes.c_int)
        library.pcap_compile.argtypes = (
            ctypes.c_void_p,
            ctypes.POINTER(_Program),
            ctypes.c_char_p,
            ctypes.c_int,
            ctypes.c_uint32,
        )
        library.pcap_freecode.argtypes = (ctypes.POINTER(_Program),)
        library.pcap_geterr.restype = ctypes.c_char_p
        library.pcap_geterr.argtypes = library.pcap_close.argtypes = (ctypes.c_void_p,)
        return library
    return None
