"""Keep the last cluster open between trials: the next one often wants exactly the same hosts and link."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from workers.launchers.base import Link, Session, Tell, say_nothing
from workers.launchers.registry import get


class SessionPool:
    """At most one open session. For one worker process; not thread-safe, as trials are exclusive anyway."""

    def __init__(self) -> None:
        self._key: tuple[object, ...] | None = None
        self._session: Session | None = None

    @contextmanager
    def lease(
        self,
        kind: str,
        *,
        host_count: int,
        link: Link,
        settings: Mapping[str, Any] | None = None,
        tell: Tell = say_nothing,
    ) -> Iterator[Session]:
        """The kept session when it is alive and equal in kind, size and link; else a fresh one.

        After an exception in the body the session is closed: who knows in what state it is. Raises ClusterUnavailable.
        """
        key = (kind, repr(settings), host_count, link)
        if self._session is None or key != self._key or not self._session.alive():
            self.close()
            self._session = get(kind, settings).open(host_count=host_count, link=link, tell=tell)
            self._key = key
        try:
            yield self._session
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the kept session, if there is one."""
        session, self._session, self._key = self._session, None, None
        if session is not None:
            session.close()
