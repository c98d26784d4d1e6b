"""Host names and lists of them, as users and schedulers write them. Pure."""

from __future__ import annotations

import ipaddress
import itertools
import math
import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Final

from pydantic import AfterValidator

MOST_HOSTS: Final = 10_000
MOST_LISTED: Final = 10
"""Wrong entries of a list that an error names."""
_LABEL: Final = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST: Final = re.compile(rf"(?!.{{254}})(?:{_LABEL}\.)*{_LABEL}\.?")
_WORD: Final = re.compile(r"(?:[^\s,\[]|\[[^\[\]]*\]?)+")
_LONGEST_NAME: Final = 253
_RANGE: Final = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


def as_host(text: str) -> str:
    """Return a host name or an IP address as it is written. Raise ValueError."""
    if "_" in text:
        raise ValueError(f"{text[:80]!r} is not a host name: it has an underscore. Use its address")
    return as_alias(text)


def as_alias(text: str) -> str:
    """Return a name that ssh or a scheduler resolves, as written. Raise ValueError."""
    if _is_address(text) or (_HOST.fullmatch(text.replace("_", "0")) and not re.fullmatch(r"[0-9.]+", text)):
        return text
    if "@" in text:
        why = "the user has a field of its own"
    elif re.search(r"[^:]:[0-9]+$|=[0-9]+$", text):
        why = "write it without slots or a port"
    else:
        why = "letters, digits, “-” and “.” make one, or an IP address"
    raise ValueError(f"{text[:80]!r} is not a host name: {why}")


HostAlias = Annotated[str, AfterValidator(as_alias)]


def host_names(text: str) -> list[str]:
    """Return the hosts of a list; ``n[01-04,7]`` is five. Raise ValueError."""
    names: list[str] = []
    refused: list[str] = []
    for word in _WORD.finditer(text):
        try:
            names += _expanded(word[0])
        except ValueError as error:
            refused.append(str(error))
        if max(len(names), len(refused)) > MOST_HOSTS:
            raise ValueError(f"are more than {MOST_HOSTS} hosts")
    if refused:
        raise ValueError(listed([*refused, *refusals(names)]))
    return names


def refusals(names: Iterable[str]) -> list[str]:
    """Return why each name is not a host that ssh reaches, without those that are."""
    reasons = []
    for name in names:
        try:
            as_host(name)
        except ValueError as error:
            reasons.append(str(error))
    return reasons


def listed(reasons: Sequence[str]) -> str:
    """Return reasons as one text: the first ones, and the number of the others."""
    more = len(reasons) - MOST_LISTED
    return "; ".join([*reasons[:MOST_LISTED], *([f"{more} more are wrong"] if more > 0 else [])])


def one_spelling(host: str) -> str:
    """Return the spelling by which names and addresses of hosts are compared."""
    return str(ipaddress.ip_address(host)) if _is_address(host) else host.lower().rstrip(".")


def _is_address(text: str) -> bool:
    try:
        return bool(ipaddress.ip_address(text)) and "%" not in text
    except ValueError:
        return False


def _expanded(word: str) -> list[str]:
    """Return the names of one word; odd parts of the split are what brackets enclose.

    They are made after all checks: every word of a hostile list may be wrong.
    """
    parts = re.split(r"\[([^\[\]]*)\]", word)
    if sum(map(len, parts[::2])) + len(parts) // 2 > _LONGEST_NAME:  # a bracket is a digit at least
        raise ValueError(f"{_quoted(word)} is longer than a host name")
    if re.search(r"[\[\]]", "".join(parts[::2])):
        raise _no_range(word)
    ranges = [_ranges(part, word) for part in parts[1::2]]
    if math.prod(sum(len(numbers) for numbers, _ in bracket) for bracket in ranges) > MOST_HOSTS:
        raise _too_many(word)
    choices = [[part] for part in parts]
    choices[1::2] = [[str(n).zfill(width) for numbers, width in bracket for n in numbers] for bracket in ranges]
    # In the order of Slurm: the last bracket counts fastest, then the first, the second and so on.
    *slower, fastest = range(1, len(choices), 2) or [0]
    order = [*range(0, len(choices), 2), *reversed(slower), fastest] if len(choices) > 1 else [0]
    positions = sorted(range(len(order)), key=order.__getitem__)
    picked = itertools.product(*(choices[position] for position in order))
    return [name for parts in picked if (name := "".join(parts[position] for position in positions))]


def _ranges(text: str, word: str) -> list[tuple[range, int]]:
    """Return the ranges in a bracket, with the digits of their numbers."""
    ranges = []
    for part in text.replace(" ", "").split(","):
        match = _RANGE.fullmatch(part)
        low, high = match.groups() if match else ("1", "0")
        ranges.append((range(int(low), int(high or low) + 1), len(low)))
        if not ranges[-1][0]:
            raise _no_range(word)
    return ranges


def _quoted(word: str) -> str:
    """Return the first line: a bracket without an end reaches over the others."""
    return repr(word.splitlines()[0][:80])


def _too_many(word: str) -> ValueError:
    return ValueError(f"{_quoted(word)} is more than {MOST_HOSTS} hosts")


def _no_range(word: str) -> ValueError:
    return ValueError(f"{_quoted(word)} is not a range of hosts; write for example n[01-04]")
