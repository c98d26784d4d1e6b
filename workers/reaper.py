"""Trials whose worker is gone: found, marked LOST, and queued again where the experiment allows it."""

from __future__ import annotations

import structlog

from experiments.errors import StaleTrial
from experiments.models import Trial
from workers import leftovers
from workers.worker_identity import is_gone

log = structlog.get_logger()


def reap() -> int:
    """Mark every active trial LOST whose worker died or fell silent; return how many there were. Safe to run anywhere, any time."""
    lost = 0
    for trial in Trial.objects.active().select_related("experiment"):
        if is_gone(trial.worker):
            reason = "Its worker process ended in the middle of the trial."
        elif trial.note_silence():
            reason = f"Its worker has been silent: last heard of as {trial.worker}."
        else:
            continue
        try:
            attempt = trial.mark_lost(reason, leftovers.describe(trial))
        except StaleTrial:
            continue  # it ended, or another reaper was faster
        if is_gone(trial.worker):
            leftovers.remove_scratch(trial)
        lost += 1
        log.warning("trial_lost", trial=trial.pk, reason=reason, new_attempt=attempt.pk if attempt else None)
    return lost
