"""The queue is the table of trials; Redis only carries the doorbell.

A message says "cluster N has work", never "run trial M". Whoever hears it claims the first waiting trial with a
conditional UPDATE, so a message that is lost, doubled or late can neither lose nor double a trial, and ten thousand
waiting trials cost one message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import structlog
from celery import current_app
from django.db import transaction

from experiments import access, revision, workloads
from experiments.common import outage
from experiments.errors import FieldError, InvalidSpec
from experiments.models import Cluster, ClusterTest, Experiment, Hold, Prediction, Program, Project, State, Trial
from experiments.selectors import predictions, quotas
from experiments.specification import ExperimentSpec
from experiments.specification.yaml_lines import YamlDocument

WORK: Final = "workers.tasks.work"
TEST: Final = "workers.tasks.test_cluster"
REPARSE: Final = "workers.tasks.read_again"
NOTICES: Final = "workers.tasks.send_notices"
BACKGROUND: Final = "dashboard.background.tasks.work"
"""Known by name alone: it is a room above that knows what people ask for."""

log = structlog.get_logger()


def submit(
    spec: ExperimentSpec,
    *,
    project: Project,
    owner: Any = None,
    slug: str | None = None,
    first_only: bool = False,
    whatever_fails: bool = False,
) -> Experiment:
    """Store an experiment with its queued trials and ring for a worker.

    Raise InvalidSpec where its cluster cannot run it, or the project has used up a quota.

    With ``first_only`` all but the first measured trial are held back, to be run once that one looks right. The failure of a new program's
    first trial holds the rest, unless they run ``whatever_fails``.
    """
    with quotas.kept(project, capturing=spec.capture.enabled):
        experiment = Experiment.submit(spec, project=project, owner=owner, slug=slug)
        if whatever_fails:
            experiment.go_on()
        if first_only:
            experiment.hold_back_all_but_first()
    if experiment.cluster_id is not None:
        ring(experiment.cluster_id)
    return experiment


def revise(experiment: Experiment, spec: ExperimentSpec, *, author: Any = None) -> int:
    """Make ``spec`` the experiment's current version and ring; return how many trials it adds. Raise InvalidSpec.

    Where it says how outputs are read in another way, those that are kept are read again.
    """
    before = _reading(experiment)
    with quotas.kept(experiment.project, capturing=spec.capture.enabled):
        queued = experiment.revise(spec, author=author)
    _rung(experiment, queued)
    if _reading(experiment) != before:
        read_again(experiment)
    return queued


def _reading(experiment: Experiment) -> Mapping[str, Any]:
    """What the specification says of reading the output."""
    constants = experiment.specification.get("parameters", {})
    definition = workloads.find(experiment.workload, constants)
    return {name: constants.get(name) for name in (definition.reading if definition else ())}


def read_again(experiment: Experiment) -> None:
    """Have a worker read the kept outputs once more, once the transaction is committed."""
    transaction.on_commit(lambda: _send(REPARSE, experiment.pk))


_OF_OTHERS: Final = (
    "is registered already and used by experiments of projects that you do not maintain; who registered it first and superusers may "
    "change it, or take another name"
)


def register_program(data: Any, *, author: Any = None, name: str | None = None) -> Program:
    """Register a program; where its output is read in another way now, what is kept of it is read again. Raise InvalidSpec.

    ``name``: of the registered program that the definition is to replace. ``author`` None: a command of the operator.
    """
    if name is not None and (not isinstance(data, dict) or data.get("name") != name):
        raise InvalidSpec([FieldError("name", "a registered program keeps its name")])
    data_name = data.get("name") if isinstance(data, dict) else None
    if author is not None and isinstance(data_name, str) and not access.may_replace_program(author, data_name):
        raise InvalidSpec([FieldError("name", _OF_OTHERS)])
    program, read_otherwise = Program.register(data, author=author)
    if read_otherwise:
        for experiment in Experiment.objects.filter(workload=program.slug):
            read_again(experiment)
    return program


def register_program_yaml(text: str, *, author: Any = None, name: str | None = None) -> Program:
    """Register a program that is written as YAML. Raise InvalidSpec, errors with their lines."""
    document = YamlDocument(text)
    try:
        return register_program(document.data, author=author, name=name)
    except InvalidSpec as error:
        raise InvalidSpec(FieldError(e.path, e.message, document.line(e.path)) for e in error.errors) from None


def go_on(experiment: Experiment) -> int:
    """Let trials start that wait because the first one failed, and ring; return how many wait."""
    return _rung(experiment, experiment.go_on())


def add_repetitions(experiment: Experiment, count: int, *, author: Any = None) -> int:
    """Queue ``count`` more repetitions of every configuration and ring; return how many trials that is."""
    with quotas.kept(experiment.project):
        queued = experiment.add_repetitions(count, author=author)
    return _rung(experiment, queued)


def add_points(experiment: Experiment, more: revision.MorePoints, *, author: Any = None) -> int:
    """Queue the points that ``revision.plan_points`` planned and ring; return how many trials that is."""
    with quotas.kept(experiment.project):
        queued = revision.add_points(experiment, more, author=author)
    return _rung(experiment, queued)


def check_prediction(prediction: Prediction, *, author: Any = None) -> int:
    """Queue trials on the link of a prediction and ring; return how many. Raise InvalidSpec with the reason where none can run."""
    return add_points(prediction.experiment, predictions.plan_check(prediction), author=author)


def rerun_failed(experiment: Experiment) -> int:
    """Queue every trial without a result once more and ring; return how many there were."""
    with quotas.kept(experiment.project):
        queued = experiment.rerun_failed()
    return _rung(experiment, queued)


def run_again(trial: Trial) -> Trial:
    """Queue one trial once more and ring; return the new attempt. Raise StaleTrial when it is not over, InvalidSpec beyond a quota."""
    with quotas.kept(trial.experiment.project):
        attempt = trial.queue_attempt()
    _rung(trial.experiment, 1)
    return attempt


def _rung(experiment: Experiment, queued: int) -> int:
    if queued and experiment.cluster_id is not None:
        ring(experiment.cluster_id)
    return queued


def ring(cluster_id: int) -> None:
    """Tell the workers, once the transaction is committed, that a cluster has waiting trials."""
    transaction.on_commit(lambda: _send(WORK, cluster_id))


def ask_test(cluster: Cluster) -> bool:
    """Have a cluster tested by a worker; False while a test of it waits or runs."""
    if is_new := ClusterTest.ask(cluster):
        transaction.on_commit(lambda: _send(TEST, cluster.pk))
    return is_new


def ring_all_waiting() -> None:
    """Ring for every cluster with waiting trials: heals every lost message, and wakes clusters that waited for shared hosts."""
    waiting = (
        Cluster.objects.filter(
            enabled=True, trials__in=Trial.objects.filter(state=State.QUEUED).exclude(experiment__hold=Hold.HELD)
        )
    ).distinct()
    for cluster_id in waiting.values_list("pk", flat=True):
        ring(cluster_id)
    for cluster_id in ClusterTest.objects.filter(begun_at=None, ended_at=None).values_list("cluster_id", flat=True):
        _send(TEST, cluster_id)


def ring_background() -> None:
    """Tell the worker of what people wait for, once the transaction is committed, that something was asked."""
    transaction.on_commit(lambda: _send(BACKGROUND))


def ring_notices() -> None:
    """Tell the worker of what people wait for that there is something to tell."""
    transaction.on_commit(lambda: _send(NOTICES))


def _send(task: str, *keys: int) -> None:
    try:
        # By name: the task itself rings when it is done, so importing it here would close a circle.
        current_app.send_task(task, args=keys, retry=False)
    except Exception as error:  # a pooled connection that is broken raises errors of kombu, of Redis and of Python
        # The trials are stored; the sweep wakes workers when Redis answers again.
        outage.REDIS.note(error)
