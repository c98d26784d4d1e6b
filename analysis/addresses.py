"""Addresses of a table's hosts: 16 bytes each, with text only on demand.

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
"""The bits above an IPv4 address: ::ffff:a.b.c.d."""
_LINK_LOCAL_GROUPS_V4 = 0xFFFFE00000
"""224.0.0.0/24, without its last byte."""
_LINK_LOCAL_GROUPS_V6 = 0xFF02

Words = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.integer[Any]]


class Addresses(Sequence[str]):
    """IP addresses by host number, which stays the same from table to table.

    Text is made on demand. A decoder may append to the words, and never changes them: the addresses of earlier tables
    stay valid.
    """

    __slots__ = ("_words",)

    def __init__(self, words: Words | None = None) -> None:
        """Hold ``words`` (H, 2): halves of IPv6 addresses; IPv4 is ::ffff:a.b.c.d."""
        self._words: Words = np.zeros((0, 2), np.uint64) if words is None else words

    @classmethod
    def of(cls, texts: Iterable[str]) -> Addresses:
        """Parse addresses. Raises OSError for invalid text."""
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
        """Return the words of the addresses with these numbers, shape (n, 2)."""
        return self._words[numbers]

    def named(self, numbers: Sequence[int]) -> list[str]:
        """Return the text of each address; repeated ones are formatted once."""
        names = {number: self[number] for number in set(numbers)}
        return [names[number] for number in numbers]

    def numbers_of(self, texts: Iterable[str]) -> dict[str, int]:
        """Return the numbers of those ``texts`` that are among these addresses."""
        requested = {}
        for text in texts:
            try:
                high, low = np.frombuffer(_packed(text), ">u8").tolist()
            except OSError:
                continue
            requested[text] = (high, low)
        lower = np.array([low for _, low in requested.values()], np.uint64)
        candidates = np.flatnonzero(np.isin(self._words[:, 1], lower))
        numbers_by_words = {
            (high, low): number
            for number, (high, low) in zip(candidates.tolist(), self._words[candidates].tolist(), strict=True)
        }
        return {text: numbers_by_words[words] for text, words in requested.items() if words in numbers_by_words}

    def in_order(self, numbers: Numbers) -> list[int]:
        """Return ``numbers`` sorted by address, IPv4 first."""
        high, low = self._words[numbers].T
        of_v6 = (high != 0) | (low >> np.uint64(32) != _MAPPED)
        ordered: list[int] = numbers[np.lexsort((low, high, of_v6))].tolist()
        return ordered

    def are_link_local_groups(self, numbers: Numbers) -> npt.NDArray[np.bool_]:
        """Mark link-local multicast, shape (n,): 224.0.0.0/24, ff02::/16."""
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
