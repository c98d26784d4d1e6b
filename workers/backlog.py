"""Waiting messages: a periodic message is sent only if none waits.

Messages carry no expiry (Celery's `expires`), because the clocks of sender and worker would have to agree: a worker whose clock
is ahead would drop every message.
"""

from __future__ import annotations

from typing import Any

from celery import Celery

from experiments.common import outage


def has_listener(app: Celery, queue: str = "") -> bool:
    """Return whether no message waits in ``queue`` (default: that of trials).

    True as well if the broker does not answer.
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
