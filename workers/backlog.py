"""Messages that no worker has taken yet: the measure of whether a periodic one more is worth sending.

A message could carry the moment at which it is worth nothing any more (Celery's `expires`). But then the clocks of who
sends and who works have to agree: a worker whose clock is ahead throws every message away and stays idle for good.
"""

from __future__ import annotations

from typing import Any

import structlog
from celery import Celery
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

log = structlog.get_logger()


def is_heard(app: Celery, queue: str = "") -> bool:
    """Return whether nothing waits in the broker for a free worker process, in ``queue`` or else that of trials; True as well where
    the broker does not answer.
    """
    pool: Any = app.pool  # its stubs take the method `channel` for an attribute
    try:
        with pool.acquire(block=True) as connection, connection.channel() as channel:
            waiting: int = channel.queue_declare(queue or app.conf.task_default_queue).message_count
    except (OperationalError, RedisError) as error:
        log.warning("broker_not_asked", reason=str(error))
        return True
    return not waiting
