"""View sets of REST: lists and rows whose lists refuse unknown query parameters."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

from django.db.models import Model
from rest_framework import mixins, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api.rest.filtering import PAGE, refuse_unknown

Row = TypeVar("Row", bound=Model, covariant=True)


class ListViewSet(mixins.ListModelMixin, viewsets.GenericViewSet[Row]):
    """A list in pages; ``list_parameters`` are its query parameters besides those of pages."""

    list_parameters: ClassVar[tuple[str, ...]] = ()

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        refuse_unknown(request, {*PAGE, *self.list_parameters})
        return super().list(request, *args, **kwargs)


class RowsViewSet(mixins.RetrieveModelMixin, ListViewSet[Row]):
    """A list in pages and each of its rows."""
