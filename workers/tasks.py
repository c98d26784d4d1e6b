"""Celery tasks: thin, each a function that tests call directly."""

from __future__ import annotations

from celery import shared_task

from experiments.models import Cluster, Trial
from workers import pipeline, queue, reaper
from workers.worker_identity import identity


@shared_task(name=queue.WORK, ignore_result=True)
def work(cluster_id: int) -> None:
    """Run the first waiting trial of a cluster, if its hosts are free; then ring for the next."""
    trial = Trial.claim_next(Cluster.objects.get(pk=cluster_id), identity())
    if trial is not None:
        pipeline.execute(trial)
        queue.ring_all_waiting()


@shared_task(ignore_result=True)
def sweep() -> None:
    """Every few seconds: find lost trials, and ring for waiting ones whose message was lost."""
    reaper.reap()
    queue.ring_all_waiting()
