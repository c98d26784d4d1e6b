"""Logs: structlog's and the standard library's records leave through one handler, on standard error."""

from __future__ import annotations

import logging.config
from typing import Any, Final

import structlog

_EVERY_RECORD: Final[tuple[structlog.typing.Processor, ...]] = (
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.StackInfoRenderer(),
)


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
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "structlog"}},
        "loggers": {"axes": {"level": "WARNING"}},  # every sign-in would be three lines
        "root": {"handlers": ["stderr"], "level": level},
    }


def configure_logging(*, level: str, style: str) -> None:
    """Let every record of this process leave so."""
    logging.config.dictConfig(logging_config(level=level, style=style))
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
