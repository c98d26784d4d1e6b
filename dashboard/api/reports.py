"""``/api/v1/reports/``: reports with their Markdown and versions."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import mixins, serializers, viewsets
from rest_framework.exceptions import NotFound, PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api.rest import schema
from dashboard.api.rest.fields import RowSerializer
from dashboard.api.rest.filtering import StrictFilterBackend, clean, refuse_unknown
from dashboard.api.rest.parsers import validated
from dashboard.filters import ReportFilter
from dashboard.reports.markdown import one_ending
from dashboard.reports.parts import Source
from dashboard.reports.rendering import check_text, freeze
from experiments.access import may_write_reports, report_projects, visible_reports
from experiments.errors import FieldError, InvalidSpec
from experiments.models import Report, ReportVersion
from experiments.models.report import LONGEST_TEXT, LONGEST_TITLE

_LARGEST = 2**31 - 1
_VERSION = OpenApiParameter(
    "version",
    {"type": "integer", "minimum": 1, "maximum": _LARGEST},
    description="An earlier version; else the newest.",
)


_NOT_BLANK: Final = r"\S"
"""A pattern, because the OpenAPI document shows it."""


class VersionSerializer(RowSerializer[ReportVersion]):
    """A version without its text."""

    author = serializers.SlugRelatedField[Any](slug_field="username", read_only=True, allow_null=True)

    class Meta:
        model = ReportVersion
        fields: ClassVar = ["number", "note", "author", "created_at"]


class ReportSerializer(RowSerializer[Report]):
    """A report in lists; `version` is the number of its newest version."""

    url = serializers.HyperlinkedIdentityField(view_name="api:report-detail")
    page = serializers.CharField(source="get_absolute_url", read_only=True)
    project = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True)
    owner = serializers.SlugRelatedField[Any](slug_field="username", read_only=True, allow_null=True)

    class Meta:
        model = Report
        fields: ClassVar = ["id", "url", "page", "title", "project", "owner", "version", "created_at", "changed_at"]


class WholeReportSerializer(ReportSerializer):
    """A report with the Markdown of version `text_version`, and the list of versions."""

    text_version = serializers.SerializerMethodField()
    text = serializers.SerializerMethodField()
    versions = VersionSerializer(many=True, read_only=True)

    class Meta(ReportSerializer.Meta):
        fields: ClassVar = [*ReportSerializer.Meta.fields, "text_version", "text", "versions"]

    def get_text_version(self, report: Report) -> int:
        return int(self.context["version"].number)

    def get_text(self, report: Report) -> str:
        return str(self.context["version"].text)


class NewVersionSerializer(serializers.Serializer[Any]):
    """A new version, based on `version`: 409 if there is a newer one."""

    version = serializers.IntegerField(min_value=1, max_value=_LARGEST)
    title = serializers.RegexField(
        _NOT_BLANK, max_length=LONGEST_TITLE, required=False, help_text="Unchanged by default."
    )
    text = serializers.CharField(
        max_length=LONGEST_TEXT, allow_blank=True, trim_whitespace=False, help_text="Markdown."
    )
    note = serializers.CharField(max_length=LONGEST_TITLE, allow_blank=True, default="")
    anew = serializers.BooleanField(default=False, help_text="Refresh the data of frozen parts.")


class NewReportSerializer(serializers.Serializer[Any]):
    """A new report."""

    title = serializers.RegexField(_NOT_BLANK, max_length=LONGEST_TITLE)
    text = serializers.CharField(
        max_length=LONGEST_TEXT, allow_blank=True, trim_whitespace=False, help_text="Markdown."
    )
    project = serializers.SlugField(max_length=80, default="default")


class ReportViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Report]):
    """Reports that the caller may read."""

    serializer_class = ReportSerializer
    queryset = Report.objects.none()
    lookup_value_regex = "[0-9]{1,18}"
    filter_backends = (StrictFilterBackend,)
    filterset_class = ReportFilter

    def get_queryset(self) -> QuerySet[Report]:
        return visible_reports(self.request.user).select_related("project", "owner")

    @extend_schema(responses={200: ReportSerializer(many=True), **schema.errors(400)})
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """List reports, last saved first."""
        return super().list(request, *args, **kwargs)

    @extend_schema(
        parameters=[_VERSION], responses={200: WholeReportSerializer, **schema.errors(400, 404)}, filters=False
    )
    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return one report with its text."""
        refuse_unknown(request, {"version"})
        report = self._report()
        number_text = clean(request, "version")
        if not number_text:
            return Response(self._whole(request, report, report.current))
        if not (number_text.isascii() and number_text.isdigit() and 0 < int(number_text[:12]) <= _LARGEST):
            raise InvalidSpec([FieldError("version", "is a whole number from 1")])
        version = report.versions.filter(number=int(number_text)).first()
        if version is None:
            raise NotFound(f"The report has no version {number_text}.")
        return Response(self._whole(request, report, version))

    @extend_schema(
        request=NewReportSerializer,
        responses={201: WholeReportSerializer, **schema.errors(400, 403, 409, 415)},
    )
    def create(self, request: Request) -> Response:
        """Create a report. Errors name the lines of parts of unknown experiments."""
        if not report_projects(request.user):
            raise PermissionDenied("Submitters and maintainers of a project write its reports.")
        values = validated(NewReportSerializer, request)
        project = next((option for option in report_projects(request.user) if option.slug == values["project"]), None)
        if project is None:
            words = f"there is no project {values['project']!r} in which you may write"
            raise InvalidSpec([FieldError("project", words)])
        text, source = one_ending(values["text"]), Source(request.user)
        check_text(text, source)
        report = Report.write(project, values["title"], text, freeze(text, source, {}), by=request.user)
        data = self._whole(request, report, report.current)
        return Response(data, status=201, headers={"Location": str(data["url"])})

    @extend_schema(
        request=NewVersionSerializer, responses={200: WholeReportSerializer, **schema.errors(400, 403, 404, 409, 415)}
    )
    def update(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Save a new version, based on version `version`."""
        report = self._report()
        if not may_write_reports(request.user, report.project):
            raise PermissionDenied("Submitters and maintainers of the project write its reports.")
        values, current = validated(NewVersionSerializer, request), report.current
        text, source = one_ending(values["text"]), Source(request.user)
        check_text(text, source, current.text)
        frozen = freeze(text, source, current.frozen, anew=values["anew"])
        title = values.get("title", report.title)
        version = report.revise(title, text, frozen, by=request.user, base=values["version"], note=values["note"])
        return Response(self._whole(request, report, version))

    def _report(self) -> Report:
        report = self.get_queryset().filter(pk=self.kwargs["pk"]).first()
        if report is None:
            raise NotFound
        return report

    def _whole(self, request: Request, report: Report, version: ReportVersion) -> dict[str, Any]:
        return dict(WholeReportSerializer(report, context={"request": request, "version": version}).data)
