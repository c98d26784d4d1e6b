"""Recorded facts: nested mappings as paths and values. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def leaves(facts: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the path and value of every fact in order; a list is one value."""
    for name, value in facts.items():
        if isinstance(value, Mapping):
            yield from leaves(value, (*path, str(name)))
        else:
            yield (*path, str(name)), value


def text_of(value: Any) -> str:
    """Return a value as text, a list separated by commas."""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def by_dotted_name(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return every fact as text: {"cpu.model": "EPYC 7763"}."""
    return {".".join(path): text_of(value) for path, value in leaves(facts)}
