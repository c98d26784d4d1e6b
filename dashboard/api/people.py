"""``/api/v1/people/``: accounts for superusers, and the caller's own account."""

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

from dashboard.api.rest import schema
from dashboard.api.rest.fields import RowSerializer
from dashboard.api.rest.filtering import PAGE, refuse_unknown
from dashboard.api.rest.parsers import validated
from dashboard.people.people import (
    CHANGES,
    KINDS,
    AccountForm,
    account_rows,
    do,
    forbid_caching,
    matching,
    new_account_link,
    password_link_of,
)
from experiments.access import may_see_people, only_project
from experiments.models import Membership

_WORDS = OpenApiParameter("q", str, description="Words of the name or e-mail.")
_KIND = OpenApiParameter("kind", str, enum=[kind for kind in KINDS if kind], description="Only such accounts.")
_CHANGE = OpenApiParameter("change", str, OpenApiParameter.PATH, enum=list(CHANGES), description="The change.")
_NAME = OpenApiParameter("name", str, OpenApiParameter.PATH, description="User name.")


class RoleSerializer(RowSerializer[Membership]):
    """A role in a project; `by_group` if a group of the identity provider assigns it."""

    project = serializers.CharField(source="project.slug", read_only=True)

    class Meta:
        model = Membership
        fields: ClassVar = ["project", "role", "by_group"]


class PersonSerializer(RowSerializer[Any]):
    """An account; `seen_at` is the time of its last page view."""

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

    def get_second_factor(self, person: Any) -> bool:
        return bool(person.factors)


class NewPersonSerializer(serializers.Serializer[Any]):
    """A new account, with or without a role in a project."""

    name = serializers.RegexField(r"^[\w.@+-]+$", max_length=150, trim_whitespace=False)
    email = serializers.EmailField(required=False, default="", allow_blank=True)
    project = serializers.SlugField(required=False, default="", allow_blank=True)
    role = serializers.ChoiceField(choices=Membership.Role.choices, default=Membership.Role.SUBMITTER)


class PasswordLinkSerializer(serializers.Serializer[Any]):
    """A link to set the password of the account `name`; it is not stored."""

    name = serializers.CharField()
    link = serializers.CharField()


class PersonViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Any]):
    """Accounts by name; changes follow the rules of the page *Users* and are logged."""

    queryset = get_user_model()._default_manager.none()
    serializer_class = PersonSerializer
    lookup_field = "username"
    lookup_url_kwarg = "name"
    lookup_value_regex = "[^/]{1,150}"

    def get_queryset(self) -> QuerySet[Any]:
        if not may_see_people(self.request.user):
            raise PermissionDenied("Only superusers see accounts, with a token without limits.")
        return account_rows()

    @extend_schema(parameters=[_WORDS, _KIND], responses={200: PersonSerializer(many=True), **schema.errors(400, 403)})
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """List all accounts by name, with roles (superusers)."""
        refuse_unknown(request, {*PAGE, "q", "kind"})
        kind = request.query_params.get("kind", "")
        if kind not in KINDS:
            raise serializers.ValidationError({"kind": [f"There are no accounts that are called {kind!r}."]})
        rows = matching(self.get_queryset(), request.query_params.get("q", "")).filter(KINDS[kind][1] or Q())
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    @extend_schema(parameters=[_NAME], responses={200: PersonSerializer, **schema.errors(403, 404)})
    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return one account with its roles (superusers)."""
        return super().retrieve(request, *args, **kwargs)

    @extend_schema(request=NewPersonSerializer, responses={201: PasswordLinkSerializer, **schema.errors(400, 403, 415)})
    def create(self, request: Request) -> Response:
        """Create an account; the answer has a link to set its password (superusers)."""
        self.get_queryset()
        values = validated(NewPersonSerializer, request)
        # The role has a default, which is none without a project; one that was sent needs a project.
        role = values["role"] if values["project"] or "role" in request.data else ""
        form = AccountForm({"username": values["name"], **values, "role": role})
        if not form.is_valid():
            messages = {
                "name" if field == "username" else field: [str(error) for error in errors]
                for field, errors in form.errors.items()
            }
            raise serializers.ValidationError(messages)
        user = form.make()
        return _linked(user, new_account_link(request, user), status=201)

    @schema.row_action("post", PasswordLinkSerializer, (403, 404, 409), parameters=[_NAME], url_path="password-link")
    def password_link(self, request: Request, name: str) -> Response:
        """Create a link to set a new password of an open account (superusers)."""
        user = self.get_object()
        return _linked(user, password_link_of(request, user))

    @schema.row_action(
        "post",
        PersonSerializer,
        (403, 404, 409),
        parameters=[_NAME, _CHANGE],
        operation_id="people_change",
        url_path=f"(?P<change>{'|'.join(CHANGES)})",
    )
    def change(self, request: Request, name: str, change: str) -> Response:
        """Close, reopen or unlock an account, reset its second factor, change superusers.

        409 if the account does not allow the change, and for the last superuser.
        """
        do(change, self.get_object())
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(responses={200: PersonSerializer, **schema.errors(400)})
    @action(detail=False, methods=["get"])
    def me(self, request: Request) -> Response:
        """Return the caller's own account with its roles; of a token in its project."""
        refuse_unknown(request, set())
        account = account_rows(only_project(request.user)).get(pk=request.user.pk)
        return Response(self.get_serializer(account).data)


def _linked(user: Any, link: str, *, status: int = 200) -> Response:
    """The one answer that has the link."""
    return forbid_caching(Response({"name": user.get_username(), "link": link}, status=status))
