"""``/api/v1/events/``: what happened to the experiments and reports that the caller may see."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import Cursor
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api.rest import schema
from dashboard.api.rest.fields import RowSerializer
from dashboard.api.rest.filtering import refuse_unknown
from dashboard.api.rest.pagination import CursorPages
from dashboard.api.rest.view_sets import ListViewSet
from dashboard.api.trials.rows import Gone
from experiments.access import visible_events
from experiments.models import Event
from experiments.selectors import events


class EventPages(CursorPages):
    """Refuses the cursor of who slept longer than events are kept: a page could lack what is forgotten, and not say so."""

    def decode_cursor(self, request: Request) -> Cursor | None:
        cursor = super().decode_cursor(request)
        if cursor is None or cursor.position is None or not settings.EVENT_DAYS:
            return cursor
        oldest = Event.objects.kept().order_by("pk").values_list("pk", flat=True).first()
        if oldest is None or int(cursor.position) < oldest:
            days = settings.EVENT_DAYS
            raise Gone(f"This cursor is older than the events of {days} days, which are kept: begin anew without it.")
        return cursor


class EventSerializer(RowSerializer[Event]):
    """One event. `url` is the page to look at, without the address of the installation."""

    title = serializers.SerializerMethodField(help_text="The experiment or report that it happened to.")
    sentence = serializers.SerializerMethodField(help_text="What happened; of an experiment that ended its answer.")
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
    """What happened."""

    queryset = Event.objects.none()
    serializer_class = EventSerializer
    pagination_class = EventPages
    list_parameters = ("kind",)

    def get_queryset(self) -> Any:
        shown = events.with_subjects(visible_events(self.request.user))
        kind = self.request.query_params.get("kind", "")
        if kind and kind not in Event.Kind.values:
            raise ValidationError({"kind": [f"must be one of {', '.join(Event.Kind.values)}, not {kind[:40]!r}"]})
        return shown.filter(kind=kind) if kind else shown

    @extend_schema(
        parameters=[OpenApiParameter("kind", str, enum=Event.Kind.values, description="Only events of this kind.")],
        responses={200: EventSerializer(many=True), **schema.errors(400, 404, 410)},
    )
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Events, newest first, paged by cursor."""
        refuse_unknown(request, {"cursor", "limit", "kind"})
        return super().list(request, *args, **kwargs)
