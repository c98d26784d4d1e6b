"""Diagnoses of large experiments by the background worker, with progress."""

from __future__ import annotations

import time
from typing import Final

import structlog
from django.core.cache import cache
from redis.exceptions import RedisError

from experiments.models import Experiment
from experiments.selectors.diagnosis import cached_diagnosis, diagnosis_of
from workers import queue

LARGE: Final = 2000
"""Trials of an experiment whose diagnosis takes about a second."""
_SILENT_S: Final = 20.0
"""Time without progress after which a request makes the diagnosis itself: the worker is busy, or there is none."""
_KEPT_S: Final = 600
log = structlog.get_logger()


def share_done(experiment: Experiment) -> float | None:
    """Return the share that the background worker has done; None if it makes none.

    The first call wakes the worker.
    """
    if cached_diagnosis(experiment)[1] or experiment.trials.count() <= LARGE:
        return None
    try:
        now = time.time()
        if cache.add(_key(experiment.pk), (0.0, now), _KEPT_S):
            queue.request_diagnosis(experiment.pk)
        share, told_at = cache.get(_key(experiment.pk), (0.0, 0.0))
        if now - told_at < _SILENT_S:
            return float(share)
        cache.delete(_key(experiment.pk))
    except RedisError as error:  # then nothing can be kept either
        log.warning("diagnosis_not_requested", experiment=experiment.pk, reason=str(error))
    return None


def make(experiment_id: int) -> None:
    """Make and keep the diagnosis of an experiment, and record the progress."""
    experiment = Experiment.objects.select_related("cluster").filter(pk=experiment_id).first()
    if experiment is None:
        return
    diagnosis_of(experiment, progress=lambda share: cache.set(_key(experiment_id), (share, time.time()), _KEPT_S))
    cache.delete(_key(experiment_id))


def _key(experiment_id: int) -> str:
    return f"diagnosing:{experiment_id}"
