"""Pages of lists: bounded ``limit`` and ``offset``, or ``cursor``."""

from __future__ import annotations

import re
from typing import Any, Final

from django.db.models import QuerySet
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.pagination import Cursor, CursorPagination, LimitOffsetPagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from dashboard.requests.keyset import InvalidPosition, Listing, slice_of

MOST: Final = 500
FURTHEST: Final = 10_000
"""A limit, as the database reads all rows before an offset."""
_POSITION: Final = re.compile(r"[0-9]{1,19}")
_NO_CURSOR: Final = "is not one that a page gave as next or previous"
_CURSOR: Final = {
    "name": "cursor",
    "required": False,
    "in": "query",
    "description": "Empty for the first page, then as in `next`: pages of any depth that new rows do not shift, without `count`.",
    "schema": {"type": "string"},
}


class _ByKeys:
    """Rows far down a list, by keys, so that earlier rows need no joins."""

    def __init__(self, rows: QuerySet[Any]) -> None:
        self._rows = rows

    def count(self) -> int:
        return self._rows.count()

    def __getitem__(self, page: slice) -> QuerySet[Any]:
        keys = list(self._rows.values_list("pk", flat=True)[page])
        return self._rows.filter(pk__in=keys)


class CursorPages(CursorPagination):
    """Pages by cursor, which new rows do not shift, of at most 500 rows."""

    page_size = 50
    max_page_size = MOST
    page_size_query_param = "limit"

    def get_page_size(self, request: Request) -> int | None:
        require_whole(request, "limit")
        return super().get_page_size(request)

    def get_ordering(self, request: Request, queryset: QuerySet[Any], view: Any) -> tuple[str, ...]:
        return (_order(view),)

    def decode_cursor(self, request: Request) -> Cursor | None:
        try:
            cursor: Cursor | None = super().decode_cursor(request)
        except NotFound:
            raise ValidationError({"cursor": [_NO_CURSOR]}) from None
        if cursor is not None and cursor.position is not None and not _POSITION.fullmatch(str(cursor.position)):
            raise ValidationError({"cursor": [_NO_CURSOR]})
        return cursor


class _ListingPages:
    """Pages of a listing by cursor: ``after.POSITION`` or ``before.POSITION``."""

    def __init__(self, listing: Listing, request: Request, limit: int) -> None:
        if "offset" in request.query_params:
            raise ValidationError({"offset": ["is not possible in the order of a metric: follow `next`"]})
        side, _, position = request.query_params.get("cursor", "").strip().partition(".")
        if side not in ("", "after", "before") or bool(side) != bool(position):
            raise ValidationError({"cursor": [_NO_CURSOR]})
        try:
            sides = {"after": "", "before": "", side or "after": position}
            self.page = slice_of(listing, after=sides["after"], before=sides["before"], most=limit)
        except InvalidPosition:
            raise ValidationError({"cursor": [_NO_CURSOR]}) from None
        self._address = request.build_absolute_uri()

    def get_paginated_response(self, data: Any) -> Response:
        """Return the rows with the addresses of the pages beside them, or null."""
        neighbours = {"next": ("after", self.page.later), "previous": ("before", self.page.earlier)}
        addresses = {
            name: replace_query_param(self._address, "cursor", f"{side}.{position}") if position else None
            for name, (side, position) in neighbours.items()
        }
        return Response({**addresses, "results": data})


class Pagination(LimitOffsetPagination):
    """Pages of at most 500 rows by offset, or by ``cursor`` if requested."""

    default_limit = 50
    max_limit = MOST

    def __init__(self) -> None:
        self._pages: CursorPages | _ListingPages | None = None

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> Any:
        """Return the page of a queryset or `Listing`. Raise ValidationError."""
        if isinstance(queryset, Listing):
            self._pages = _ListingPages(queryset, request, self.get_limit(request) or self.default_limit)
            return self._pages.page.rows
        if "cursor" not in request.query_params:
            far = self.get_offset(request) > MOST and isinstance(queryset, QuerySet)
            rows: Any = _ByKeys(queryset) if far else queryset
            return super().paginate_queryset(rows, request, view)
        if not _order(view):
            raise ValidationError({"cursor": ["this list is short: it takes limit and offset"]})
        for name in ("offset", "ordering"):
            if name in request.query_params:
                raise ValidationError({name: ["cannot be given with cursor, whose pages follow one another"]})
        self._pages = CursorPages()
        return self._pages.paginate_queryset(queryset, request, view)

    def get_paginated_response(self, data: Any) -> Response:
        return super().get_paginated_response(data) if self._pages is None else self._pages.get_paginated_response(data)

    def get_limit(self, request: Request) -> int | None:
        require_whole(request, "limit")
        return super().get_limit(request)

    def get_offset(self, request: Request) -> int:
        require_whole(request, "offset")
        offset = super().get_offset(request)
        if offset > FURTHEST:
            raise ValidationError({"offset": [f"is at most {FURTHEST}: cursor= leads through longer lists"]})
        return offset

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        page_schema = super().get_paginated_response_schema(schema)
        page_schema["required"] = ["results"]
        return page_schema

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        counted = super().get_schema_operation_parameters(view)
        for parameter in counted:
            if parameter["name"] == "offset":
                parameter["schema"] |= {"maximum": FURTHEST}
        return [*counted, _CURSOR] if _order(view) else counted


def _order(view: Any) -> str:
    """Return the sort key of pages by cursor; "" for lists without a model."""
    return str(getattr(view, "cursor_ordering", "-pk"))


def require_whole(request: Request, name: str) -> None:
    """Raise ValidationError unless the value of ``name`` is a whole number."""
    text = request.query_params.get(name, "0").strip()
    if not (text.isascii() and text.lstrip("+-").isdecimal()):
        raise ValidationError({name: [f"must be a whole number, not {text[:40]!r}"]})
