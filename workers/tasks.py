"""Celery tasks: thin functions that tests call directly."""

from __future__ import annotations

import random
from typing import Final

from celery import current_app, shared_task

from experiments.models import BackgroundTask, Cluster, Heartbeat
from experiments.reparse import candidates, reparse
from workers import backlog, queue, reaper, retention, rounds
from workers.cluster_check import run as cluster_test
from workers.notifications import outbox
from workers.trial import pipeline

BACKGROUND_QUEUE: Final = "background"


@shared_task(name=queue.WORK, ignore_result=True)
def work(cluster_id: int) -> None:
    """Run the waiting trials of a cluster, as long as their hosts are free."""
    # Only a task that freed hosts wakes others: otherwise wake-ups would never end while a trial runs. Beside messages
    # that wait, one for each cluster would pile up; the sweep sends them later.
    if pipeline.run_waiting(Cluster.objects.get(pk=cluster_id)) and backlog.has_listener(current_app):
        queue.wake_all_waiting()


@shared_task(name=queue.TEST, ignore_result=True)
def test_cluster(cluster_id: int) -> None:
    """Run the requested check of a cluster, then wake what waits for its hosts."""
    if cluster_test.run_requested(Cluster.objects.get(pk=cluster_id)):
        queue.wake_all_waiting()


@shared_task(name=queue.REPARSE, ignore_result=True)
def read_again(experiment_id: int) -> None:
    """Parse the stored outputs of an experiment by its present specification."""
    reparse(candidates().filter(experiment=experiment_id).select_related("experiment", "configuration").order_by("pk"))


@shared_task(ignore_result=True)
def sweep() -> None:
    """Find lost trials and repeat lost wake-ups; every few seconds."""
    reaper.reap()
    rounds.decide_due()
    if backlog.has_listener(current_app):  # wake-ups must not pile up behind a long trial
        # Messages rotate among workers: one wake-up after every sweep would always reach the same one of two.
        for _ in range(random.choice((1, 2))):  # noqa: S311 - no secret
            queue.wake_all_waiting()
    BackgroundTask.requeue_silent()
    if BackgroundTask.objects.filter(state=BackgroundTask.State.WAITING).exists() and backlog.has_listener(
        current_app, BACKGROUND_QUEUE
    ):
        queue.wake_background()
    if outbox.is_waiting() and backlog.has_listener(current_app, BACKGROUND_QUEUE):
        queue.wake_notifications()


@shared_task(name=queue.NOTICES, ignore_result=True)
def send_notices() -> None:
    """Send notifications."""
    outbox.work()


@shared_task(ignore_result=True)
def remove_old_captures() -> None:
    """Apply retention; every hour."""
    retention.remove_old_captures()
    retention.remove_old_exports()
    retention.remove_old_keys()
    retention.remove_old_sessions()
    retention.remove_old_events()
    Heartbeat.forget_old()
    retention.forget_deleted()
