"""Messages that no worker has taken yet: the measure of whether a periodic one more is worth sending.

A message could carry the moment at which it is worth nothing any more (Celery's `expires`). But then the clocks of who
sends and who works have to agree: a worker whose clock is ahead throws every message away and stays idle for good.
"""

from __future__ import annotations

from typing import Any

from celery import Celery

from experiments.common import outage


def has_listener(app: Celery, queue: str = "") -> bool:
    """Return whether nothing waits in the broker for a free worker process, in ``queue`` or else that of trials; True as well where
    the broker does not answer.
    """
    connect: Any = app.connection_for_write  # its stubs take the method `channel` for an attribute
    try:
        # A new connection each time: one of the pool that is broken fails once more at its next use.
        with connect() as connection, connection.channel() as channel:
            waiting: int = channel.queue_declare(queue or app.conf.task_default_queue).message_count
    except Exception as error:  # kombu also raises AttributeError on a connection that is broken
        outage.REDIS.note(error)
        return True
    outage.REDIS.end()
    return not waiting
