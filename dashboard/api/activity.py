"""``/api/v1/changes/`` and ``events/``: change log and events."""

from __future__ import annotations

from typing import Any, Final

from auditlog.models import LogEntry
from django.conf import settings
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound, PermissionDenied, ValidationError
from rest_framework.pagination import Cursor
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api.rest import schema
from dashboard.api.rest.fields import RowSerializer
from dashboard.api.rest.filtering import ListViewSet, refuse_unknown
from dashboard.api.rest.pagination import CursorPages
from dashboard.api.trials.rows import Gone
from experiments.access import may_manage, sees_everything, visible_events, visible_projects
from experiments.models import Event
from experiments.models.changes import changes
from experiments.selectors import events

_ACTIONS: Final = {LogEntry.Action.CREATE: "made", LogEntry.Action.UPDATE: "changed", LogEntry.Action.DELETE: "deleted"}


class ChangeSerializer(serializers.Serializer[Any]):
    """One change; `who` is null for changes by commands and workers."""

    at = serializers.DateTimeField(source="timestamp")
    who = serializers.CharField(source="actor.username", allow_null=True, default=None)
    kind = serializers.CharField(source="content_type.model")
    what = serializers.CharField(source="object_repr")
    action = serializers.SerializerMethodField()
    changes = serializers.DictField(source="changes_dict", help_text="Field: old value and new value.")

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
        """List changes by users, newest first; trials record their own changes."""
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
            raise PermissionDenied("Only maintainers of the project see its change log.")
        return changes(project)


class EventPages(CursorPages):
    """Pages by cursor that refuse cursors older than the stored events."""

    def decode_cursor(self, request: Request) -> Cursor | None:
        cursor = super().decode_cursor(request)
        if cursor is None or cursor.position is None or not settings.EVENT_DAYS:
            return cursor
        oldest = Event.objects.within_retention().order_by("pk").values_list("pk", flat=True).first()
        if oldest is None or int(cursor.position) < oldest:
            days = settings.EVENT_DAYS
            raise Gone(
                f"This cursor is older than {days} days, the period that events are stored: start again without it."
            )
        return cursor


class EventSerializer(RowSerializer[Event]):
    """One event; `url` is the path of its page."""

    title = serializers.SerializerMethodField(help_text="The experiment or report that it happened to.")
    sentence = serializers.SerializerMethodField(help_text="A sentence; for an experiment that ended, its answer.")
    url = serializers.SerializerMethodField()
    project = serializers.SerializerMethodField()
    experiment = serializers.CharField(source="experiment.slug", allow_null=True, default=None)
    trial = serializers.IntegerField(source="trial_id", allow_null=True)
    report = serializers.IntegerField(source="report_id", allow_null=True)

    class Meta:
        model = Event
        fields = ("id", "kind", "at", "title", "sentence", "url", "project", "experiment", "trial", "report")

    def get_title(self, event: Event) -> str:
        return events.title(event)

    def get_sentence(self, event: Event) -> str:
        return events.sentence(event)

    def get_url(self, event: Event) -> str:
        return events.path(event)

    def get_project(self, event: Event) -> str | None:
        subject = event.experiment or event.report
        return subject.project.slug if subject is not None else None


class EventViewSet(ListViewSet[Event]):
    """Events of visible experiments and reports."""

    queryset = Event.objects.none()
    serializer_class = EventSerializer
    pagination_class = EventPages
    list_parameters = ("kind",)

    def get_queryset(self) -> Any:
        rows = events.with_subjects(visible_events(self.request.user))
        kind = self.request.query_params.get("kind", "")
        if kind and kind not in Event.Kind.values:
            raise ValidationError({"kind": [f"must be one of {', '.join(Event.Kind.values)}, not {kind[:40]!r}"]})
        return rows.filter(kind=kind) if kind else rows

    @extend_schema(
        parameters=[OpenApiParameter("kind", str, enum=Event.Kind.values, description="Only events of this kind.")],
        responses={200: EventSerializer(many=True), **schema.errors(400, 404, 410)},
    )
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """List events, newest first, paged by cursor."""
        refuse_unknown(request, {"cursor", "limit", "kind"})
        return super().list(request, *args, **kwargs)
