"""Logging: structlog and the standard library share one handler on standard error."""

from __future__ import annotations

import io
import json
import logging.config
import os
import re
import sys
from datetime import UTC, datetime
from typing import Any, Final, TextIO

import structlog

from experiments.common import outage

_EVERY_RECORD: Final[tuple[structlog.typing.Processor, ...]] = (
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.StackInfoRenderer(),
)

_CONTROLS: Final = re.compile(r"[\0-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]")


class Routine(logging.Filter):
    """Drops routine records: the periodic sweep and successful health checks."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return False for routine records of level INFO."""
        if record.levelno != logging.INFO:
            return True
        if record.name == "gunicorn.access":
            atoms: Any = record.args
            return not (str(atoms["U"]).endswith("/healthz") and str(atoms["s"]) == "200")
        return not (record.name.startswith("celery.") and "workers.tasks.sweep" in record.getMessage())


class Outages(logging.Filter):
    """Drops errors of an outage, which experiments/common/outage.py logs."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return False for an outage; Celery passes the error as an argument."""
        arguments = record.args if isinstance(record.args, tuple) else ()
        errors = [(record.exc_info or (None, None))[1], *arguments]
        return not any(outage.note(error) for error in errors if isinstance(error, BaseException))


class Refusals(logging.Filter):
    """Removes tracebacks of requests that Django refuses: the line has the reason."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True."""
        is_refused = record.name == "django.request" and record.levelno < logging.ERROR
        if is_refused or record.name.startswith("django.security"):
            record.exc_info = None
        return True


def logging_config(*, level: str, style: str) -> dict[str, Any]:
    """Return a configuration for `logging.config`; `style` is `console` or `json`."""
    formatter = {
        "()": structlog.stdlib.ProcessorFormatter,
        "foreign_pre_chain": _EVERY_RECORD,
        "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_rendering(style)],
    }
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"structlog": formatter},
        "filters": {"routine": {"()": Routine}, "outages": {"()": Outages}, "refusals": {"()": Refusals}},
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": "structlog",
                "filters": [] if level == "DEBUG" else ["routine", "outages", "refusals"],
            }
        },
        "loggers": {"axes": {"level": "WARNING"}},  # three lines per sign-in
        "root": {"handlers": ["stderr"], "level": level},
    }


def configure_logging(*, level: str, style: str) -> None:
    """Configure logging of this process."""
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
    # Plain tracebacks: rich ones print local variables, such as passwords.
    return [
        _escape_controls,
        structlog.dev.ConsoleRenderer(colors=False, exception_formatter=_print_traceback),
    ]


def _escape_controls(_logger: Any, _method: str, event_dict: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Escape the message, which may quote a visitor; the renderer escapes the values."""
    return {**event_dict, "event": _escaped(str(event_dict["event"]))}


def _print_traceback(stream: TextIO, exc_info: structlog.typing.ExcInfo) -> None:
    plain = io.StringIO()
    structlog.dev.plain_traceback(plain, exc_info)
    stream.write(_escaped(plain.getvalue()))


def _escaped(text: str) -> str:
    """Return the text without control characters; no further line looks like a record."""
    return _CONTROLS.sub(lambda match: f"\\x{ord(match[0]):02x}", text).replace("\n", "\n  ")


def print_as_json(text: str, _stream: object = None) -> None:
    """Print a message of a signal handler as JSON; a logger's lock may be held."""
    record = {
        "event": text.strip(),
        "level": "info",
        "logger": "celery.apps.worker",
        "timestamp": datetime.now(UTC).isoformat(),
    }
    os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, f"{json.dumps(record)}\n".encode())
