"""Configuration of gunicorn: ``--config python:config.gunicorn``."""

from config import settings
from config.log import logging_config

worker_class = "config.front.BufferedWorker"
workers = settings.WEB_PROCESSES
threads = 6  # one user occupies two, and requests of unknown senders of an address two more (config/front.py)
preload_app = True  # loaded once, not once per process: half of the time until the first page
graceful_timeout = 5
accesslog = "-"
control_socket_disable = True  # not used, and outside of RANKWIRE_VAR
worker_tmp_dir = "/dev/shm"  # noqa: S108 - its heartbeat file must not wait for a disk

if settings.LOG_FORMAT == "json":  # else its own lines would be among the objects
    logconfig_dict = logging_config(level=settings.LOG_LEVEL, style=settings.LOG_FORMAT)
    logconfig_dict["loggers"] |= {
        name: {"level": settings.LOG_LEVEL, "handlers": [], "propagate": True}
        for name in ("gunicorn.error", "gunicorn.access")
    }
