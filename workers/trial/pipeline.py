"""One trial, top to bottom: lease the hosts' session, capture, launch, sample, decode, compute, parse, store."""

from __future__ import annotations

import shutil
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import structlog

from experiments import files
from experiments.common import outage, plain_files
from experiments.errors import NotPlain, StaleTrial
from experiments.files import trial_directory
from experiments.models import DISTURBANCES, Artifact, Cluster, Trial, TrialResult
from experiments.selectors import quotas
from workers import stopping
from workers.errors import AllocationEnded, HostsLost, NotDelivered, TrialFailed
from workers.launchers import SessionPool
from workers.trial import delivery, leftovers, room
from workers.trial.database_retry import patiently
from workers.trial.failure import storage_failure
from workers.trial.heartbeat import Heart, Stopped, WorkerEnds
from workers.trial.measure import TrialRun
from workers.trial.one_at_a_time import alone_on
from workers.trial.results import RefusedOutput, collect
from workers.worker_identity import identity

POOL: Final = SessionPool()
"""The open sessions of this worker process: trials that share hosts and link share the fabric and its certificate."""
log = structlog.get_logger()


def run_waiting(cluster: Cluster) -> int:
    """Claim and execute trials until none is waiting, the hosts are taken or the worker is to end; return how many.

    One process does them in a row, so that trials which share a fabric find it alive; it is closed when the row ends.
    """
    worker = identity()
    executed, before = 0, None
    delivery.forget_undelivered()
    with alone_on(cluster) as alone:
        try:
            while alone and not stopping.is_asked():
                trial = Trial.claim_next(cluster, worker, rather=before)
                if trial is None or _waits_for_room(trial):
                    break
                execute(trial)
                before = trial.experiment_id if POOL.holds_a_job else None
                executed += 1
        finally:
            POOL.close()
    return executed


def _waits_for_room(trial: Trial) -> bool:
    """Hand a claimed trial back, with the reason as its message, if the disk has no room for it. The sweep claims it again in seconds."""
    reason = patiently(lambda: room.lacking(trial))
    if reason:
        _store(lambda: _hand_back(trial, reason))
    return bool(reason)


def execute(trial: Trial) -> None:
    """Run a claimed trial to a final state. Expected failures become a sentence, surprises keep their traceback; nothing escapes."""
    directory, undelivered = trial_directory(trial), False
    with plain_files.private(), Heart(trial) as heart:
        try:
            _clear(directory)
            run = TrialRun(trial, directory, heart)
            with POOL.lease(
                run.launcher_kind,
                host_count=run.plan.hosts,
                link=run.plan.link,
                settings=run.cluster_settings,
                tell=run.tell,
                wanted=run.wanted,
            ) as session:
                measured = run.measure(session)
            patiently(trial.start_analysing)
            result = collect(run, measured)
            delivery.deliver(trial, result.artifacts, heart.check)
            _store(lambda: _finish(trial, result), result.artifacts)
        except StaleTrial as error:
            log.warning("trial_given_up", trial=trial.pk, reason=str(error))
        except Stopped:
            artifacts, _ = delivery.left(trial)
            _store(lambda: trial.end_cancelled(artifacts), artifacts)
        except WorkerEnds:
            _store(trial.requeue)
        except AllocationEnded as error:
            told = f"Runs again, uncounted: {error}"
            _store(lambda: _hand_back(trial, told))
        except HostsLost as error:
            artifacts, note = delivery.left(trial)
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
            _end_by_surprise(trial, error)
    leftovers.remove_scratch(trial)
    if not undelivered:
        files.forget_delivered(trial)
    log.info("trial_ended", trial=trial.pk, state=trial.state)


def _finish(trial: Trial, result: TrialResult) -> None:
    """Store the results; a disturbed trial is repeated once, unless its project has used up a quota."""
    may_repeat = False
    if result.conditions.get(DISTURBANCES):
        project = trial.experiment.project
        waiting, capturing = quotas.waiting_trials(project), trial.experiment.spec.capture.enabled
        may_repeat = not quotas.problems(project, waiting=waiting, adding=1, capturing=capturing)
    if (repeat := trial.finish(result, may_repeat=may_repeat)) is not None:
        log.info("trial_repeated", trial=trial.pk, repeat=repeat.pk)


def _hand_back(trial: Trial, reason: str) -> None:
    """Let it wait again, unless somebody wanted it to end."""
    if not trial.requeue(reason):
        artifacts, _ = delivery.left(trial)
        _store(lambda: trial.end_cancelled(artifacts), artifacts)


def _fail(trial: Trial, message: str) -> None:
    artifacts, note = delivery.left(trial)
    _store(lambda: trial.fail(f"{message}{note}", artifacts), artifacts)


def _refuse(trial: Trial, error: RefusedOutput) -> None:
    """Keep what was measured beside an output that its parser refused, for a better parser."""
    if not error.artifacts:
        _fail(trial, str(error))
        return
    message, artifacts = str(error), error.artifacts
    try:
        delivery.deliver(trial, artifacts, lambda: None)
    except NotDelivered as lost:
        message, artifacts = f"{message} {lost}", ()
    _store(lambda: trial.fail(message, artifacts), artifacts)


def _end_by_surprise(trial: Trial, error: Exception) -> None:
    """Let the trial wait again, uncounted, if the database was away, which is no fault of the trial; else keep the traceback."""
    if outage.outage_of(error) is outage.DATABASE:
        outage.note(error)
        _store(lambda: _hand_back(trial, "Runs again, uncounted: the database did not answer during the trial."))
        return
    told = storage_failure(error) if isinstance(error, OSError) else None
    if told is not None:
        _store(lambda: trial.fail(told))
        return
    text = "".join(traceback.format_exception(error))
    log.error("trial_errored", trial=trial.pk, traceback=text)
    artifacts, note = delivery.left(trial)
    _store(lambda: trial.error(f"{type(error).__name__}: {error}{note}", text, artifacts), artifacts)


def _store(write: Callable[[], object], artifacts: Sequence[Artifact] = ()) -> None:
    """Write the end of a trial. Another worker's is not ours to end, and what was delivered for it is taken back."""
    try:
        patiently(write)
    except StaleTrial as error:
        log.warning("trial_given_up", reason=str(error))
        patiently(lambda: files.take_back(artifacts))


def _clear(directory: Path) -> None:
    """Begin with an empty directory: a lost attempt of an earlier trial with this key cannot exist, but its files may."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    # Of an installation that made it readable for all of this machine.
    directory.parent.chmod(plain_files.DIRECTORY_MODE)
