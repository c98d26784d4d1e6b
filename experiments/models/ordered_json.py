"""JSON field that keeps the order of keys."""

from __future__ import annotations

from typing import Any

from django.db import models
from psycopg.types.json import Json


class OrderedJSONField(models.JSONField):
    """PostgreSQL's ``json``: unlike ``jsonb`` it keeps the key order of a sweep.

    Queries cannot compare or group such a column; use the hash column.
    """

    def db_type(self, connection: Any) -> str:
        return "json"

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        return value if value is None or hasattr(value, "as_sql") else Json(value)

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        """Return the value: psycopg parses ``json`` itself, unlike ``jsonb``."""
        return value
