"""JSON that keeps the order of its keys."""

from __future__ import annotations

from typing import Any

from django.db import models
from psycopg.types.json import Json


class OrderedJSONField(models.JSONField):
    """PostgreSQL's ``json`` instead of ``jsonb``, which sorts keys: the order of a sweep is part of what somebody wrote.

    A query cannot compare, group or make distinct such a column; compare the hash that stands beside it.
    """

    def db_type(self, connection: Any) -> str:
        return "json"

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        return value if value is None or hasattr(value, "as_sql") else Json(value)

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        """Django teaches the driver to leave ``jsonb`` as text; ``json`` comes parsed."""
        return value
