"""``/api/v1/people/``: who has an account, for superusers; and the caller's own."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.auth import get_user_model
from django.db.models import Q, QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import mixins, serializers, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api.protocol import schema
from dashboard.api.protocol.filtering import PAGE, refuse_unknown
from dashboard.people.people import KINDS, account_rows, called
from experiments.access import may_see_people
from experiments.models import Membership

_WORDS = OpenApiParameter("q", str, description="Words of the name or e-mail.")
_KIND = OpenApiParameter("kind", str, enum=[kind for kind in KINDS if kind], description="Only such accounts.")
_NAME = OpenApiParameter("name", str, OpenApiParameter.PATH, description="User name.")


class RoleSerializer(serializers.ModelSerializer[Membership]):
    """A role in a project; `by_group` where it came with a group of the identity provider."""

    project = serializers.CharField(source="project.slug", read_only=True)

    class Meta:
        model = Membership
        fields: ClassVar = ["project", "role", "by_group"]
        read_only_fields = fields


class PersonSerializer(serializers.ModelSerializer[Any]):
    """An account; `email` may be empty. Nobody signs in where `open` is false; `seen_at` is when a page of it was open last."""

    name = serializers.CharField(source="username", read_only=True)
    email = serializers.CharField(read_only=True)
    superuser = serializers.BooleanField(source="is_superuser", read_only=True)
    open = serializers.BooleanField(source="is_active", read_only=True)
    second_factor = serializers.SerializerMethodField()
    tokens = serializers.IntegerField(read_only=True)
    since = serializers.DateTimeField(source="date_joined", read_only=True)
    seen_at = serializers.DateTimeField(source="preferences.seen_at", read_only=True, allow_null=True)
    roles = RoleSerializer(source="memberships", many=True, read_only=True)

    class Meta:
        model = get_user_model()
        fields: ClassVar = [
            *("name", "email", "superuser", "open", "second_factor", "tokens", "since", "seen_at", "roles"),
        ]
        read_only_fields = fields

    def get_second_factor(self, person: Any) -> bool:
        return bool(person.factors)


class PersonViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Any]):
    """Accounts by name. They are made and changed in the browser, where links and questions are shown."""

    queryset = get_user_model()._default_manager.none()
    serializer_class = PersonSerializer
    lookup_field = "username"
    lookup_url_kwarg = "name"
    lookup_value_regex = "[^/]{1,150}"

    def get_queryset(self) -> QuerySet[Any]:
        if not may_see_people(self.request.user):
            raise PermissionDenied("Only superusers see who has an account, with a token for everything they may.")
        return account_rows()

    @extend_schema(parameters=[_WORDS, _KIND], responses={200: PersonSerializer(many=True), **schema.errors(400, 403)})
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Everybody who has an account, by name, with roles (superusers)."""
        refuse_unknown(request, {*PAGE, "q", "kind"})
        kind = request.query_params.get("kind", "")
        if kind not in KINDS:
            raise serializers.ValidationError({"kind": [f"There are no accounts that are called {kind!r}."]})
        rows = called(self.get_queryset(), request.query_params.get("q", "")).filter(KINDS[kind][1] or Q())
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    @extend_schema(parameters=[_NAME], responses={200: PersonSerializer, **schema.errors(403, 404)})
    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """One account with its roles (superusers)."""
        return super().retrieve(request, *args, **kwargs)

    @extend_schema(responses={200: PersonSerializer, **schema.errors(400)})
    @action(detail=False, methods=["get"])
    def me(self, request: Request) -> Response:
        """The caller's own account with its roles; of a token's owner the same."""
        refuse_unknown(request, set())
        return Response(self.get_serializer(account_rows().get(pk=request.user.pk)).data)
