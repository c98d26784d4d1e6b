"""``/api/v1/changes/``: who changed what, for maintainers of their project and superusers of everything."""

from __future__ import annotations

from typing import Any, Final

from auditlog.models import LogEntry
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound, PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api.rest import schema
from dashboard.api.rest.view_sets import ListViewSet
from experiments.access import may_manage, sees_everything, visible_projects
from experiments.models.changes import changes

_ACTIONS: Final = {LogEntry.Action.CREATE: "made", LogEntry.Action.UPDATE: "changed", LogEntry.Action.DELETE: "deleted"}


class ChangeSerializer(serializers.Serializer[Any]):
    """One change. `who` is null where no person was signed in: a command, a worker."""

    at = serializers.DateTimeField(source="timestamp")
    who = serializers.CharField(source="actor.username", allow_null=True, default=None)
    kind = serializers.CharField(source="content_type.model")
    what = serializers.CharField(source="object_repr")
    action = serializers.SerializerMethodField()
    changes = serializers.DictField(source="changes_dict", help_text="Field: what it was and what it is.")

    def get_action(self, entry: Any) -> str:
        return _ACTIONS.get(entry.action, "seen")


class ChangeViewSet(ListViewSet[Any]):
    """The log of changes."""

    serializer_class = ChangeSerializer
    queryset = LogEntry.objects.none()
    list_parameters = ("project",)

    @extend_schema(
        parameters=[OpenApiParameter("project", str, description="Slug of a project; only superusers leave it out.")],
        responses={200: ChangeSerializer(many=True), **schema.errors(400, 403, 404)},
    )
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Changes by people, newest first; what trials do is told by them."""
        return super().list(request, *args, **kwargs)

    def get_queryset(self) -> Any:
        slug = self.request.query_params.get("project", "")
        if not slug:
            if not sees_everything(self.request.user):
                raise PermissionDenied("Name one of your projects: only superusers see the changes of all.")
            return changes()
        project = visible_projects(self.request.user).filter(slug=slug).first() if "\0" not in slug else None
        if project is None:
            raise NotFound(f"There is no project {slug!r}, or you are not a member of it.")
        if not may_manage(self.request.user, project):
            raise PermissionDenied("Only maintainers of the project see who changed what.")
        return changes(project)
