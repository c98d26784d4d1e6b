"""``/api/v1/clusters/``, ``workloads/`` and ``programs/``."""

from __future__ import annotations

from typing import Any, ClassVar, Final, cast

from django.db.models import Count, Max, Q, QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers, viewsets
from rest_framework.exceptions import NotFound, PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api.rest import schema
from dashboard.api.rest.fields import RowSerializer
from dashboard.api.rest.filtering import PAGE, RowsViewSet, refuse_unknown
from dashboard.api.rest.parsers import StrictJsonParser, YamlParser, YamlText
from dashboard.api.rest.schema import in_place
from dashboard.panels.cluster.rows import ClusterRow
from experiments import workloads
from experiments.access import (
    may_register_programs,
    may_replace_program,
    may_set_up_clusters,
    may_test_clusters,
    visible_clusters,
)
from experiments.models import ACTIVE, Cluster, ClusterTest, Program, State
from experiments.models.cluster_check import without_details
from experiments.workloads import WorkloadDefinition
from experiments.workloads.definition import ProgramDefinition
from workers import queue

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


class StepSerializer(serializers.Serializer[Any]):
    """One step of a check of a cluster."""

    name = serializers.CharField()
    state = serializers.ChoiceField(choices=["ok", "warning", "problem", "skipped"])
    value = serializers.CharField()
    seen = serializers.CharField()
    remedy = serializers.CharField()
    commands = serializers.ListField(child=serializers.CharField())


class ClusterTestSerializer(RowSerializer[ClusterTest]):
    """The last check of a cluster; `ended_at` is null until it ends.

    `begun_at` is null while it waits for the hosts. `seen`, `remedy` and `commands` are empty without the right to check
    clusters."""

    steps = StepSerializer(many=True, read_only=True)
    outdated = serializers.BooleanField(source="is_outdated", read_only=True)

    class Meta:
        model = ClusterTest
        fields: ClassVar = ["asked_at", "begun_at", "ended_at", "trying", "outdated", "steps"]

    def to_representation(self, test: ClusterTest) -> dict[str, Any]:
        fields = super().to_representation(test)
        if test.is_waiting:
            return fields | {"begun_at": None, "ended_at": None, "steps": []}
        if not self._may_test():
            fields["steps"] = without_details(test.steps)
        return fields

    def _may_test(self) -> bool:
        """Return whether the user may check clusters, decided once a request."""
        context = cast("dict[str, Any]", self.context)
        if "may_test" not in context:
            context["may_test"] = may_test_clusters(context["request"].user)
        return bool(context["may_test"])


class ClusterSerializer(RowSerializer[Cluster]):
    """A cluster; `settings` is null without the right to change them."""

    url = serializers.HyperlinkedIdentityField(view_name="api:cluster-detail", lookup_field="slug")
    state = serializers.SerializerMethodField()
    most_hosts = serializers.SerializerMethodField()
    facts = serializers.DictField(read_only=True)
    settings = serializers.SerializerMethodField()
    settings_errors = serializers.SerializerMethodField()
    active = serializers.IntegerField(read_only=True)
    queued = serializers.IntegerField(read_only=True)
    finished = serializers.IntegerField(read_only=True)
    last_end = serializers.DateTimeField(read_only=True, allow_null=True)
    test = serializers.SerializerMethodField()

    class Meta:
        model = Cluster
        fields: ClassVar = [
            *("slug", "url", "name", "kind", "enabled", "state", "most_hosts", "facts", "settings", "settings_errors"),
            *("active", "queued", "finished", "last_end", "test"),
        ]

    @extend_schema_field(
        serializers.ChoiceField(choices=["ready", "busy", "check-failed", "off", "wrong", "elsewhere"])
    )
    def get_state(self, cluster: Any) -> str:
        return ClusterRow(cluster, cluster.active, cluster.queued, cluster.finished, cluster.last_end).state

    def get_most_hosts(self, cluster: Cluster) -> int | None:
        return None if cluster.settings_errors else cluster.most_hosts

    @extend_schema_field(serializers.DictField(allow_null=True))
    def get_settings(self, cluster: Cluster) -> dict[str, Any] | None:
        return cluster.settings if may_set_up_clusters(self.context["request"].user) else None

    def get_settings_errors(self, cluster: Cluster) -> list[str]:
        return [str(error) for error in cluster.settings_errors]

    @extend_schema_field(ClusterTestSerializer(allow_null=True))
    def get_test(self, cluster: Any) -> Any:
        return ClusterTestSerializer(cluster.test, context=self.context).data if hasattr(cluster, "test") else None


class ClusterViewSet(RowsViewSet[Cluster]):
    """Clusters, those that take experiments first."""

    serializer_class = ClusterSerializer
    lookup_field = "slug"
    lookup_value_regex = "[-a-zA-Z0-9_]+"

    def get_queryset(self) -> QuerySet[Cluster]:
        return visible_clusters(self.request.user).select_related("test").order_by("-enabled", "slug").annotate(
            active=Count("trials", filter=Q(trials__state__in=ACTIVE)),
            queued=Count("trials", filter=Q(trials__state=State.QUEUED)),
            finished=Count("trials", filter=Q(trials__state=State.FINISHED)),
            last_end=Max("trials__ended_at"),
        )  # fmt: skip

    @schema.row_action("post", {202: ClusterSerializer}, (403, 404))
    def test(self, request: Request, slug: str) -> Response:
        """Check the cluster after its running trial; its field `test` has the result."""
        cluster = self.get_object()
        if not may_test_clusters(request.user):
            raise PermissionDenied("Only maintainers and users who set up clusters may check them.")
        if cluster.elsewhere:
            raise PermissionDenied("This cluster belongs to another installation: it cannot be checked here.")
        queue.request_check(cluster)
        return Response(self.get_serializer(self.get_object()).data, status=202)


class ParameterSerializer(serializers.Serializer[Any]):
    """A typed parameter; `schema` is its JSON schema."""

    name = serializers.CharField()
    title = serializers.CharField()
    help = serializers.CharField()
    unit = serializers.CharField()
    schema = serializers.DictField()


class FigureSerializer(serializers.Serializer[Any]):
    """A figure of merit."""

    id = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # a field, not the option of fields
    unit = serializers.CharField()
    direction = serializers.ChoiceField(choices=["lower", "higher", "neutral"])
    definition = serializers.CharField()


class WorkloadSerializer(serializers.Serializer[Any]):
    """A workload; `missing` lists Debian packages to install."""

    slug = serializers.CharField()
    title = serializers.CharField()
    summary = serializers.CharField()
    restricted = serializers.BooleanField()
    decides = serializers.CharField()
    missing = serializers.ListField(child=serializers.CharField())
    parameters = ParameterSerializer(many=True)
    parameters_schema = serializers.DictField(
        help_text="JSON schema (draft 2020-12) of the field `parameters` of a specification."
    )
    figures = FigureSerializer(many=True)


class WorkloadViewSet(viewsets.GenericViewSet[Any]):
    """Workloads in the order of the picker."""

    serializer_class = WorkloadSerializer
    cursor_ordering = ""  # they are in memory
    queryset = Cluster.objects.none()
    lookup_field = "slug"
    lookup_value_regex = "[-a-zA-Z0-9_]+"

    @extend_schema(
        parameters=[OpenApiParameter("limit", int), OpenApiParameter("offset", int)],
        responses={200: WorkloadSerializer(many=True), **schema.errors(400)},
    )
    def list(self, request: Request) -> Response:
        """List all workloads with parameters and figures of merit."""
        refuse_unknown(request, PAGE)
        page: Any = self.paginate_queryset([_as_data(workload) for workload in workloads.registry()])
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    @extend_schema(
        parameters=[OpenApiParameter("slug", {"type": "string", "pattern": "^[-a-zA-Z0-9_]+$"}, OpenApiParameter.PATH)],
        responses={200: WorkloadSerializer, **schema.errors(404)},
    )
    def retrieve(self, request: Request, slug: str) -> Response:
        """Return one workload."""
        workload = workloads.find(slug)
        if workload is None:
            raise NotFound(f"There is no workload {slug}.")
        return Response(self.get_serializer(_as_data(workload)).data)


def _as_data(workload: WorkloadDefinition) -> dict[str, Any]:
    parameters_schema = in_place(workload.parameters_type)
    described = parameters_schema["properties"]
    fields = workload.parameters_type.model_fields
    return {
        "slug": workload.slug,
        "title": workload.title,
        "summary": workload.summary,
        "restricted": workload.restricted,
        "decides": workload.decides,
        "missing": list(workloads.missing_packages(workload)),
        "parameters": [
            {
                "name": name,
                "title": info.title or name,
                "help": info.description or "",
                "unit": str(described.get(name, {}).get("unit", "")),
                "schema": {key: value for key, value in described.get(name, {}).items() if key != "unit"},
            }
            for name, info in fields.items()
        ],
        "parameters_schema": {"$schema": _DIALECT, **parameters_schema},
        "figures": [
            {"id": f.id, "label": f.label, "unit": f.unit, "direction": f.direction, "definition": f.definition}
            for f in workload.figures
        ],
    }


_BODIES: Any = {"application/json": in_place(ProgramDefinition), "application/yaml": OpenApiTypes.STR}


class ProgramSerializer(RowSerializer[Program]):
    """A registered program; `definition` is null without permission."""

    name = serializers.CharField(source="slug", read_only=True)
    url = serializers.HyperlinkedIdentityField(view_name="api:program-detail", lookup_field="slug")
    definition = serializers.SerializerMethodField()

    class Meta:
        model = Program
        fields: ClassVar = ["name", "url", "version", "created_at", "changed_at", "definition"]

    @extend_schema_field(serializers.DictField(allow_null=True))
    def get_definition(self, program: Program) -> dict[str, Any] | None:
        return program.definition if may_register_programs(self.context["request"].user) else None


class ProgramViewSet(RowsViewSet[Program]):
    """Registered programs by name, each in its latest version."""

    serializer_class = ProgramSerializer
    parser_classes = (StrictJsonParser, YamlParser)
    lookup_field = "slug"
    lookup_value_regex = "[-a-zA-Z0-9_]+"

    def get_queryset(self) -> QuerySet[Program]:
        latest = Program.objects.values("slug").annotate(newest=Max("pk")).values("newest")
        return Program.objects.filter(pk__in=latest).order_by("slug")

    @extend_schema(request=_BODIES, responses={201: ProgramSerializer, **schema.errors(400, 403, 415)})
    def create(self, request: Request) -> Response:
        """Register a program or its next version; input files and decks are texts in it."""
        data = self._registered(request)
        return Response(data, status=201, headers={"Location": str(data["url"])})

    @extend_schema(request=_BODIES, responses={200: ProgramSerializer, **schema.errors(400, 403, 404, 415)})
    def update(self, request: Request, slug: str) -> Response:
        """Replace a definition. A changed command starts a new version."""
        program: Program = self.get_object()
        return Response(self._registered(request, name=program.slug))

    @extend_schema(responses={204: None, **schema.errors(403, 404, 409)})
    def destroy(self, request: Request, slug: str) -> Response:
        """Delete a program that no experiment uses; others can be retired."""
        program: Program = self.get_object()
        if not may_register_programs(request.user) or not may_replace_program(request.user, program.slug):
            raise PermissionDenied("You may not change this program.")
        Program.remove(program.slug)
        return Response(status=204)

    def _registered(self, request: Request, name: str | None = None) -> Any:
        if not may_register_programs(request.user):
            raise PermissionDenied("Only maintainers of a project may register programs.")
        is_yaml = isinstance(request.data, YamlText)
        body: Any = request.data
        register = queue.register_program_yaml if is_yaml else queue.register_program
        return self.get_serializer(register(body, author=request.user, name=name)).data
