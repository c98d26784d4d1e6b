"""One worker at a time runs the trials of a cluster whose hosts a scheduler allots.

Between two trials of a row nothing is leased, and a second worker that stepped in there would wait for nodes of its own, while the first
one gave its job back. PostgreSQL keeps the lock for as long as the connection, so nobody has to find out that a worker died.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.db import DatabaseError, connection

from experiments.models import Cluster

_SUBJECT: Final = 0x52414E4B
"""Of the lock: other numbers of clusters are locked by nobody else, but the space of numbers is shared by all of the database."""


@contextmanager
def alone_on(cluster: Cluster) -> Iterator[bool]:
    """Whether nobody else runs trials there until the end; a lost connection gives the lock up, which costs time in the queue only."""
    if not cluster.traits.allots:
        yield True
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", [_SUBJECT, cluster.pk])
        (alone,) = cursor.fetchone()
    try:
        yield alone
    finally:
        if alone:
            _release(cluster)


def _release(cluster: Cluster) -> None:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [_SUBJECT, cluster.pk])
    except DatabaseError:
        return  # the connection is gone, and the lock with it
