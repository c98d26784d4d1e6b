"""Storage of the messages that the next page shows."""

from __future__ import annotations

from typing import Any, Final

from django.contrib.messages.storage.fallback import FallbackStorage

MOST: Final = 10


class NewestMessages(FallbackStorage):
    """Stores the newest messages.

    A client that never loads a page would add any number to its session, which each request reads.
    """

    def _store(self, messages: list[Any], response: Any, *args: Any, **kwargs: Any) -> list[Any]:
        unstored: list[Any] = super()._store(messages[-MOST:], response, *args, **kwargs)  # type: ignore[misc]  # no stub
        return unstored
