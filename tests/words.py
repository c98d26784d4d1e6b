"""Texts for readers in tests."""

from __future__ import annotations

import re
from typing import Any

from analysis.numbers import NARROW


def plain(text: str) -> str:
    """`text` with the narrow no-break spaces of its numbers as plain ones, so that it can be written and read in a test."""
    return text.replace(NARROW, " ")


def words_of(response: Any) -> str:
    """Return the text of a page without markup, with plain spaces."""
    return " ".join(plain(re.sub(r"<[^>]*>", " ", response.content.decode())).split())
