"""Locks on names, for rows that do not exist yet."""

from __future__ import annotations

from django.db import connection


def lock_name(name: str) -> None:
    """Serialise the transactions that name the same, until the caller's ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 38))", [name])
