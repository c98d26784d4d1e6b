"""Traffic metrics, and the values in statistics: of flagged captures only times.

Python and PostgreSQL share the rule, because a trigger writes summaries: ``migrate`` writes the SQL function, and a test compares both.
"""

from __future__ import annotations

from typing import Any, Final

from django.db import connections

from analysis.catalogue import METRICS
from analysis.trust_level import FLAGGED

TRAFFIC: Final = frozenset(
    metric.id for metric in METRICS.values() if metric.section in ("volume", "interarrival", "tcp", "matrices")
)
"""Metrics computed from packets, without trust counters, which describe the capture."""
_MPI: Final = "mpi"


def is_traffic(metric: str, scope: str = "all") -> bool:
    """Return whether a value of this metric and scope comes from packets."""
    return scope == _MPI or metric in TRAFFIC


def in_statistics(trust: str, metric: str, scope: str = "all") -> bool:
    """Return whether a counted trial's value enters statistics."""
    return trust not in FLAGGED or not is_traffic(metric, scope)


def define_in_database(*, using: str = "default", **_: Any) -> None:
    """Write the SQL function ``experiments_in_statistics(trust, metric, scope)``."""
    with connections[using].cursor() as cursor:
        cursor.execute(
            f"""
            CREATE OR REPLACE FUNCTION experiments_in_statistics(trust text, metric text, scope text) RETURNS boolean
            LANGUAGE sql IMMUTABLE AS $$
                SELECT trust NOT IN ({_texts(FLAGGED)}) OR (scope <> '{_MPI}' AND metric NOT IN ({_texts(sorted(TRAFFIC))}))
            $$
            """
        )


def _texts(names: Any) -> str:
    return ", ".join(f"'{name}'" for name in names)
