"""Server status: processes, queue, running trials, services and disk. Read-only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from django.core.exceptions import PermissionDenied
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from analysis.numbers import amount
from dashboard.panels.cluster.rows import ClusterRow
from dashboard.panels.experiment.running import running_entry
from dashboard.panels.server.processes import Process, processes, silent
from dashboard.panels.server.services import Service, broker, database, load, storage, versions
from experiments.access import may_see_server, visible_experiments
from experiments.models import BLOCKING, BackgroundTask, Cluster, State, Trial
from experiments.selectors import running_trials, waiting
from experiments.selectors.queue_forecast import Outlook, outlooks

LEAST_FREE: Final = 0.05
"""Share of the disk below which the page warns."""
_FAULTS: Final = timedelta(days=1)


@require_GET
def server(request: HttpRequest) -> HttpResponse:
    """Show the page to maintainers and superusers; a refresh gets only its panels."""
    if not may_see_server(request.user):
        raise PermissionDenied
    template = "server/_status.html" if request.htmx else "server/page.html"  # type: ignore[attr-defined]
    return render(request, template, _status(request.user))


def _status(user: Any) -> dict[str, Any]:
    reported, services, disk = processes(), [database(), broker()], storage()
    waiting_rows, active = waiting(), list(running_trials())
    visible = set(
        visible_experiments(user).filter(pk__in={trial.experiment_id for trial in active}).values_list("pk", flat=True)
    )
    tasks = BackgroundTask.objects.aggregate(
        waiting=Count("pk", filter=Q(state=BackgroundTask.State.WAITING)),
        running=Count("pk", filter=Q(state=BackgroundTask.State.RUNNING)),
    )
    missing, clusters = silent(reported), _clusters(waiting_rows, active, outlooks(waiting_rows, active))
    return {
        "place": "",
        "problems": _problems(missing, services, disk),
        "processes": [process for process in reported if process.is_alive or process in missing],
        "ended": [process for process in reported if not process.is_alive and process not in missing],
        "services": services,
        "storage": disk,
        "load": load(),
        "versions": versions(),
        "clusters": clusters,
        "queued": sum(row["row"].queued for row in clusters),
        "running": [{**running_entry(trial), "is_visible": trial.experiment_id in visible} for trial in active],
        "tasks": tasks,
        "faults": _faults(),
        "now": timezone.now(),
    }


def _problems(missing: Sequence[Process], services: Sequence[Service], disk: Mapping[str, Any]) -> list[str]:
    """Return what users notice, the worst first."""
    problems = [process.problem for process in missing]
    problems += [f"{s.name} does not answer: workers are not woken." for s in services if s.answered_s is None]
    if disk["free"] < LEAST_FREE * disk["disk"]:
        problems.append(f"The disk is almost full: {amount(disk['free'], 'B')} free.")
    return problems


def _clusters(
    rows: Sequence[Mapping[str, Any]], active: Sequence[Trial], outlook: Mapping[int, Outlook]
) -> list[dict[str, Any]]:
    """Return the queue of each cluster: its trials, the oldest one, and when it ends."""
    running = Counter(trial.cluster_id for trial in active)
    held = dict(
        Trial.objects.filter(state=State.QUEUED, experiment__hold__in=BLOCKING)
        .order_by()
        .values_list("cluster_id")
        .annotate(count=Count("pk"))
    )
    entries = []
    for cluster in Cluster.objects.filter(elsewhere=False).select_related("test").order_by("-enabled", "slug"):
        queue = [row for row in rows if row["cluster_id"] == cluster.pk]
        ends = [outlook[row["experiment_id"]].left_s for row in queue]
        expected = [end for end in ends if end is not None]
        entries.append(
            {
                "row": ClusterRow(cluster, running[cluster.pk], sum(row["count"] for row in queue)),
                "held": held.get(cluster.pk, 0),
                "since": min((row["since"] for row in queue), default=None),
                "ends_in_s": max(expected, default=None),
                "has_unknown_end": len(expected) < len(ends),
            }
        )
    return entries


def _faults() -> int:
    """Count the trials of the last day that are errored or lost."""
    ended = Trial.objects.filter(state__in=(State.ERRORED, State.LOST), ended_at__gte=timezone.now() - _FAULTS)
    return ended.count()
