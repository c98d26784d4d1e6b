"""Addresses of hosts are numbers until a result names them."""

from __future__ import annotations

import ipaddress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.addresses import Addresses

TEXTS = (
    "10.0.0.10",
    "fd00::1",
    "10.0.0.9",
    "::102:304",
    "0.0.0.0",
    "255.255.255.255",
    "::",
    "ff02::fb",
    "224.0.0.251",
    "224.0.1.1",
)


@given(st.lists(st.ip_addresses(), max_size=20))
def test_they_are_what_they_were_made_of(addresses: list[ipaddress.IPv4Address | ipaddress.IPv6Address]) -> None:
    texts = [str(address) for address in addresses if getattr(address, "ipv4_mapped", None) is None]
    made = Addresses.of(texts)
    assert (len(made), list(made), [made[k] for k in range(len(made))]) == (len(texts), texts, texts)
    assert made == texts
    assert made == tuple(texts)
    assert made[1:] == texts[1:]
    assert list(reversed(made)) == texts[::-1]
    parsed = {text: ipaddress.ip_address(text) for text in texts}
    ordered = sorted(range(len(texts)), key=lambda k: (parsed[texts[k]].version, int(parsed[texts[k]])))
    assert [texts[k] for k in made.in_order(np.arange(len(texts)))] == [texts[k] for k in ordered]
    groups = [parsed[text] in ipaddress.ip_network("ff02::/16" if ":" in text else "224.0.0.0/24") for text in texts]
    assert made.are_link_local_groups(np.arange(len(texts))).tolist() == groups


def test_there_may_be_none() -> None:
    none = Addresses()
    assert (len(none), list(none), none.named([]), none.numbers_of(["10.0.0.1"])) == (0, [], [], {})
    assert none == ()
    assert none != ("10.0.0.1",)
    assert none.in_order(np.zeros(0, np.int64)) == []
    with pytest.raises(IndexError):
        none[0]


def test_an_ipv4_address_is_the_same_inside_of_an_ipv6_one() -> None:
    assert list(Addresses.of(["::ffff:10.0.0.1"])) == ["10.0.0.1"]


@pytest.mark.parametrize("text", ["", "host", "10.0.0", "010.0.0.1", "fe80::1%eth0", "10.0.0.1:80"])
def test_what_is_no_address_is_refused_and_among_none(text: str) -> None:
    with pytest.raises(OSError, match="illegal"):
        Addresses.of([text])
    assert Addresses.of(TEXTS).numbers_of([text, "::"]) == {"::": 6}


def test_they_are_found_again_however_they_are_written() -> None:
    made = Addresses.of(TEXTS)
    assert made.numbers_of(TEXTS) == {text: number for number, text in enumerate(TEXTS)}
    assert made.numbers_of(["FD00:0::1", "9.9.9.9"]) == {"FD00:0::1": 1}
    assert made.named([3, 0, 3]) == [TEXTS[3], TEXTS[0], TEXTS[3]]
    assert [made[k] for k in made.in_order(np.array([1, 0, 2, 9]))] == [TEXTS[k] for k in (2, 0, 9, 1)]
    many = Addresses.of(f"10.{k >> 16}.{k >> 8 & 255}.{k & 255}" for k in range(70_000))
    assert many.numbers_of(["10.1.17.111", "10.0.0.0"]) == {"10.1.17.111": 69_999, "10.0.0.0": 0}


def test_what_is_written_behind_them_changes_nothing() -> None:
    words = np.zeros((4, 2), np.uint64)
    words[:2, 1] = [0xFFFF0A000001, 0xFFFF0A000002]
    two = Addresses(words[:2])
    words[2:, 1] = 0xFFFF0B000001
    assert two == ("10.0.0.1", "10.0.0.2")
