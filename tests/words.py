"""Texts for readers in tests."""

from __future__ import annotations

import re
from typing import Any

from analysis.numbers import NARROW


def plain(text: str) -> str:
    """Return `text` with plain spaces for narrow no-break ones."""
    return text.replace(NARROW, " ")


def words_of(response: Any) -> str:
    """Return the text of a page without markup, with plain spaces."""
    return " ".join(plain(re.sub(r"<[^>]*>", " ", response.content.decode())).split())
