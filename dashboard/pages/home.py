"""Home: running and waiting trials, a list of what happened, clusters and storage."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET
from django_htmx.http import trigger_client_event

from dashboard.pages.lists.trials import COUNTED
from dashboard.panels.cluster.rows import ClusterRow
from dashboard.panels.experiment.list_rows import ExperimentRow, experiment_rows
from dashboard.panels.experiment.running import ended_among, header_of, running_entry
from dashboard.panels.new.proposal import first_study
from dashboard.panels.server.services import storage
from dashboard.people.activity_feed import feed
from dashboard.people.invitations import invitation_of
from dashboard.requests.lookup import query_value
from experiments.access import may_submit_somewhere, visible_experiments
from experiments.library import FIRST_STUDY
from experiments.models import Cluster, Event, Experiment, State, Trial
from experiments.selectors import progress_of, running_trials, waiting
from experiments.selectors.diagnosis import answers_of
from experiments.selectors.queue_forecast import Outlook, outlooks

MOST_LISTED = 8
"""Experiments and events on the list; more events than this are all listed."""
# One square per trial up to this number; a meter for more.
MOST_SQUARES = 60
MOST_AWAITED = 50
"""Experiments in one request for their end."""


@require_GET
def home(request: HttpRequest) -> HttpResponse:
    """Show the page; refreshes get only its panels."""
    if request.htmx and query_value(request, "part") == "now":  # type: ignore[attr-defined]
        return render(request, "home/_now.html", {**_now(request.user), "of_experiments": True})
    template = "home/_lab.html" if request.htmx else "home/page.html"  # type: ignore[attr-defined]
    invitation = invitation_of(request)
    if invitation is not None and not invitation.raises_role_of(request.user):
        invitation = None
    context = {"place": "home", "invitation": invitation, **_laboratory(request.user)}
    return render(request, template, context)


@require_GET
def pulse(request: HttpRequest) -> HttpResponse:
    """Render the counters of the header and the progress of visible experiments.

    Pages request this every two seconds, and reload their lists if the counters differ from `seen`.
    """
    context = header_of(request.user)
    response = render(request, "parts/_pulse.html", context)
    seen = query_value(request, "seen")
    return trigger_client_event(response, "rankwire:work") if seen and seen != context["seen"] else response


@require_GET
def ended(request: HttpRequest) -> HttpResponse:
    """Return the finished or hidden experiments of `of`, with a sentence."""
    slugs = request.GET.getlist("of")[:MOST_AWAITED]
    return JsonResponse({"ended": ended_among(request.user, slugs)})


@cache
def _is_demonstration() -> Q:
    """Return the condition of the study that the first start queues, unchanged.

    Only that one is stored under the name of the file with an owner and its own name: experiments of users are stored under
    their names, those of `script/run` have no owner, imported ones have an origin.
    """
    return Q(slug=FIRST_STUDY.stem, name=first_study()["name"], owner__isnull=False, origin={})


def _laboratory(user: Any) -> dict[str, Any]:
    visible, news = visible_experiments(user), feed(user)
    counts = visible.aggregate(
        experiments=Count("pk", filter=Q(published=False)), published=Count("pk", filter=Q(published=True))
    )
    # By key: in one query PostgreSQL reads all trials before it counts the first.
    of_user = list(visible.filter(~_is_demonstration(), published=False, owner=user).values_list("pk", flat=True))
    counts["of_user"] = len(of_user)
    listed = {e.pk: e for row in news["happened"] if (e := row["event"].experiment) is not None}
    unlisted = visible.filter(archived_at=None, published=False).exclude(pk__in=listed)
    recent = list(unlisted.order_by("-created_at", "-pk")[: max(0, MOST_LISTED - len(news["happened"]))])
    answers = answers_of([*recent, *listed.values()])
    for row in news["happened"]:
        if row["event"].kind == Event.Kind.ENDED and (answer := answers.get(row["event"].experiment_id)) is not None:
            row["answer"], row["sentence"] = answer, answer.sentence  # later than the event, if trials were added
    return {
        **_now(user),
        **news,
        "recent": (rows := experiment_rows(recent, answers)),
        "activity": _newest_first(news["happened"], rows),
        "example": None if counts["experiments"] else visible.filter(published=True).order_by("-pk").first(),
        "may_begin": (may_begin := may_submit_somewhere(user)),
        "may_submit": not counts["of_user"] and may_begin,
        "demonstration": None if counts["of_user"] else visible.filter(_is_demonstration(), published=False).first(),
        "counts": counts,
        # Counting all trials takes longer than the rest of the page.
        "trials": Trial.objects.filter(experiment__in=of_user, state=State.FINISHED)[: COUNTED + 1].count(),
        "most_counted": COUNTED,
        "clusters": _clusters(),
        "storage": storage(),
        "now": timezone.now(),
    }


def _newest_first(happened: Sequence[Mapping[str, Any]], recent: Sequence[ExperimentRow]) -> list[dict[str, Any]]:
    """Return events and experiments without one as rows of one list."""
    events = [{"at": row["event"].at, "event": row} for row in happened]
    experiments = [{"at": row.experiment.created_at, "experiment": row} for row in recent]
    return sorted([*events, *experiments], key=lambda row: row["at"], reverse=True)


def _clusters() -> list[ClusterRow]:
    """Return the clusters with their running and waiting trials, without ended ones."""
    counts: dict[int | None, Counter[str]] = defaultdict(Counter)
    unfinished = Trial.objects.unfinished().order_by().values_list("cluster_id", "state")
    for cluster, state, count in unfinished.annotate(count=Count("pk")):
        counts[cluster][State.QUEUED if state == State.QUEUED else State.RUNNING] += count
    clusters = Cluster.objects.filter(elsewhere=False).select_related("test").order_by("-enabled", "slug")
    return [ClusterRow(c, counts[c.pk][State.RUNNING], counts[c.pk][State.QUEUED]) for c in clusters]


def _now(user: Any) -> dict[str, Any]:
    running, queue, others = _running_and_queue(visible_experiments(user))
    return {"running": running, "queue": queue, "queued": sum(row["count"] for row in queue), "of_others": others}


def _running_and_queue(visible: QuerySet[Experiment]) -> tuple[list[dict[str, Any]], list[dict[str, Any]], int]:
    """Return running and waiting trials that are visible; count running others."""
    rows, trials = waiting(), list(running_trials())
    unfinished = {row["experiment_id"] for row in rows} | {trial.experiment_id for trial in trials}
    if not unfinished:
        return [], [], 0
    outlook = outlooks(rows, trials)
    visible_keys = set(visible.filter(pk__in=unfinished).values_list("pk", flat=True))
    queue = [{**row, "starts_in_s": outlook[row["experiment_id"]].starts_in_s} for row in rows]
    running = [trial for trial in trials if trial.experiment_id in visible_keys]
    waits = [row for row in queue if row["experiment_id"] in visible_keys]
    return _running(running, outlook), waits, len(trials) - len(running)


def _running(trials: Sequence[Trial], outlook: Mapping[int, Outlook]) -> list[dict[str, Any]]:
    experiments = {trial.experiment_id: trial.experiment for trial in trials}
    progress = progress_of(list(experiments.values()))
    marks: dict[int, list[str]] = {}
    drawn = [pk for pk, p in progress.items() if p.total <= MOST_SQUARES]
    rows = Trial.objects.current().filter(experiment__in=drawn).order_by("experiment_id", "position")
    for pk, state in rows.values_list("experiment_id", "state"):
        marks.setdefault(pk, []).append(state)
    return [
        {
            "experiment": experiment,
            "progress": progress[pk],
            "marks": marks.get(pk, []),
            "trials": [running_entry(trial) for trial in trials if trial.experiment_id == pk],
            "left_s": outlook[pk].left_s,
        }
        for pk, experiment in experiments.items()
    ]
