"""``/api/v1/projects/``: the caller's projects, their members and roles."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.auth import get_user_model
from django.db.models import Prefetch, QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound, PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api.rest import schema
from dashboard.api.rest.fields import RowSerializer
from dashboard.api.rest.filtering import RowsViewSet
from dashboard.api.rest.parsers import validated
from experiments.access import may_manage, role_in, sees_everything, visible_projects
from experiments.library import PUBLISHED_PROJECT
from experiments.models import Membership, Project

_NAME = OpenApiParameter("name", str, OpenApiParameter.PATH, description="User name of the member.")


class MemberSerializer(serializers.ModelSerializer[Membership]):
    """A member; `by_group` if a group of the identity provider assigns the role."""

    name = serializers.CharField(source="user.username", read_only=True)
    role = serializers.ChoiceField(choices=Membership.Role.choices)

    class Meta:
        model = Membership
        fields: ClassVar = ["name", "role", "by_group"]
        read_only_fields: ClassVar = ["name", "by_group"]


class ProjectSerializer(RowSerializer[Project]):
    """A project; `role` is the caller's own, null for a superuser without membership."""

    role = serializers.SerializerMethodField()
    members = MemberSerializer(source="memberships", many=True, read_only=True)

    class Meta:
        model = Project
        fields: ClassVar = ["slug", "name", "role", "members"]

    def get_role(self, project: Project) -> str | None:
        user = self.context["request"].user
        return next(
            (membership.role for membership in project.memberships.all() if membership.user_id == user.pk), None
        )


class ProjectViewSet(RowsViewSet[Project]):
    """Projects that the caller is a member of; all projects for a superuser."""

    queryset = Project.objects.none()
    serializer_class = ProjectSerializer
    lookup_field = "slug"
    lookup_value_regex = "[-a-zA-Z0-9_]+"

    def get_queryset(self) -> QuerySet[Project]:
        visible = visible_projects(self.request.user).exclude(slug=PUBLISHED_PROJECT)
        # Sorted by name: the order of unsorted rows changes with updates.
        members = Membership.objects.select_related("user").order_by("user__username")
        return visible.prefetch_related(Prefetch("memberships", members)).order_by("slug")

    @extend_schema(responses={204: None, **schema.errors(403, 404, 409)})
    def destroy(self, request: Request, slug: str) -> Response:
        """Delete a project without experiments and reports (superusers)."""
        project: Project = self.get_object()
        if not sees_everything(request.user) or not may_manage(request.user, project):
            raise PermissionDenied("Only superusers may delete projects.")
        project.remove()
        return Response(status=204)

    @schema.row_action(
        "put",
        ProjectSerializer,
        (400, 403, 404, 409, 415),
        request=MemberSerializer,
        parameters=[_NAME],
        url_path=r"members/(?P<name>[^/]{1,150})",
        url_name="member",
    )
    def member(self, request: Request, slug: str, name: str) -> Response:
        """Set the role of a user. A project always has a maintainer."""
        project = self._managed(request)
        project.set_role(_person(name), validated(MemberSerializer, request)["role"])
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(parameters=[_NAME], responses={204: None, **schema.errors(403, 404, 409)})
    @member.mapping.delete
    def dismiss(self, request: Request, slug: str, name: str) -> Response:
        """End a membership; users may end their own."""
        is_own = name == request.user.get_username() and role_in(request.user, self.get_object()) is not None
        project = self.get_object() if is_own else self._managed(request)
        if not project.dismiss(_person(name)):
            raise NotFound(f"{name} is not a member.")
        return Response(status=204)

    def _managed(self, request: Request) -> Project:
        project: Project = self.get_object()
        if not may_manage(request.user, project):
            raise PermissionDenied("Only maintainers of the project change roles.")
        return project


def _person(name: str) -> Any:
    person = get_user_model().objects.filter(username=name, is_active=True).first()
    if person is None:
        raise NotFound(f"There is no account {name}.")
    return person
