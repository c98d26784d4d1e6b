"""``/api/v1/programs/``: programs of people's own, as the form and ``manage.py program`` register them."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import Max, QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api.rest import schema
from dashboard.api.rest.fields import RowSerializer
from dashboard.api.rest.in_place import in_place
from dashboard.api.rest.parsers import StrictJsonParser, YamlParser, YamlText
from dashboard.api.rest.view_sets import RowsViewSet
from experiments.access import may_register_programs
from experiments.models import Program
from experiments.workloads.program import ProgramDefinition
from workers import queue

_BODIES: Any = {"application/json": in_place(ProgramDefinition), "application/yaml": OpenApiTypes.STR}


class ProgramSerializer(RowSerializer[Program]):
    """The latest version of a registered program; specifications say `workload: NAME`. `definition` is null for who may not register."""

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
        """Register a program, or the next version of one: input files and decks stand in it as texts."""
        shown = self._registered(request)
        return Response(shown, status=201, headers={"Location": str(shown["url"])})

    @extend_schema(request=_BODIES, responses={200: ProgramSerializer, **schema.errors(400, 403, 404, 415)})
    def update(self, request: Request, slug: str) -> Response:
        """Replace a definition. What is run begins a new version; where only the reading changed, kept outputs are read again."""
        known: Program = self.get_object()
        return Response(self._registered(request, name=known.slug))

    def _registered(self, request: Request, name: str | None = None) -> Any:
        if not may_register_programs(request.user):
            raise PermissionDenied("Only maintainers of a project may register programs: they say what submitters run.")
        is_yaml = isinstance(request.data, YamlText)
        body: Any = request.data
        register = queue.register_program_yaml if is_yaml else queue.register_program
        return self.get_serializer(register(body, author=request.user, name=name)).data
