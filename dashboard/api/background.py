"""``/api/v1/tasks/``: background tasks of the caller, their progress and files."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, serializers
from rest_framework.exceptions import NotFound
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from dashboard.api.rest import schema
from dashboard.api.rest.fields import RowSerializer
from dashboard.api.rest.filtering import RowsViewSet
from dashboard.api.trials.rows import FileRenderer, Gone
from dashboard.background.exports import filename, may_fetch
from dashboard.requests import ranges
from experiments.access import only_project
from experiments.models import BackgroundTask


class BackgroundTaskSerializer(RowSerializer[BackgroundTask]):
    """One task; `file` is the URL of its result when it is done."""

    url = serializers.HyperlinkedIdentityField(view_name="api:task-detail")
    experiment = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True, allow_null=True)
    file = serializers.SerializerMethodField()

    class Meta:
        model = BackgroundTask
        fields: ClassVar = [
            *("id", "url", "kind", "title", "state", "experiment", "done", "total", "message"),
            *("asked_at", "begun_at", "ended_at", "file"),
        ]

    def get_file(self, task: BackgroundTask) -> str | None:
        return reverse("api:task-file", [task.pk], request=self.context.get("request")) if task.has_file else None


def accepted(task: BackgroundTask, request: Request) -> Response:
    """Return 202 with the URL of the task."""
    data = BackgroundTaskSerializer(task, context={"request": request}).data
    return Response(data, status=202, headers={"Location": str(data["url"])})


@extend_schema_view(
    destroy=extend_schema(
        description="End a task that waits or runs; delete the file of a finished task.",
        responses={204: None, **schema.errors(403, 404)},
    )
)
class BackgroundTaskViewSet(mixins.DestroyModelMixin, RowsViewSet[BackgroundTask]):
    """The caller's tasks; with a project token, those of such tokens."""

    serializer_class = BackgroundTaskSerializer
    queryset = BackgroundTask.objects.none()
    lookup_value_regex = "[0-9]{1,18}"

    def get_queryset(self) -> QuerySet[BackgroundTask]:
        user: Any = self.request.user
        tasks = BackgroundTask.objects.filter(owner=user).select_related("experiment").order_by("-pk")
        project = only_project(user)
        return tasks if project is None else tasks.filter(within=project)

    def perform_destroy(self, instance: BackgroundTask) -> None:
        instance.forget()

    @schema.row_action(
        "get",
        {
            (200, "application/octet-stream"): OpenApiTypes.BINARY,
            (206, "application/octet-stream"): OpenApiTypes.BINARY,
        },
        (404, 410, 416),
        parameters=[schema.RANGE],
        renderer_classes=[JSONRenderer, FileRenderer],
    )
    def file(self, request: Request, pk: str) -> HttpResponseBase:
        """Download the result; 410 if it expired or its projects are hidden."""
        task = self.get_object()
        if not task.has_file:
            raise NotFound("This task has no file, or not yet.")
        if not task.file.is_file() or not may_fetch(request.user, task):
            raise Gone("The file has expired; request it again.")
        return ranges.download(request, task.file, filename(task))
