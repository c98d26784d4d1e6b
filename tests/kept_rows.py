"""Rows that hundreds of tests begin with, made once a session and copied.

Rows come back with their keys. That is safe, because sequences never go back, not even with a test's transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from django.db import connection, transaction

from experiments.library import load_published
from experiments.models import Project


class KeptRows:
    """Rows that ``make`` stores in an empty repository.

    ``restore`` gives the same rows to each later test. ``also`` names tables that are not Rankwire's own.
    """

    def __init__(self, make: Callable[[], object], *, also: Sequence[str] = ()) -> None:
        self._make = make
        self._also = also
        self._rows: dict[str, bytes] = {}

    def restore(self) -> None:
        """Make the rows, or copy them; made anew where a test has stored something before."""
        if Project.objects.exists():
            self._make()
        elif self._rows:
            self._copy_back()
        else:
            self._make()
            connection.check_constraints()  # fires the triggers that summarise
            self._rows = {table: rows for table in self._tables() if (rows := self._rows_of(table))}

    def _tables(self) -> list[str]:
        own = [name for name in connection.introspection.table_names() if name.startswith("experiments_")]
        return [*own, *self._also]

    @staticmethod
    def _rows_of(table: str) -> bytes:
        with connection.cursor() as cursor, cursor.copy(f'COPY "{table}" TO STDOUT') as copy:
            return b"".join(bytes(block) for block in copy)

    def _copy_back(self) -> None:
        """Without triggers and checks of references: what they would do is among the rows."""
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")
            for table, rows in self._rows.items():
                with cursor.copy(f'COPY "{table}" FROM STDIN') as copy:
                    copy.write(rows)
            cursor.execute("SET LOCAL session_replication_role = origin")


PUBLISHED_STUDIES = KeptRows(load_published)
"""As ``manage load_library`` stores them; tests of the loading itself call ``load_published``."""
