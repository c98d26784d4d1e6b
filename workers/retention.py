"""Remove old captures, events, exports, keys, sessions and experiments."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from typing import Final

import structlog
from django.conf import settings
from django.contrib.sessions.models import Session
from django.db.models import Model, QuerySet
from django.db.models.functions import Now

from experiments import deletion, store
from experiments.errors import StoreUnavailable
from experiments.models import UNFINISHED, Artifact, BackgroundTask, Delivery, Event, IdempotencyKey

_SETTLED_S: Final = 3600.0
"""Younger files may be written just now."""

_BATCH: Final = 1000
"""Rows of a transaction, so that none takes long."""

log = structlog.get_logger()


def remove_old_captures() -> int:
    """Remove captures older than the setting; return how many. 0 days: never."""
    if not settings.CAPTURE_RETENTION_DAYS:
        return 0
    age = timedelta(days=settings.CAPTURE_RETENTION_DAYS)
    old = Artifact.objects.filter(kind=Artifact.Kind.CAPTURE, removed_at=None, created_at__lt=Now() - age)
    removed = 0
    kept_in = store.current()
    for artifact in old.exclude(trial__state__in=UNFINISHED).iterator():
        try:
            kept_in.remove(artifact.path)
        except StoreUnavailable as error:
            log.warning("captures_not_removed", reason=str(error))
            break  # they go with the next hour
        removed += Artifact.objects.filter(pk=artifact.pk, removed_at=None).update(removed_at=Now())
    if removed:
        log.info("captures_removed", count=removed, older_than_days=settings.CAPTURE_RETENTION_DAYS)
    return removed


def remove_old_exports() -> int:
    """Remove old background tasks with files, and unknown files; return how many."""
    old = BackgroundTask.objects.filter(ended_at__lt=Now() - timedelta(days=settings.EXPORT_DAYS))
    forgotten = 0
    for task in old.iterator():
        task.forget()
        forgotten += 1
    known_keys = {str(key) for key in BackgroundTask.objects.values_list("pk", flat=True)}
    for file in (Path(settings.VAR) / "exports").glob("*.*"):
        # Its user was deleted, or the process that wrote it was killed.
        if file.stem not in known_keys and file.stat().st_mtime < time.time() - _SETTLED_S:
            file.unlink(missing_ok=True)
    if forgotten:
        log.info("exports_removed", count=forgotten, older_than_days=settings.EXPORT_DAYS)
    return forgotten


def remove_old_keys() -> int:
    """Remove old answers to idempotent requests; return how many."""
    return IdempotencyKey.objects.filter(asked_at__lt=Now() - IdempotencyKey.KEPT).delete()[0]


def remove_old_sessions() -> int:
    """Remove expired sessions, which no request does; return how many."""
    return _in_batches(Session.objects.filter(expire_date__lt=Now()))


def remove_old_events() -> int:
    """Remove events and messages older than the setting (0: never); return how many."""
    if not settings.EVENT_DAYS:
        return 0
    ended = Delivery.objects.exclude(state=Delivery.State.WAITING)
    old = ended.filter(ended_at__lt=Now() - timedelta(days=settings.EVENT_DAYS))
    removed = _in_batches(old) + _in_batches(Event.objects.removable_events())
    if removed:
        log.info("events_removed", count=removed, older_than_days=settings.EVENT_DAYS)
    return removed


def forget_deleted() -> int:
    """Remove experiments that are in the trash for too long; return how many."""
    forgotten = deletion.forget_old()
    if forgotten:
        log.info("deleted_experiments_forgotten", count=forgotten, older_than_days=settings.DELETED_DAYS)
    return forgotten


def _in_batches(rows: QuerySet[Model]) -> int:
    """Delete rows, each batch in its own transaction; return how many."""
    removed = 0
    while keys := list(rows.order_by("pk").values_list("pk", flat=True)[:_BATCH]):
        rows.model._default_manager.filter(pk__in=keys).delete()
        removed += len(keys)
    return removed
