"""Celery application of workers/tasks.py and dashboard/background/tasks.py."""

import contextlib
import os
from pathlib import Path
from typing import Any

from celery import Celery, bootsteps, platforms
from celery.signals import (
    beat_init,
    celeryd_init,
    heartbeat_sent,
    setup_logging,
    worker_process_init,
    worker_shutting_down,
)
from django.conf import settings

from config.log import print_as_json
from config.services.children import die_with_parent
from experiments.common import outage
from workers import stopping, vital_signs

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")  # Django's checks import all pages, which a worker does not serve

_worker_pid = 0

app = Celery("rankwire")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["workers", "dashboard.background"])


@setup_logging.connect
def keep_logging(**_: Any) -> None:
    """Keep Celery from replacing the handlers of config/log.py."""


@celeryd_init.connect
@beat_init.connect
def refuse_without_services(**_: Any) -> None:
    """Exit without addresses: Celery would retry a default one for ever."""
    if not settings.SERVICES_KNOWN:
        # The only exception of a receiver that Celery propagates.
        raise SystemExit("rankwire: DATABASE_URL and REDIS_URL not set, and no embedded services run.")


@celeryd_init.connect
def print_json(**_: Any) -> None:
    """Print the lines of a stopping worker as JSON too."""
    if settings.LOG_FORMAT == "json":
        from celery.apps import worker as worker_program  # not imported by web processes

        worker_program.safe_say = print_as_json  # type: ignore[attr-defined]


@celeryd_init.connect
def remember_worker(**_: Any) -> None:
    """Store the worker's process ID before the pool is forked."""
    global _worker_pid
    _worker_pid = os.getpid()


@celeryd_init.connect
def keep_death_signal(**_: Any) -> None:
    """Leave the death signal to `die_with_worker`.

    Celery's request parses C, 35 ms in each process.
    """
    platforms.set_pdeathsig = lambda _: None  # type: ignore[attr-defined]  # not in its types


@worker_shutting_down.connect
def announce_shutdown(**_: Any) -> None:
    """Notify running tasks of a warm shutdown: one runs as long as trials wait."""
    stopping.announce()


@heartbeat_sent.connect
def touch_heartbeat_file(**_: Any) -> None:
    """Touch a file for health checks, which then start no process beside a trial."""
    if settings.HEARTBEAT_FILE:
        with contextlib.suppress(OSError):
            Path(settings.HEARTBEAT_FILE).touch()


class Connected(bootsteps.StartStopStep):
    """Worker step after each connection to the broker."""

    requires = ("celery.worker.consumer.connection:Connection",)

    def start(self, parent: Any) -> None:
        """Record the end of an outage and start heartbeats."""
        outage.REDIS.end()
        vital_signs.keep_recording(parent.hostname, parent.app.amqp.queues.consume_from)


app.steps["consumer"].add(Connected)


@worker_process_init.connect
def die_with_worker(**_: Any) -> None:
    """End a pool process with its worker, so that no trial runs unsupervised."""
    if os.getpid() != _worker_pid:  # false in a worker without a pool
        die_with_parent(_worker_pid)
