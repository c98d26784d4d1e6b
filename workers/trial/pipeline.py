"""One trial: lease, capture, launch, sample, decode, compute, parse, store."""

from __future__ import annotations

import shutil
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import structlog
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.models import Sum

from analysis.numbers import amount
from experiments import files
from experiments.common import outage, plain_files, trees
from experiments.errors import NotPlain, StaleTrial
from experiments.files import trial_directory
from experiments.models import DISTURBANCES, Artifact, Cluster, State, Trial, TrialResult
from experiments.models.states import NO_ROOM
from experiments.selectors import quotas
from experiments.selectors.goals import spent_of
from workers import rounds, stopping
from workers.errors import AllocationEnded, HostsLost, NotDelivered, TrialFailed
from workers.launchers import SessionPool
from workers.trial import delivery
from workers.trial.database_retry import patiently
from workers.trial.failure import storage_failure
from workers.trial.heartbeat import Stopped, TrialHeartbeat, WorkerEnds
from workers.trial.measure import TrialRun
from workers.trial.results import RefusedOutput, collect
from workers.worker_identity import identity

POOL: Final = SessionPool()
"""The open sessions of this worker process: trials that share hosts and link share the fabric and its certificate."""
_LOCK: Final = 0x52414E4B
"""First key of PostgreSQL's advisory locks on clusters."""
_TURN_S: Final = 300.0
"""A cluster keeps its turn so long, as each turn makes sessions and links anew."""
_LAST_TRIALS: Final = 5
_COPIES: Final = 3
"""A capture is on disk as it was recorded, as it is kept, and for a moment as both."""
log = structlog.get_logger()


def run_waiting(cluster: Cluster) -> int:
    """Claim and execute trials until none is left; return how many.

    Or until the worker stops, or it is the turn of another cluster. One process runs them one after another, so that trials
    share a fabric; it is closed at the end.
    """
    worker = identity()
    executed, before, turn_ends = 0, None, 0.0
    delivery.forget_undelivered()
    with alone_on(cluster) as alone:
        try:
            while alone and not stopping.is_stopping():
                keeps_turn = time.monotonic() < turn_ends
                trial = Trial.claim_next(cluster, worker, rather=before, keeps_turn=keeps_turn)
                if trial is None or _waits_for_room(trial):
                    break
                turn_ends = turn_ends if keeps_turn else time.monotonic() + _TURN_S
                execute(trial)
                rounds.decide_patiently(trial.experiment_id)
                before = trial.experiment_id if POOL.holds_a_job else None
                executed += 1
        finally:
            POOL.close()
    return executed


@contextmanager
def alone_on(cluster: Cluster) -> Iterator[bool]:
    """Yield whether this worker alone runs trials of a scheduler's cluster.

    Between two trials nothing is leased, and a second worker would wait for nodes of its own while the first one returned its
    job. PostgreSQL holds the lock as long as the connection; a lost connection costs time in the queue only.
    """
    if not cluster.traits.allots:
        yield True
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", [_LOCK, cluster.pk])
        (alone,) = cursor.fetchone()
    try:
        yield alone
    finally:
        if alone:
            with suppress(DatabaseError), connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [_LOCK, cluster.pk])


def _waits_for_room(trial: Trial) -> bool:
    """Requeue a claimed trial with the reason if the disk lacks room; sweeps retry it."""
    reason = patiently(lambda: _lacking_room(trial))
    if reason:
        _store(lambda: _hand_back(trial, reason))
    return bool(reason)


def _lacking_room(trial: Trial) -> str:
    """Return why RANKWIRE_VAR lacks room for a trial, with both amounts, or ""."""
    existing = next(path for path in (settings.VAR, *settings.VAR.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    required = settings.DISK_RESERVE_BYTES + _COPIES * _stored_bytes(trial)
    if free >= required:
        return ""
    return (
        f"{NO_ROOM}: {amount(free, 'B')} free, {amount(required, 'B')} required. "
        "The trial starts when RANKWIRE_VAR has room."
    )


def _stored_bytes(trial: Trial) -> int:
    """Return the most that one of the experiment's last finished trials stored."""
    finished = Trial.objects.filter(experiment=trial.experiment_id, state=State.FINISHED).order_by("-ended_at")
    last = finished.annotate(stored=Sum("artifacts__size_bytes")).values_list("stored", flat=True)[:_LAST_TRIALS]
    return max((stored or 0 for stored in last), default=0)


def execute(trial: Trial) -> None:
    """Run a claimed trial to a final state; no exception escapes.

    Expected failures become a sentence, surprises keep their traceback.
    """
    directory, undelivered = trial_directory(trial), False
    with plain_files.private(), TrialHeartbeat(trial) as heartbeat:
        try:
            _clear(directory)
            run = TrialRun(trial, directory, heartbeat)
            with POOL.lease(
                run.launcher_kind,
                host_count=run.plan.hosts,
                link=run.plan.link,
                settings=run.cluster_settings,
                tell=run.tell,
                shared_job=run.shared_job,
            ) as session:
                measured = run.measure(session)
            patiently(trial.start_analysing)
            result = collect(run, measured)
            delivery.deliver(trial, result.artifacts, heartbeat.check)
            _store(lambda: _finish(trial, result), result.artifacts)
        except StaleTrial as error:
            log.warning("trial_given_up", trial=trial.pk, reason=str(error))
        except Stopped:
            artifacts, _ = delivery.deliver_leftovers(trial)
            _store(lambda: trial.end_cancelled(artifacts), artifacts)
        except WorkerEnds:
            _store(trial.requeue)
        except AllocationEnded as error:
            reason = f"Queued again, no attempt lost: {error}"
            _store(lambda: _hand_back(trial, reason))
        except HostsLost as error:
            artifacts, note = delivery.deliver_leftovers(trial)
            reason = f"{error}{note}"
            _store(lambda: trial.mark_lost(reason, artifacts), artifacts)
        except RefusedOutput as error:
            _refuse(trial, error)
        except NotPlain as error:
            _fail(trial, f"The trial's own files cannot be read: {error}.")
        except NotDelivered as error:
            message, undelivered = str(error), True
            _store(lambda: trial.fail(message))
        except TrialFailed as error:
            _fail(trial, str(error))
        except Exception as error:
            _end_by_error(trial, error)
    delivery.remove_scratch(trial)
    if not undelivered:
        files.forget_delivered(trial)
    log.info("trial_ended", trial=trial.pk, state=trial.state)


def _finish(trial: Trial, result: TrialResult) -> None:
    """Store the results; a disturbed trial is repeated once, within the quota."""
    may_repeat = False
    if result.conditions.get(DISTURBANCES) and trial.experiment.repeats_disturbed:
        project = trial.experiment.project
        waiting, capturing = quotas.waiting_trials(project), trial.experiment.spec.capture.enabled
        may_repeat = not quotas.problems(project, waiting=waiting, adding=1, capturing=capturing)
        goal = trial.experiment.spec.goal
        may_repeat &= goal is None or not spent_of(trial.experiment).reached(goal.budget)
    if (repeat := trial.finish(result, may_repeat=may_repeat)) is not None:
        log.info("trial_repeated", trial=trial.pk, repeat=repeat.pk)


def _hand_back(trial: Trial, reason: str) -> None:
    """Requeue the trial, or end it if it was cancelled."""
    if not trial.requeue(reason):
        artifacts, _ = delivery.deliver_leftovers(trial)
        _store(lambda: trial.end_cancelled(artifacts), artifacts)


def _fail(trial: Trial, message: str) -> None:
    artifacts, note = delivery.deliver_leftovers(trial)
    _store(lambda: trial.fail(f"{message}{note}", artifacts), artifacts)


def _refuse(trial: Trial, error: RefusedOutput) -> None:
    """Store measurements of an output that its parser refused, for a better one."""
    if not error.artifacts:
        _fail(trial, str(error))
        return
    message, artifacts = str(error), error.artifacts
    try:
        delivery.deliver(trial, artifacts, lambda: None)
    except NotDelivered as lost:
        message, artifacts = f"{message} {lost}", ()
    _store(lambda: trial.fail(message, artifacts), artifacts)


def _end_by_error(trial: Trial, error: Exception) -> None:
    """Requeue the trial if the database was away, uncounted; else store the error."""
    if outage.outage_of(error) is outage.DATABASE:
        outage.note(error)
        _store(
            lambda: _hand_back(trial, "Queued again, no attempt lost: the database did not answer during the trial.")
        )
        return
    sentence = storage_failure(error) if isinstance(error, OSError) else None
    if sentence is not None:
        _store(lambda: trial.fail(sentence))
        return
    text = "".join(traceback.format_exception(error))
    log.error("trial_errored", trial=trial.pk, traceback=text)
    artifacts, note = delivery.deliver_leftovers(trial)
    _store(lambda: trial.error(f"{type(error).__name__}: {error}{note}", text, artifacts), artifacts)


def _store(write: Callable[[], object], artifacts: Sequence[Artifact] = ()) -> None:
    """Write the end of a trial; take its files back if another worker owns it."""
    try:
        patiently(write)
    except StaleTrial as error:
        log.warning("trial_given_up", reason=str(error))
        patiently(lambda: files.take_back(artifacts))


def _clear(directory: Path) -> None:
    """Empty the directory, which may hold files of a lost attempt."""
    trees.remove(directory)
    directory.mkdir(parents=True)
    # Of an installation that made it readable for all of this machine.
    directory.parent.chmod(plain_files.DIRECTORY_MODE)
