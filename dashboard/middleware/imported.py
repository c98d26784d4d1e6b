"""Answers of pages and REST if tables of imported trials cannot be shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import structlog
from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase

from experiments.files import ImportedTables

LEFT_OUT: Final = "Tables of imported trials are left out here: they have values that no version of Rankwire writes."
_OF_VALUES: Final = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError, MemoryError)
"""Errors of values with another form; refusals and outages are others."""

log = structlog.get_logger()


class ImportedTablesMiddleware:
    """Answers once more without the tables of imported trials if reading them fails.

    The hashes of an imported file show that it was not changed, not that a program wrote it.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with ImportedTables.noted():
            return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> Any:
        """Return the answer without the tables; None for errors that they do not explain."""
        match, tables = request.resolver_match, ImportedTables.present()
        is_read = request.method in ("GET", "HEAD") and tables is not None and tables.were_read
        if match is None or not is_read or not isinstance(error, _OF_VALUES):
            return None
        log.warning("imported_tables_left_out", path=request.path, error=repr(error)[:300])
        if "/api/" not in request.path and not request.headers.get("HX-Request"):
            messages.warning(request, LEFT_OUT)
        with ImportedTables.noted(are_left_out=True):
            response: Any = match.func(request, *match.args, **match.kwargs)
            return response.render() if hasattr(response, "render") else response
