"""The relay's library: made of relay.c when a link first needs it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from workers.compiled import Library, NotCompiled
from workers.errors import ClusterUnavailable

SOURCE: Final = Path(__file__).with_name("relay.c")


def relay_library() -> Library:
    """What is to be made, or lies there already."""
    return Library("relay", SOURCE.parent, SOURCE.name, {SOURCE.name: SOURCE.read_text()}, ("-lm",))


def made_relay() -> Path:
    """The library, made if it is not there: that takes some seconds, once. Raises ClusterUnavailable."""
    try:
        return relay_library().built()
    except NotCompiled as error:
        raise ClusterUnavailable(f"The relay cannot be made: {error}.") from error
