"""Questions to the explorer by query string."""

from __future__ import annotations

from typing import Any

from django.http import QueryDict
from django.utils.http import urlencode

from dashboard.requests.explore import Question, parse_question
from experiments.selectors.explorer import Pivot, flagged, pivot


def question(user: Any, **query: Any) -> Question:
    return parse_question(user, QueryDict(urlencode(query, doseq=True)))


def pivoted(user: Any, **fields: Any) -> Pivot:
    query = question(user, **fields)
    return pivot(query.configurations, query.query)


def left_out(user: Any, **fields: Any) -> int:
    """How many trials the answer leaves out because their capture is flagged."""
    query = question(user, **fields)
    return flagged(query.configurations, query.query)
