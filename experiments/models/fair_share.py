"""Whose turn it is: projects by what they used lately, the experiments of a project by their priority and age."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from django.db import connection
from django.utils import timezone

from experiments.models.experiment import Experiment
from experiments.models.states import Hold
from experiments.models.usage import machine_hours, used_lately

# From each experiment to the next by the index of the queue, however many trials of it wait.
_WAITING: Final = """
WITH RECURSIVE waiting AS (
  (SELECT experiment_id FROM experiments_trial
    WHERE cluster_id = %(cluster)s AND state = 'queued' ORDER BY experiment_id LIMIT 1)
  UNION ALL
  SELECT (SELECT trial.experiment_id FROM experiments_trial trial
    WHERE trial.cluster_id = %(cluster)s AND trial.state = 'queued' AND trial.experiment_id > waiting.experiment_id
    ORDER BY trial.experiment_id LIMIT 1)
  FROM waiting WHERE waiting.experiment_id IS NOT NULL
)
SELECT experiment_id FROM waiting WHERE experiment_id IS NOT NULL
"""


def in_turn(cluster_id: int, held: Iterable[tuple[int, float]]) -> list[int]:
    """Return the experiments (keys) whose trials may start on a cluster now, the next one first.

    Those of a project that has used up its machine-hours of the month wait. ``held`` is as in `standings`.
    """
    experiments = Experiment.objects.filter(pk__in=_waiting_experiments(cluster_id)).exclude(hold=Hold.HELD)
    rows = list(experiments.values_list("pk", "project_id", "priority"))
    used = standings({project_id for _, project_id, _ in rows}, held)
    ready = [(used[project_id], -priority, pk) for pk, project_id, priority in rows if project_id in used]
    return [pk for _, _, pk in sorted(ready)]


def _waiting_experiments(cluster_id: int) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(_WAITING, {"cluster": cluster_id})
        return [experiment_id for (experiment_id,) in cursor.fetchall()]


def standings(projects: Iterable[int], held: Iterable[tuple[int, float]]) -> Mapping[int, float]:
    """Return what each of these projects (keys) used lately, in machine-seconds, without those whose month is used up.

    ``held`` are the projects of the active trials, each with the machine-seconds that its trial has held; it is iterated
    only if several projects compete.
    """
    today = timezone.now().date()
    hours = machine_hours(list(projects), today)
    ready = [pk for pk, (used, most) in hours.items() if not most or used < most]
    if len(ready) < 2:
        return dict.fromkeys(ready, 0.0)
    return used_lately(ready, held, today)
