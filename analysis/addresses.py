"""The addresses of a table's hosts: 16 bytes for each, and text only for those that somebody names.

Most results name a few hundred of the up to 65 536 hosts.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

_MAPPED = 0xFFFF
"""What stands above the 32 bits of an IPv4 address: ::ffff:a.b.c.d."""
_LINK_LOCAL_GROUPS_V4 = 0xFFFFE00000
"""224.0.0.0/24, without its last byte."""
_LINK_LOCAL_GROUPS_V6 = 0xFF02

Words = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.integer[Any]]


class Addresses(Sequence[str]):
    """IP addresses by the numbers of their hosts, as text when they are asked for; a host keeps its number from table to table.

    Whoever reads on may write behind the words, never into them: what a table shows stays as it is.
    """

    __slots__ = ("_words",)

    def __init__(self, words: Words | None = None) -> None:
        """``words`` (H, 2): the upper and the lower half of an IPv6 address; IPv4 is held as ::ffff:a.b.c.d."""
        self._words: Words = np.zeros((0, 2), np.uint64) if words is None else words

    @classmethod
    def of(cls, texts: Iterable[str]) -> Addresses:
        """Of addresses in words. Raises OSError for what is none."""
        packed = b"".join(_packed(text) for text in texts)
        return cls(np.frombuffer(packed, ">u8").astype(np.uint64).reshape(-1, 2))

    def __len__(self) -> int:
        return len(self._words)

    @overload
    def __getitem__(self, number: int) -> str: ...
    @overload
    def __getitem__(self, number: slice) -> Addresses: ...
    def __getitem__(self, number: int | slice) -> str | Addresses:
        if isinstance(number, slice):
            return Addresses(self._words[number])
        return _text(*self._words[number].tolist())

    def __iter__(self) -> Iterator[str]:
        return (_text(high, low) for high, low in self._words.tolist())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Addresses):
            return np.array_equal(self._words, other._words)
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __repr__(self) -> str:
        return f"<{len(self)} addresses>"

    def words(self, numbers: Numbers) -> Words:
        """Shape (n, 2): what the addresses with these numbers are made of."""
        return self._words[numbers]

    def named(self, numbers: Sequence[int]) -> list[str]:
        """The text of each; of one that comes again and again it is made once."""
        names = {number: self[number] for number in set(numbers)}
        return [names[number] for number in numbers]

    def numbers_of(self, texts: Iterable[str]) -> dict[str, int]:
        """The numbers of those ``texts`` that are among these addresses; what is no address is among none."""
        wanted = {}
        for text in texts:
            try:
                high, low = np.frombuffer(_packed(text), ">u8").tolist()
            except OSError:
                continue
            wanted[text] = (high, low)
        lower = np.array([low for _, low in wanted.values()], np.uint64)
        near = np.flatnonzero(np.isin(self._words[:, 1], lower))
        known = {
            (high, low): place for place, (high, low) in zip(near.tolist(), self._words[near].tolist(), strict=True)
        }
        return {text: known[words] for text, words in wanted.items() if words in known}

    def in_order(self, numbers: Numbers) -> list[int]:
        """``numbers``, those of IPv4 first, each kind by its addresses."""
        high, low = self._words[numbers].T
        of_v6 = (high != 0) | (low >> np.uint64(32) != _MAPPED)
        ordered: list[int] = numbers[np.lexsort((low, high, of_v6))].tolist()
        return ordered

    def are_link_local_groups(self, numbers: Numbers) -> npt.NDArray[np.bool_]:
        """Shape (n,): multicast that no router passes on (224.0.0.0/24, ff02::/16)."""
        high, low = self._words[numbers].T
        v4 = (high == 0) & (low >> np.uint64(8) == _LINK_LOCAL_GROUPS_V4)
        groups: npt.NDArray[np.bool_] = v4 | (high >> np.uint64(48) == _LINK_LOCAL_GROUPS_V6)
        return groups


def _packed(text: str) -> bytes:
    return socket.inet_pton(socket.AF_INET6, text if ":" in text else f"::ffff:{text}")


def _text(high: int, low: int) -> str:
    if high == 0 and low >> 32 == _MAPPED:
        return socket.inet_ntoa((low & 0xFFFFFFFF).to_bytes(4))
    return str(ipaddress.IPv6Address(high << 64 | low))
