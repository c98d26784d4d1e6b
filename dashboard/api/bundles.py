"""``/api/v1/bundles/`` and ``/api/v1/imports/``: results that leave and enter."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import IO, Any, Final

from django.conf import settings
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from dashboard.api.background import BackgroundTaskSerializer, accepted
from dashboard.api.rest import schema
from dashboard.api.rest.filtering import one_of, refuse_unknown
from dashboard.api.rest.parsers import validated
from dashboard.background.bundles import ask_bundle
from dashboard.exchange.forms import CAPTURES
from dashboard.requests import concurrency_limits
from experiments import access
from experiments.exchange.exporting import ADDRESSES_IN_CONTENTS
from experiments.exchange.import_plan import ImportPlan, ImportResult
from experiments.exchange.intake import import_received_file

_PIECE: Final = 1 << 20


class WantedBundleSerializer(serializers.Serializer[Any]):
    """Contents of a bundle; `of` has tokens as in `compare/`."""

    of = serializers.ListField(child=serializers.CharField(max_length=110), min_length=1, max_length=100)
    captures = serializers.ChoiceField(choices=[value for value, _ in CAPTURES], default="all")
    anonymise = serializers.BooleanField(
        default=False, help_text="Other addresses in captures and texts; not with `captures` `all`."
    )
    licence = serializers.CharField(max_length=300, default="", allow_blank=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["anonymise"] and attrs["captures"] == "all":
            raise ValidationError({"anonymise": [ADDRESSES_IN_CONTENTS]})
        return attrs


class ArrivalSerializer(serializers.Serializer[ImportPlan]):
    """The import, or planned import, of one experiment."""

    name = serializers.CharField()
    uid = serializers.UUIDField()
    trials = serializers.IntegerField(help_text="New ones.")
    files = serializers.IntegerField()
    size_bytes = serializers.IntegerField()
    note = serializers.CharField(help_text="Parts that exist here already, or the reason why nothing is imported.")
    experiment = serializers.SerializerMethodField(help_text="Its slug here; null if nothing was stored.")

    def get_experiment(self, arrival: ImportPlan) -> str | None:
        return arrival.stored.slug if arrival.stored is not None else None


class BroughtSerializer(serializers.Serializer[ImportResult]):
    """The result of an import, with its source."""

    kind = serializers.ChoiceField(choices=("bundle", "description", "report"))
    installation = serializers.CharField(help_text="Of a bundle; otherwise the name of the file.")
    written_at = serializers.DateTimeField(allow_null=True, help_text="Null unless it is a bundle.")
    written_by = serializers.CharField()
    licence = serializers.CharField()
    arrivals = ArrivalSerializer(many=True)
    left_out = serializers.ListField(
        child=serializers.CharField(), help_text="A sentence for each run or figure of a report that is not imported."
    )


class ZipParser(BaseParser):
    """A file as the body, written to disk while it is received."""

    media_type = "application/zip"
    name = "sent.zip"

    def parse(self, stream: IO[Any], media_type: str | None = None, parser_context: Any = None) -> Any:
        target = tempfile.NamedTemporaryFile(prefix="rankwire-import-")  # noqa: SIM115 - closed, and gone, after the answer
        size = 0
        while piece := stream.read(_PIECE):
            size += len(piece)
            if size > settings.IMPORT_LIMIT_BYTES:
                target.close()
                raise ValidationError(f"larger than the {settings.IMPORT_LIMIT_BYTES >> 20} MiB that may be sent")
            target.write(piece)
        target.flush()
        return {"file": target, "name": self.name}


class DescriptionParser(ZipParser):
    """A description of external results."""

    media_type = "application/yaml"
    name = "sent.yaml"


class ReportParser(ZipParser):
    """A result file of another tool."""

    media_type = "application/json"
    name = "sent.json"


class BundlesView(APIView):
    """Bundles of visible experiments."""

    @extend_schema(
        request=WantedBundleSerializer,
        responses={202: BackgroundTaskSerializer, **schema.errors(400, 403, 415, 429)},
    )
    def post(self, request: Request) -> Response:
        """Request a bundle: 202 with the task that makes it."""
        values = dict(validated(WantedBundleSerializer, request))
        return accepted(ask_bundle(request.user, values.pop("of"), **values), request)


class ImportsView(APIView):
    """Imports of bundles and of external results."""

    parser_classes = (ZipParser, DescriptionParser, ReportParser)

    @extend_schema(
        parameters=[
            schema.PROJECT,
            OpenApiParameter("dry_run", bool, description="Report what would be created without creating it."),
        ],
        request={
            ZipParser.media_type: OpenApiTypes.BINARY,
            DescriptionParser.media_type: OpenApiTypes.STR,
            ReportParser.media_type: OpenApiTypes.OBJECT,
        },
        responses={200: BroughtSerializer, 201: BroughtSerializer, **schema.errors(400, 403, 415, 429)},
    )
    def post(self, request: Request) -> Response:
        """Import results: 201 if anything is new, else 200. An error imports nothing."""
        refuse_unknown(request, {"project", "dry_run"})
        dry_run = one_of(request, "dry_run", ("false", "true")) == "true"
        slug = request.query_params.get("project", access.default_slug(request.user))
        project = next((option for option in access.projects_for(request.user) if option.slug == slug), None)
        if project is None:
            raise PermissionDenied(f"There is no project {slug!r} that you may submit to.")
        with concurrency_limits.acquire(request.user, "import"):
            if not request.data:
                raise ValidationError("the body is empty: send a bundle as application/zip")
            body: Any = request.data  # as ZipParser returns it
            with body["file"] as file:
                imported = import_received_file(
                    Path(file.name), body["name"], project=project, owner=request.user, dry_run=dry_run
                )
        created = not dry_run and imported.trials
        return Response(BroughtSerializer(imported).data, status=201 if created else 200)
