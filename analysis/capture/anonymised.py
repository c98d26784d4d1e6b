"""Anonymised addresses: distinct ones stay distinct, networks stay networks.

IP addresses by Crypto-PAn (Xu, Fan, Ammar, Moon: Prefix-Preserving IP Address Anonymization, ICNP 2002): two that have their first n
bits in common have n bits in common afterwards. Loopback, multicast and unspecified addresses do not change, and no other address becomes
one of them: bits that lead there are never flipped. The key is random, used once and not stored.
"""

from __future__ import annotations

import ipaddress
import re
import secrets
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

KEY_BYTES: Final = 32
Bytes = npt.NDArray[np.uint8]
_UNCHANGED: Final[dict[int, tuple[str, ...]]] = {
    4: ("0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/4", "255.255.255.255/32"),
    16: ("::/127", "ff02::/16", "fe80::/16"),
}
"""Unchanged networks, by the length of an address; of the last two of IPv6, the prefix only."""
_BEGINNING_ONLY: Final = ("ff02::/16", "fe80::/16")
_AT_ONCE: Final = 2048
MOST_ADDRESSES: Final = 1 << 19
"""Distinct addresses of one export: each takes 300 bytes of memory, and in a text 0.2 ms."""
_V4: Final = rb"(?<![\w.])(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?![\w]|\.[0-9])"
_MAC: Final = rb"(?<![\w:])[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}(?![\w:])"
_V6: Final = rb"(?<![\w:.])(?=[0-9A-Fa-f:]*:[0-9A-Fa-f:]*:)[0-9A-Fa-f:]{3,39}(?![\w:])"
_LITERAL: Final = re.compile(_V4 + rb"|" + _MAC + rb"|" + _V6)
_NEAR: Final = {4: 3, 16: 8}
"""Bytes that an address in a text shares with one of a capture to count as its neighbour."""


class TooManyAddresses(Exception):
    """The files of an export have too many distinct addresses."""


class Anonymiser:
    """One mapping of addresses, the same for all files of an export.

    ``check`` is called at each address of a text, and may raise.
    """

    def __init__(
        self, key: bytes | None = None, *, keep: bool = True, check: Callable[[], object] = lambda: None
    ) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        key = secrets.token_bytes(KEY_BYTES) if key is None else key
        if len(key) != KEY_BYTES:
            raise ValueError(f"a key has {KEY_BYTES} bytes, not {len(key)}")
        self._cipher: Any = Cipher(algorithms.AES(key[:16]), modes.ECB())  # noqa: S305 - a pseudo-random function of one block
        self._pad = self._encrypted(key[16:])
        self._keep, self._check = keep, check
        self._mappings: dict[int, dict[bytes, bytes]] = {4: {}, 6: {}, 16: {}}
        self._networks: set[bytes] = set()

    def _encrypted(self, blocks: bytes) -> bytes:
        turned: bytes = self._cipher.encryptor().update(blocks)
        return turned

    def replace(self, buffer: Bytes, places: npt.NDArray[np.int64], size: int) -> None:
        """Replace addresses of ``size`` bytes (4, 6: MAC, 16) at ``places`` in ``buffer``."""
        if not len(places):
            return
        where = places[:, None] + np.arange(size)
        words = np.zeros((len(places), -(-size // 8)), np.uint64)
        words.view(np.uint8)[:, :size] = buffer[where]
        # Sorting numbers takes a tenth of sorting rows.
        keys = words[:, 0] if words.shape[1] == 1 else words.view([("high", np.uint64), ("low", np.uint64)])[:, 0]
        unique, number = np.unique(keys, return_inverse=True)
        rows = unique.view(np.uint8).reshape(len(unique), -1)[:, :size]
        buffer[where] = self.mapped(rows)[number.reshape(-1)]
        if size in _NEAR:
            self._networks.update(row[: _NEAR[size]].tobytes() for row in rows)

    def mapped(self, addresses: Bytes) -> Bytes:
        """Anonymise addresses: (n, 4), (n, 6) or (n, 16), network byte order."""
        size = addresses.shape[1]
        mapping = self._mappings[size]
        names = [row.tobytes() for row in addresses]
        new = sorted({name for name in names if name not in mapping})
        if sum(map(len, self._mappings.values())) + len(new) > MOST_ADDRESSES:
            raise TooManyAddresses
        for first in range(0, len(new), _AT_ONCE):
            some = new[first : first + _AT_ONCE]
            rows = np.frombuffer(b"".join(some), np.uint8).reshape(-1, size)
            turned = self._hardware(rows) if size == 6 else self._turned(rows)
            mapping.update(zip(some, (row.tobytes() for row in turned), strict=True))
        return np.frombuffer(b"".join(mapping[name] for name in names), np.uint8).reshape(-1, size)

    def _turned(self, addresses: Bytes) -> Bytes:
        """Flip bit i by the cipher of the i bits before it (Crypto-PAn)."""
        count, size = addresses.shape
        bits = np.unpackbits(addresses, axis=1)
        pad = np.unpackbits(np.frombuffer(self._pad, np.uint8))
        blocks = np.broadcast_to(pad, (count, 8 * size, 128)).copy()
        for bit in range(1, 8 * size):
            blocks[:, bit, :bit] = bits[:, :bit]
        turned = np.frombuffer(self._encrypted(np.packbits(blocks, axis=2).tobytes()), np.uint8)
        flips = turned.reshape(count, 8 * size, 16)[:, :, 0] >> 7
        if self._keep:
            flips = np.where(_untouched(bits, size), 0, flips)
        return np.packbits(bits ^ flips, axis=1)

    def _hardware(self, addresses: Bytes) -> Bytes:
        """Encrypt MAC addresses; group and local bits, all zeros and all ones stay."""
        blocks = np.zeros((len(addresses), 16), np.uint8)
        blocks[:, :6] = addresses
        blocks[:, 15] = 1  # no block of an IP address's ends so with this pad, but for chance
        turned = np.frombuffer(self._encrypted(blocks.tobytes()), np.uint8).reshape(-1, 16)[:, :6].copy()
        turned[:, 0] = turned[:, 0] & 0xFC | addresses[:, 0] & 0x03
        same = (addresses == 0).all(axis=1) | (addresses == 0xFF).all(axis=1)
        return np.where(same[:, None], addresses, turned)

    def text(self, content: bytes) -> bytes:
        """Replace MAC, private and already replaced addresses and their neighbours.

        Other numbers of four parts stay, because they may be versions.
        """
        written, end = bytearray(), 0  # `re.sub` has an object of 50 bytes for each literal
        for match in _LITERAL.finditer(content):
            self._check()
            written += content[end : match.start()] + self._literal(match[0])
            end = match.end()
        return bytes(written + content[end:])

    def _literal(self, literal: bytes) -> bytes:
        written = literal.decode("ascii")
        if written.count(":") == 5 and len(written) == 17:
            row = np.frombuffer(bytes.fromhex(written.replace(":", "")), np.uint8).reshape(1, -1)
            text: str = self.mapped(row)[0].tobytes().hex(":")
            return (text if written == written.lower() else text.upper()).encode()
        try:
            address = ipaddress.ip_address(written)
        except ValueError:
            return literal
        packed = address.packed
        if not (address.is_private or packed[: _NEAR[len(packed)]] in self._networks):
            return literal
        turned = self.mapped(np.frombuffer(packed, np.uint8).reshape(1, -1))[0].tobytes()
        return str(ipaddress.ip_address(turned)).encode()


def _untouched(bits: npt.NDArray[np.uint8], size: int) -> npt.NDArray[np.bool_]:
    """Mark the bits of unchanged networks, and those that lead to them."""
    marks = np.zeros(bits.shape, bool)
    bit = np.arange(bits.shape[1])
    for network in _UNCHANGED[size]:
        unchanged = ipaddress.ip_network(network)
        beginning = np.unpackbits(np.frombuffer(unchanged.network_address.packed, np.uint8))
        matching = np.cumprod(bits == beginning, axis=1)
        common = matching.sum(axis=1, keepdims=True)
        length = unchanged.prefixlen
        marks |= (bit <= common) & (bit < length)
        if network not in _BEGINNING_ONLY:
            marks |= common >= length
    return marks
