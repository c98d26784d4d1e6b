"""Heartbeats of beat and of workers, from a worker's first process."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Container
from typing import Any, Final

import structlog
from django.apps import apps
from django.db import close_old_connections

from experiments.common import outage

EVERY_S: Final = 10.0
_threads: dict[int, threading.Thread] = {}
"""The thread of a process, by its id: a forked process has none."""
log = structlog.get_logger()


def record(role: str, name: str) -> None:
    """Store a heartbeat of a process; an error is logged."""
    table: Any = apps.get_model("experiments", "Heartbeat")  # Celery reads this module before Django is set up
    try:
        close_old_connections()
        table.record(role, name)
    except Exception as error:
        if not outage.note(error):
            log.exception("heartbeat_unstored", role=role)


def keep_recording(name: str, queues: Container[str]) -> None:
    """Store a heartbeat every ``EVERY_S`` seconds; call once per process."""
    if os.getpid() not in _threads:
        thread = threading.Thread(target=_run, args=(role_of(queues), name), name="heartbeats", daemon=True)
        _threads[os.getpid()] = thread
        thread.start()


def role_of(queues: Container[str]) -> str:
    """Return the role of a worker that takes these queues."""
    if "trials" in queues:
        return "worker"
    return "background" if "background" in queues else "analysis"


def _run(role: str, name: str) -> None:
    while True:
        record(role, name)
        time.sleep(EVERY_S)
