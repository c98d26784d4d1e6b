"""Logs: structlog's and the standard library's records leave through one handler, on standard error."""

from __future__ import annotations

import json
import logging.config
import os
import sys
from datetime import UTC, datetime
from typing import Any, Final

import structlog

from experiments.common import outage

_EVERY_RECORD: Final[tuple[structlog.typing.Processor, ...]] = (
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.StackInfoRenderer(),
)


class Routine(logging.Filter):
    """Drops what is done every few seconds, work or not: the round of the beat, and that health was asked for."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is kept: what went wrong always is."""
        if record.levelno != logging.INFO:
            return True
        if record.name == "gunicorn.access":
            atoms: Any = record.args
            return not (str(atoms["U"]).endswith("/healthz") and str(atoms["s"]) == "200")
        return not (record.name.startswith("celery.") and "workers.tasks.sweep" in record.getMessage())


class Outages(logging.Filter):
    """Drops records of errors that an outage of PostgreSQL or Redis causes: each outage is two lines (experiments/common/outage.py)."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is kept. Celery passes the error as an argument, others with its traceback."""
        arguments = record.args if isinstance(record.args, tuple) else ()
        errors = [(record.exc_info or (None, None))[1], *arguments]
        return not any(outage.note(error) for error in errors if isinstance(error, BaseException))


def logging_config(*, level: str, style: str) -> dict[str, Any]:
    """As `logging.config` takes it. `style` is `console` for people or `json` for machines, one object per line."""
    formatter = {
        "()": structlog.stdlib.ProcessorFormatter,
        "foreign_pre_chain": _EVERY_RECORD,
        "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_rendering(style)],
    }
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"structlog": formatter},
        "filters": {"routine": {"()": Routine}, "outages": {"()": Outages}},
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": "structlog",
                "filters": [] if level == "DEBUG" else ["routine", "outages"],
            }
        },
        "loggers": {"axes": {"level": "WARNING"}},  # every sign-in would be three lines
        "root": {"handlers": ["stderr"], "level": level},
    }


def configure_logging(*, level: str, style: str) -> None:
    """Let every record of this process leave so."""
    logging.config.dictConfig(logging_config(level=level, style=style))
    logging.captureWarnings(style == "json")
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_EVERY_RECORD,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def _rendering(style: str) -> list[structlog.typing.Processor]:
    if style == "json":
        return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    # Plain tracebacks: the pretty ones print local variables, and passwords among them.
    return [structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)]


def say_as_object(text: str, _stream: object = None) -> None:
    """Print what Celery says of itself in a handler of a signal, where no logger may be asked: its lock may be held."""
    said = {
        "event": text.strip(),
        "level": "info",
        "logger": "celery.apps.worker",
        "timestamp": datetime.now(UTC).isoformat(),
    }
    os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, f"{json.dumps(said)}\n".encode())
