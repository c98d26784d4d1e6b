"""Pages of lists: ``limit`` and ``offset``, both bounded."""

from __future__ import annotations

from typing import Final

from rest_framework.exceptions import ValidationError
from rest_framework.pagination import LimitOffsetPagination
from rest_framework.request import Request

_LAST_OFFSET: Final = 2**31 - 1


class Pagination(LimitOffsetPagination):
    """At most 500 rows at a time."""

    default_limit = 50
    max_limit = 500

    def get_limit(self, request: Request) -> int | None:
        require_whole(request, "limit")
        return super().get_limit(request)

    def get_offset(self, request: Request) -> int:
        require_whole(request, "offset")
        # PostgreSQL refuses an offset beyond 64 bits, where an empty page is meant.
        return min(super().get_offset(request), _LAST_OFFSET)


def require_whole(request: Request, name: str) -> None:
    """Raise ValidationError for what is no whole number: a misspelt one would answer with another page than was meant."""
    text = request.query_params.get(name, "0").strip()
    if not (text.isascii() and text.lstrip("+-").isdecimal()):
        raise ValidationError({name: [f"must be a whole number, not {text[:40]!r}"]})
