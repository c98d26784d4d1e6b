"""The database as after its migrations, between tests that commit rows.

Django's `flush` truncates every table and fills in content types and permissions anew: a tenth of a second and more for each
of hundreds of tests, nearly all of it for tables in which nothing was. Here the tables that hold rows are emptied,
and the few rows of the first flush are copied back.
"""

from __future__ import annotations

from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import OperationalError, connection, transaction
from psycopg import errors, sql
from tenacity import Retrying, retry_if_exception, stop_after_delay

_LOCK = sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE")
_HAS_ROWS = sql.SQL("SELECT {} WHERE EXISTS (SELECT FROM {})")

_LONGEST_S = 30

_first_rows: dict[str, bytes] | None = None
"""Rows that a flush leaves, by table; None before the first one."""


def empty_database() -> None:
    """Leave what a flush leaves, and wait for open transactions, as a flush does."""
    global _first_rows
    if _first_rows is None:
        # Sequences go on: kept rows (tests.kept_rows) come back with the keys that they had.
        call_command("flush", verbosity=0, interactive=False, database="default", reset_sequences=False)
        _first_rows = {table: _rows_of(table) for table in _tables_with_rows(_tables())}
        return
    # A page that a test left open may still query: it ends first, to avoid a deadlock.
    for attempt in Retrying(retry=retry_if_exception(_was_locked), stop=stop_after_delay(_LONGEST_S), reraise=True):
        with attempt:
            _empty(_first_rows)
    ContentType.objects.clear_cache()


def _was_locked(error: BaseException) -> bool:
    return isinstance(error, OperationalError) and isinstance(error.__cause__, errors.LockNotAvailable)


def _empty(first_rows: dict[str, bytes]) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        tables = _tables()
        cursor.execute(
            "SET LOCAL lock_timeout = '300ms'"
        )  # below the second after which PostgreSQL ends one of the two
        cursor.execute(_LOCK.format(sql.SQL(", ").join(map(sql.Identifier, tables))))
        cursor.execute("SET LOCAL session_replication_role = replica")  # no references are followed, no summaries made
        for table in _tables_with_rows(tables):
            cursor.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table)))
        for table, rows in first_rows.items():
            with cursor.copy(sql.SQL("COPY {} FROM STDIN").format(sql.Identifier(table))) as copy:
                copy.write(rows)


def _tables() -> list[str]:
    return connection.introspection.django_table_names(only_existing=True, include_views=False)


def _tables_with_rows(tables: list[str]) -> list[str]:
    asked = [_HAS_ROWS.format(sql.Literal(table), sql.Identifier(table)) for table in tables]
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL(" UNION ALL ").join(asked))
        return [table for (table,) in cursor.fetchall()]


def _rows_of(table: str) -> bytes:
    with (
        connection.cursor() as cursor,
        cursor.copy(sql.SQL("COPY {} TO STDOUT").format(sql.Identifier(table))) as copy,
    ):
        return b"".join(bytes(block) for block in copy)
