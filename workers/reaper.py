"""Trials whose worker is gone: marked LOST, and requeued if allowed."""

from __future__ import annotations

from typing import Final

import structlog

from experiments import files
from experiments.errors import StaleTrial
from experiments.models import ClusterTest, Trial
from experiments.models.trial import MISSED_ROUNDS_UNTIL_LOST
from workers import stopping
from workers.trial import delivery
from workers.trial.heartbeat import ENDING
from workers.worker_identity import is_alive_here, is_gone

HUNG_ROUNDS: Final = 6 * MISSED_ROUNDS_UNTIL_LOST
"""Two minutes for a process that is seen to live: it lacks a processor sooner than it hangs, and its trial would be lost for nothing."""

log = structlog.get_logger()


def reap() -> int:
    """Mark trials LOST whose worker died or is silent; return how many.

    Safe at any time. The trial of a stopped worker is requeued, uncounted: an update of the installation is not its
    fault.
    """
    lost = 0
    for trial in Trial.objects.active().select_related("experiment"):
        if is_gone(trial.worker):
            reason = "Its worker process ended in the middle of the trial."
        elif trial.record_missed_heartbeat(HUNG_ROUNDS if is_alive_here(trial.worker) else MISSED_ROUNDS_UNTIL_LOST):
            reason = f"Its worker {trial.worker} stopped reporting."
        else:
            continue
        worker = trial.worker
        if (trial.progress.get(ENDING) or stopping.is_recorded_on_disk(worker)) and trial.requeue():
            _clear_up(trial, worker)
            stopping.forget(worker)
            log.warning("trial_handed_back", trial=trial.pk, worker=worker, reason="The worker was stopped.")
            continue
        try:
            # One try: who waits for the store here finds no other lost trial meanwhile.
            artifacts, note = delivery.deliver_leftovers(trial, patience_s=0)
            attempt = trial.mark_lost(f"{reason}{note}", artifacts)
        except StaleTrial:
            files.take_back(artifacts)
            continue  # it ended, or another reaper was faster
        _clear_up(trial, worker)
        lost += 1
        log.warning("trial_lost", trial=trial.pk, reason=reason, new_attempt=attempt.pk if attempt else None)
    _reap_tests()
    return lost


def _clear_up(trial: Trial, worker: str) -> None:
    """Remove the files that a worker of this machine left."""
    if is_gone(worker):
        delivery.remove_scratch(trial)
        files.forget_delivered(trial)


def _reap_tests() -> None:
    """End cluster checks without a worker: they hold hosts and block the next check."""
    for test in ClusterTest.objects.filter(ended_at=None).exclude(worker="").select_related("cluster"):
        if is_gone(test.worker):
            test.give_up("Its worker process ended in the middle of the check.")
        elif test.is_silent:
            test.give_up("Its worker stopped reporting.")
