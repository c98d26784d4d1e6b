"""Texts for readers in tests."""

from __future__ import annotations

from analysis.numbers import NARROW


def plain(text: str) -> str:
    """`text` with the narrow no-break spaces of its numbers as plain ones, so that it can be written and read in a test."""
    return text.replace(NARROW, " ")
