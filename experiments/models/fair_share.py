"""Fair share: projects by recent use, then experiments by priority and age."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from django.apps import apps
from django.utils import timezone

from experiments.models.experiment import Experiment
from experiments.models.states import Hold, State
from experiments.models.usage import machine_hours, recent_use


def fair_share_order(cluster_id: int, held: Iterable[tuple[int, float]]) -> list[int]:
    """Return the keys of experiments that may start on a cluster, the next one first.

    Projects that used up their monthly machine-hours wait. ``held`` is as in `use_of_ready_projects`.
    """
    waiting = apps.get_model("experiments", "Trial")._default_manager.filter(cluster=cluster_id, state=State.QUEUED)
    experiments = Experiment.objects.filter(pk__in=waiting.values("experiment")).exclude(hold=Hold.HELD)
    rows = list(experiments.order_by().values_list("pk", "project_id", "priority"))
    used = use_of_ready_projects({project_id for _, project_id, _ in rows}, held)
    ready = [(used[project_id], -priority, pk) for pk, project_id, priority in rows if project_id in used]
    return [pk for _, _, pk in sorted(ready)]


def use_of_ready_projects(projects: Iterable[int], held: Iterable[tuple[int, float]]) -> Mapping[int, float]:
    """Return the recent machine-seconds of projects within their monthly quota.

    ``held`` has the project and held machine-seconds of each active trial; it is read only if several projects compete.
    """
    today = timezone.now().date()
    hours = machine_hours(list(projects), today)
    ready = [pk for pk, (used, most) in hours.items() if not most or used < most]
    if len(ready) < 2:
        return dict.fromkeys(ready, 0.0)
    return recent_use(ready, held, today)
