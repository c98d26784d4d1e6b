"""Pages of lists: ``limit`` and ``offset``, both bounded."""

from __future__ import annotations

from typing import Final

from rest_framework.pagination import LimitOffsetPagination
from rest_framework.request import Request

_LAST_OFFSET: Final = 2**31 - 1


class Pagination(LimitOffsetPagination):
    """At most 500 rows at a time."""

    default_limit = 50
    max_limit = 500

    def get_offset(self, request: Request) -> int:
        # PostgreSQL refuses an offset beyond 64 bits, where an empty page is meant.
        return min(super().get_offset(request), _LAST_OFFSET)
