"""Look-up of query values, trials, experiments and comparisons by URL."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpRequest, QueryDict
from django.shortcuts import get_object_or_404

from experiments.access import visible_experiments, visible_trials
from experiments.models import Experiment, Measurement, Trial
from experiments.selectors.comparison import Compared, compare

MOST_WORDS: Final = 20
"""Words of a search that filter; further ones are ignored."""


def query_value(request: HttpRequest, name: str) -> str:
    """Return the trimmed value of `name`; '' by default."""
    return request.GET.get(name, "").strip()


def requested_members(params: QueryDict) -> list[str]:
    """Return the tokens of `of`, in order."""
    return [token for text in params.getlist("of") for token in text.split(",") if token.strip()]


def requested_comparison(user: Any, params: QueryDict) -> Compared:
    """Return the comparison that a query string names. Raise CannotCompare."""
    scope = params.get("scope", "").strip()
    if scope not in Measurement.Scope.values:
        scope = str(Measurement.Scope.ALL)
    baseline, at = (params.get(name, "").strip() for name in ("baseline", "at"))
    return compare(user, requested_members(params), baseline=baseline, at=at, scope=scope)


def without(params: QueryDict, *names: str) -> str:
    """Return a query string without these names and without empty values."""
    query = params.copy()
    for name in list(query):
        query.setlist(name, [] if name in names else [value for value in query.getlist(name) if value.strip()])
    return query.urlencode(safe=",:")


def find_trial(request: HttpRequest, pk: int) -> Trial:
    """Return a visible trial by number. Raise Http404."""
    related = ("experiment__project", "configuration", "cluster", "environment")
    return get_object_or_404(visible_trials(request.user).select_related(*related), pk=pk)


def find_experiment(request: HttpRequest, slug: str) -> Experiment:
    """Return a visible experiment by slug. Raise Http404."""
    visible = visible_experiments(request.user)
    return get_object_or_404(visible.select_related("cluster", "owner", "project"), slug=slug)
