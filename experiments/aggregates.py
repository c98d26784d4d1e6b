"""What PostgreSQL can make of many values and Django has no name for."""

from __future__ import annotations

from django.db.models import Aggregate, FloatField


class Median(Aggregate):
    """The continuous median: between the middle two of an even number of values."""

    function = "PERCENTILE_CONT"
    template = "%(function)s(0.5) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = FloatField()
