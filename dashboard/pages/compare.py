"""Comparison of two to eight members: settings, environments and results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from django.db.models import BooleanField, ExpressionWrapper, F, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from analysis import numbers
from dashboard.labels import parameter_label
from dashboard.panels.compare.charts import charts
from dashboard.panels.compare.sentences import (
    answer,
    experiment_answers,
    first_differences,
    point_name,
    point_words,
    setting,
    unpaired,
)
from dashboard.panels.compare.table import stated_by, table
from dashboard.panels.experiment.list_rows import experiment_rows
from dashboard.requests.lookup import query_value, requested_comparison, requested_members
from experiments.access import may_run_more, visible_experiments
from experiments.errors import CannotCompare, InvalidSpec
from experiments.models import Experiment, Measurement, Trial
from experiments.selectors.compared_members import Member
from experiments.selectors.comparison import Compared
from experiments.selectors.diagnosis import answers_of
from experiments.selectors.differences import Difference
from experiments.specification import design

MOST_CHOICES: Final = 12
"""Experiments that are offered for a comparison with a single one."""
_SHARED: Final = ("words", "oversubscription")
"""Parts of a member's head that are said once if all members have the same."""


@require_GET
def page(request: HttpRequest) -> HttpResponse:
    """Show a comparison; the order of the tokens in `of` gives the letters."""
    scope = query_value(request, "scope") or "all"
    try:
        compared = requested_comparison(request.user, request.GET)
    except CannotCompare as error:
        if (chosen := _only(request)) is not None:
            return render(request, "compare/choose.html", {"place": "experiments", **_choices(request.user, chosen)})
        return render(request, "compare/none.html", {"place": "experiments", "why": str(error)}, status=400)
    drawn, oversubscribed = charts(compared), _oversubscribed(compared)
    members = [_head(compared, member, scope, oversubscribed) for member in compared.members]
    shared = [name for name in _SHARED if len({head[name] for head in members}) == 1]
    for head in members:
        head["own"] = [head[name] for name in _SHARED if head[name] and name not in shared]
    context = {
        "place": "experiments",
        "compared": compared,
        "members": members,
        "answer": answer(compared),
        "slowed": _slowed(request.user, compared),
        "experiment_answers": experiment_answers(
            compared, answers_of([m.experiment for m in compared.members if m.token.startswith("e:")])
        ),
        "unpaired": unpaired(compared),
        "settings": _differences(compared, compared.settings),
        "environment": _differences(compared, compared.environment),
        "follows_link": _follows_link(compared),
        "points": _points(compared, scope),
        "paired": ", ".join(parameter_label(name).lower() for name in compared.names),
        "charts": drawn,
        "chart_width": "c4" if len(drawn) == 5 else "c6",
        "shared": [members[0][name] for name in shared if members[0][name]],
        "table": table(compared),
        "scope": scope,
        "scopes": [(s.value, s.label, _query(compared, scope=s.value)) for s in Measurement.Scope],
        "query": _query(compared, scope=scope),
        "pins": f"compare {_query(compared, scope=scope)}",
        "bundle_of": ",".join(member.token for member in compared.members),
    }
    return render(request, "compare/page.html", context)


def _slowed(user: Any, compared: Compared) -> list[dict[str, Any]]:
    """Return the experiments that other load slowed, with their trials to repeat."""
    rows = []
    for member in compared.members:
        experiment = member.experiment
        if any(member.disturbed_at(compared.names, point) for point in compared.points):
            over = not experiment.trials.unfinished().exists()
            rows.append(
                {
                    "experiment": experiment,
                    "label": f" of {member.label}",
                    "count": experiment.trials.disturbed_points().count() if over else 0,
                    "may_repeat": not experiment.published and may_run_more(user, experiment),
                }
            )
    return rows


def _only(request: HttpRequest) -> Experiment | None:
    """Return the experiment of the request if it names one member only."""
    kind, _, slug = ",".join(requested_members(request.GET)).partition(":")
    return visible_experiments(request.user).filter(slug=slug).first() if kind == "e" else None


def _choices(user: Any, chosen: Experiment) -> dict[str, Any]:
    """Return experiments of the same workload: clones of each other, then the newest.

    Without any, those of other workloads.
    """
    related = Q(pk=chosen.cloned_from_id) | Q(cloned_from=chosen.pk)
    others = visible_experiments(user).filter(archived_at=None).exclude(pk=chosen.pk)
    of_workload = others.filter(workload=chosen.workload)
    is_other_work = not of_workload.exists()
    offered = others if is_other_work else of_workload
    ordered = offered.annotate(is_related=ExpressionWrapper(related, BooleanField()))
    choices = list(
        ordered.select_related("cluster").order_by(F("is_related").desc(nulls_last=True), "-created_at", "-pk")[
            :MOST_CHOICES
        ]
    )
    rows = experiment_rows(choices, answers_of(choices))
    links = [_link_words(row.experiment) for row in rows]
    return {
        "chosen": chosen,
        "is_other_work": is_other_work,
        "rows": rows,
        "choices": list(zip(rows, links, strict=True)),
    }


def _link_words(experiment: Experiment) -> str:
    """Return the link of all points, or "" if they have several or none is stated."""
    try:
        spec = experiment.spec
    except InvalidSpec:  # published, or of an earlier version
        return ""
    if experiment.cluster is None or any(name.startswith("link.") for name in spec.sweep):
        return ""
    return experiment.cluster.traits.link_in_words(design.link_of(design.first_point(spec)), brief=True)


def _query(compared: Compared, *, baseline: str = "", at: int | None = None, scope: str = "all") -> str:
    asked_for = {"of": ",".join(m.token for m in compared.members), "baseline": baseline or compared.baseline.token}
    position = compared.points.index(compared.at) if at is None else at
    if len(compared.points) > 1:  # by default the point with the largest change
        asked_for["at"] = str(position)
    if scope != "all":
        asked_for["scope"] = scope
    return urlencode(asked_for, safe=":,")


def _oversubscribed(compared: Compared) -> dict[int, str]:
    """Return the oversubscription of each member's first trial at the chosen point."""
    firsts = [trials[0].pk for member in compared.members if (trials := member.trials_at(compared.names, compared.at))]
    rows = Trial.objects.filter(pk__in=firsts).values_list("pk", "conditions__oversubscription")
    return {pk: words for pk, words in rows if words}


def _head(compared: Compared, member: Member, scope: str, oversubscribed: Mapping[int, str]) -> dict[str, Any]:
    trials = member.trials_at(compared.names, compared.at)
    return {
        "member": member,
        "shares_its_name": any(m.name == member.name and m.experiment != member.experiment for m in compared.members),
        "words": point_words(member, compared),
        "is_baseline": member is compared.baseline,
        "trials": len(trials),
        "oversubscription": oversubscribed.get(trials[0].pk, "") if trials else "",
        "flagged": member.flagged_at(compared.names, compared.at),
        "disturbed": member.disturbed_at(compared.names, compared.at),
        "repeats": member.repeats_at(compared.names, compared.at),
        "as_baseline": _query(compared, baseline=member.token, scope=scope),
        "number": compared.members.index(member),
    }


def _differences(compared: Compared, differences: Sequence[Difference]) -> dict[str, Any]:
    """Return differing, equal and partly recorded facts, the latter by members."""
    brief = first_differences(compared, differences)
    partly: dict[tuple[int, ...], list[Difference]] = {}
    for difference in differences:
        if difference.differs and not difference.apart:
            partly.setdefault(difference.stated_by, []).append(difference)
    return {
        "apart": [_cells(difference) for difference in differences if difference.apart],
        "same": [_cells(difference) for difference in differences if not difference.differs],
        "partly": [
            (stated_by(compared, places), [_cells(difference) for difference in group])
            for places, group in partly.items()
        ],
        "brief": brief,
        "same_in_all": bool(differences) and not brief["rows"] and not brief["silent"],
    }


def _follows_link(compared: Compared) -> bool:
    """Return whether interfaces differ as the test-bed sets them up for the links."""
    clusters = [member.experiment.cluster for member in compared.members]
    return (
        all(cluster is not None and cluster.traits.hosts_are_virtual for cluster in clusters)
        and any(d.apart and d.name.startswith("link.") for d in compared.settings)
        and any(d.apart and d.name.startswith("interface.") for d in compared.environment)
    )


def _cells(difference: Difference) -> dict[str, Any]:
    """Return a row of a table of differences with marks at differing values."""
    words = [
        setting(difference, index) if index in difference.stated_by else numbers.NOTHING
        for index in range(len(difference.values))
    ]
    first = words[difference.stated_by[0]] if difference.stated_by else ""
    return {
        "name": parameter_label(difference.name),
        "values": [(word, index in difference.stated_by and word != first) for index, word in enumerate(words)],
    }


def _points(compared: Compared, scope: str) -> list[dict[str, Any]]:
    points = compared.points if len(compared.points) > 1 else ()
    queries = [_query(compared, at=position, scope=scope) for position in range(len(points))]
    return [
        {"words": point_name(compared, point), "query": query, "on": point == compared.at}
        for point, query in zip(points, queries, strict=True)
    ]
