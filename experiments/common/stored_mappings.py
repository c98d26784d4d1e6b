"""Parts of stored specifications, of any version of Rankwire."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def mapping_at(stored: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """Return a nested mapping; empty if it is absent or of another type."""
    part: Any = stored
    for name in path:
        part = part.get(name) if isinstance(part, Mapping) else None
    return part if isinstance(part, Mapping) else {}
