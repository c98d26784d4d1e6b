"""Queue: the table of trials; Redis only carries wake-ups.

A message says "cluster N has work", never "run trial M". A worker that receives it claims the first waiting trial with a
conditional UPDATE, so that a lost, doubled or late message can neither lose nor double a trial, and ten thousand waiting trials
cost one message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import structlog
from celery import current_app
from django.db import transaction

from experiments import access, revision, workloads
from experiments.common import outage
from experiments.common.storable import is_storable_text
from experiments.errors import FieldError, InvalidSpec
from experiments.models import BLOCKING, Cluster, ClusterTest, Experiment, Prediction, Program, Project, State, Trial
from experiments.models.changes import note
from experiments.selectors import predictions, quotas
from experiments.selectors.goals import goal_of, why_no_time
from experiments.specification import ExperimentSpec
from experiments.specification.yaml_lines import YamlDocument
from experiments.workloads.template import text_paths

WORK: Final = "workers.tasks.work"
TEST: Final = "workers.tasks.test_cluster"
REPARSE: Final = "workers.tasks.read_again"
NOTICES: Final = "workers.tasks.send_notices"
BACKGROUND: Final = "dashboard.background.tasks.work"
DIAGNOSE: Final = "dashboard.background.tasks.diagnose"
"""By name: these tasks belong to a package above this one."""

log = structlog.get_logger()


def submit(
    spec: ExperimentSpec,
    *,
    project: Project,
    owner: Any = None,
    slug: str | None = None,
    cloned_from: Experiment | None = None,
    first_only: bool = False,
    whatever_fails: bool = False,
) -> Experiment:
    """Store an experiment with its queued trials and wake a worker.

    With ``first_only`` all but the first measured trial are held, to run once that one looks right. The failure of a new
    program's first trial holds the rest, unless ``whatever_fails``. Raise InvalidSpec if its cluster cannot run it, or a quota
    is used up.
    """
    if first_only and spec.goal is not None:
        raise InvalidSpec([FieldError("goal", "starts with round 1: run the first trial of a fixed design instead")])
    with quotas.within_quotas(project, capturing=spec.capture.enabled):
        experiment = Experiment.submit(spec, project=project, owner=owner, slug=slug, cloned_from=cloned_from)
        if whatever_fails:
            experiment.go_on()
        if first_only:
            experiment.cancel_all_but_first()
    if experiment.cluster_id is not None:
        wake_workers(experiment.cluster_id)
    return experiment


def revise(experiment: Experiment, spec: ExperimentSpec, *, author: Any = None) -> int:
    """Make ``spec`` the current version; return the number of added trials.

    A worker is woken. If outputs are parsed differently now, stored outputs are parsed again. Raise InvalidSpec.
    """
    before = _reading(experiment)
    with quotas.within_quotas(experiment.project, capturing=spec.capture.enabled):
        queued = experiment.revise(spec, author=author)
    _wake_if_queued(experiment, queued)
    if _reading(experiment) != before:
        read_again(experiment)
    return queued


def _reading(experiment: Experiment) -> Mapping[str, Any]:
    """Return the parameters that control the parsing of outputs."""
    constants = experiment.specification.get("parameters", {})
    definition = workloads.find(experiment.workload, constants)
    return {name: constants.get(name) for name in (definition.reading if definition else ())}


def read_again(experiment: Experiment) -> None:
    """Request that a worker parses the stored outputs again, after the commit."""
    transaction.on_commit(lambda: _send(REPARSE, experiment.pk))


_OF_OTHERS: Final = (
    "is registered already and used by experiments of projects that you do not maintain; only its first author and superusers may "
    "change it. Choose another name"
)


def register_program(data: Any, *, author: Any = None, name: str | None = None) -> Program:
    """Register a program, and parse stored outputs again if parsing changed.

    ``name``: of the registered program to replace. ``author`` None: an operator's command. Raise InvalidSpec.
    """
    if name is not None and (not isinstance(data, dict) or data.get("name") != name):
        raise InvalidSpec([FieldError("name", "a registered program keeps its name")])
    data_name = data.get("name") if isinstance(data, dict) else None
    is_text = isinstance(data_name, str) and is_storable_text(data_name)
    if author is not None and is_text and not access.may_replace_program(author, str(data_name)):
        raise InvalidSpec([FieldError("name", _OF_OTHERS)])
    program, read_otherwise = Program.register(data, author=author)
    if read_otherwise:
        for experiment in Experiment.objects.filter(workload=program.slug):
            read_again(experiment)
    return program


def register_program_yaml(text: str, *, author: Any = None, name: str | None = None) -> Program:
    """Register a program written as YAML. Raise InvalidSpec, errors with their lines."""
    document = YamlDocument(text)
    try:
        if altered := list(document.altered(*text_paths(document.data))):
            raise InvalidSpec(altered)
        return register_program(document.data, author=author, name=name)
    except InvalidSpec as error:
        raise InvalidSpec(
            FieldError(e.path, e.message, e.line or document.line(e.path)) for e in error.errors
        ) from None


def resume_rounds(experiment: Experiment) -> bool:
    """Resume paused rounds; return False if they were not paused."""
    resumed = experiment.resume_rounds()
    _wake_if_queued(experiment, int(resumed))
    return resumed


def resume(experiment: Experiment) -> int:
    """Resume trials that are held because the first one failed; return how many wait."""
    return _wake_if_queued(experiment, experiment.go_on())


def add_repetitions(experiment: Experiment, count: int, *, author: Any = None) -> int:
    """Queue ``count`` more repetitions of each configuration; return how many."""
    with quotas.within_quotas(experiment.project):
        queued = experiment.add_repetitions(count, author=author)
    return _wake_if_queued(experiment, queued)


def add_points(experiment: Experiment, plan: Callable[[], revision.MorePoints], *, author: Any = None) -> int:
    """Queue the points of ``plan``; return the number of trials.

    The plan is made while no other request can change the experiment. Raise StaleTrial, InvalidSpec.
    """
    with quotas.within_quotas(experiment.project):
        experiment.wait_for_others()
        queued = revision.add_points(experiment, plan(), author=author)
    return _wake_if_queued(experiment, queued)


def check_prediction(prediction: Prediction, *, author: Any = None) -> int:
    """Queue trials on the link of a prediction; return how many. Raise InvalidSpec."""
    return add_points(prediction.experiment, partial(predictions.plan_check, prediction), author=author)


def rerun_failed(experiment: Experiment) -> int:
    """Queue every trial without a result again; return how many."""
    with quotas.within_quotas(experiment.project):
        queued = experiment.rerun_failed()
        _reopen_rounds(experiment, queued)
    return _wake_if_queued(experiment, queued)


def repeat_disturbed(experiment: Experiment) -> int:
    """Queue repeats of the counted trials that other load slowed; return how many."""
    with quotas.within_quotas(experiment.project):
        queued = experiment.repeat_disturbed()
        _reopen_rounds(experiment, queued)
    return _wake_if_queued(experiment, queued)


def run_again(trial: Trial) -> Trial:
    """Queue one trial again; return the attempt. Raise StaleTrial, InvalidSpec."""
    with quotas.within_quotas(trial.experiment.project):
        attempt = trial.queue_attempt()
        _reopen_rounds(trial.experiment, 1)
    _wake_if_queued(trial.experiment, 1)
    return attempt


def _reopen_rounds(experiment: Experiment, queued: int) -> None:
    """Open a round of trials that run again, unless its budget would cancel them."""
    goal = goal_of(experiment)
    if goal is None or not why_no_time(experiment, goal.budget):
        experiment.reopen_rounds(queued)


def _wake_if_queued(experiment: Experiment, queued: int) -> int:
    if queued and experiment.cluster_id is not None:
        wake_workers(experiment.cluster_id)
    return queued


def wake_workers(cluster_id: int) -> None:
    """Wake workers for a cluster's waiting trials, after the commit."""
    transaction.on_commit(lambda: _send(WORK, cluster_id))


def request_check(cluster: Cluster) -> bool:
    """Request a check, which waits for the hosts; False while one waits or runs."""
    if is_new := ClusterTest.ask(cluster):
        note(cluster, "check", "requested")
        transaction.on_commit(lambda: _send(TEST, cluster.pk))
    return is_new


def cancel_check(cluster: Cluster) -> bool:
    """Cancel a waiting check and wake workers; return False if none waits."""
    if cancelled := ClusterTest.cancel(cluster):
        transaction.on_commit(wake_all_waiting)
    return cancelled


def wake_all_waiting() -> None:
    """Wake workers for every waiting cluster, which replaces lost messages."""
    waiting = (
        Cluster.objects.filter(
            enabled=True, trials__in=Trial.objects.filter(state=State.QUEUED).exclude(experiment__hold__in=BLOCKING)
        )
    ).distinct()
    for cluster_id in waiting.values_list("pk", flat=True):
        wake_workers(cluster_id)
    for cluster_id in ClusterTest.objects.filter(worker="").values_list("cluster_id", flat=True):
        _send(TEST, cluster_id)


def wake_background() -> None:
    """Wake the background worker, after the commit."""
    transaction.on_commit(lambda: _send(BACKGROUND))


def request_diagnosis(experiment_id: int) -> None:
    """Wake the background worker for the diagnosis of an experiment."""
    _send(DIAGNOSE, experiment_id)


def wake_notifications() -> None:
    """Wake the background worker for notifications, after the commit."""
    transaction.on_commit(lambda: _send(NOTICES))


def _send(task: str, *keys: int) -> None:
    try:
        # By name: the task wakes workers at its end, so importing it here would close a circle.
        current_app.send_task(task, args=keys, retry=False)
    except Exception as error:  # a pooled connection that is broken raises errors of kombu, of Redis and of Python
        # The trials are stored; the sweep wakes workers when Redis answers again.
        outage.REDIS.note(error)
