"""Whether the messages of a trial went where its traffic was recorded. Pure.

Ranks on different hosts may have a second way to each other: another card, InfiniBand, or memory that virtual hosts share. What
crossed the recorded interface is then not the traffic of the program, however well it was recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from analysis.numbers import amount

_LEAST_BYTES: Final = 100_000
"""Fewer could be the start of the job as well."""
_SHARE: Final = 0.9
"""Of what ranks sent, at least so much must have been seen; its payload on the wire is larger than it, never smaller."""


def sent_between_hosts(tables: Mapping[str, Any] | None) -> int:
    """Return the bytes of point-to-point messages from a rank to one on another host, by the tables of `analysis.mpi.profile`."""
    if tables is None:
        return 0
    host_of = {row["rank"]: row["host"] for row in tables["ranks"]}
    return sum(sent for source, to, _, sent in tables["pairs"] if host_of.get(source) != host_of.get(to))


def why_unseen(tables: Mapping[str, Any] | None, payload_bytes: float) -> str | None:
    """Return why the recorded traffic is not that of the program, None where nothing says so. ``payload_bytes``: all that was recorded."""
    sent = sent_between_hosts(tables)
    if sent < _LEAST_BYTES or payload_bytes >= _SHARE * sent:
        return None
    return (
        f"ranks on different hosts sent each other {amount(sent, 'B')}, and {amount(payload_bytes, 'B')} were seen on the recorded "
        "interface: their messages went another way, over another network or through shared memory"
    )
