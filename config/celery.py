"""The Celery application. Tasks live in workers/tasks.py and dashboard/background/tasks.py."""

import contextlib
import os
from pathlib import Path
from typing import Any

from celery import Celery, bootsteps
from celery.signals import (
    beat_init,
    celeryd_init,
    heartbeat_sent,
    setup_logging,
    worker_process_init,
    worker_shutting_down,
)
from django.conf import settings

from config.log import say_as_object
from config.services.children import die_with_parent
from experiments.common import outage
from workers import stopping, vital_signs

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

_worker_pid = 0

app = Celery("rankwire")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["workers", "dashboard.background"])


@setup_logging.connect
def keep_logging(**_: Any) -> None:
    """A connected receiver keeps Celery from replacing the handlers of config/log.py."""


@celeryd_init.connect
@beat_init.connect
def refuse_without_services(**_: Any) -> None:
    """Without an address Celery would try a guessed one for ever."""
    if not settings.SERVICES_KNOWN:
        # Celery swallows what a receiver raises, except this.
        raise SystemExit("rankwire: DATABASE_URL and REDIS_URL not set, and no embedded services run.")


@celeryd_init.connect
def speak_in_objects(**_: Any) -> None:
    """A worker that is told to end prints a line of its own."""
    if settings.LOG_FORMAT == "json":
        from celery.apps import worker as worker_program  # a worker has it; pages do without

        worker_program.safe_say = say_as_object  # type: ignore[attr-defined]


@celeryd_init.connect
def remember_worker(**_: Any) -> None:
    """Before the pool is forked: a child that asked for its parent might be told the one it was left to."""
    global _worker_pid
    _worker_pid = os.getpid()


@worker_shutting_down.connect
def tell_the_pool(**_: Any) -> None:
    """A warm shutdown waits for tasks, and one of ours goes on as long as trials wait."""
    stopping.announce()


@heartbeat_sent.connect
def leave_a_trace(**_: Any) -> None:
    """For whoever watches the worker from outside and must not disturb what it measures."""
    if settings.HEARTBEAT_FILE:
        with contextlib.suppress(OSError):
            Path(settings.HEARTBEAT_FILE).touch()


class Connected(bootsteps.StartStopStep):
    """Step of a worker that follows each connection to the broker: the first one, and those after outages."""

    requires = ("celery.worker.consumer.connection:Connection",)

    def start(self, parent: Any) -> None:
        """Record that Redis answers, and store heartbeats from the first time on."""
        outage.REDIS.end()
        vital_signs.keep_recording(parent.hostname, parent.app.amqp.queues.consume_from)


app.steps["consumer"].add(Connected)


@worker_process_init.connect
def die_with_worker(**_: Any) -> None:
    """A killed worker would leave its pool running: a trial that no worker watches."""
    if os.getpid() != _worker_pid:  # a worker without a pool is its own and only process
        die_with_parent(_worker_pid)
