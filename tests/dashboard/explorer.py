"""Questions to the explorer by query string."""

from __future__ import annotations

from typing import Any

from django.http import QueryDict
from django.utils.http import urlencode

from dashboard.requests.explore import Question, parse_question
from experiments.selectors.explorer import Pivot, flagged, pivot


def question(user: Any, **given: Any) -> Question:
    return parse_question(user, QueryDict(urlencode(given, doseq=True)))


def pivoted(user: Any, **given: Any) -> Pivot:
    query = question(user, **given)
    return pivot(query.configurations, query.query)


def left_out(user: Any, **given: Any) -> int:
    """How many trials the answer leaves out because their capture is flagged."""
    query = question(user, **given)
    return flagged(query.configurations, query.query)
