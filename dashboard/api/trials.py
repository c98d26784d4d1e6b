"""``/api/v1/trials/``: list, look at, cancel, download files."""

from __future__ import annotations

from typing import Any

from django.http import FileResponse
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import APIException, NotFound, PermissionDenied
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api import schema
from dashboard.api.filtering import StrictFilterBackend
from dashboard.api.serializers import CancelledSerializer, TrialDetailSerializer, TrialSerializer, with_everything
from dashboard.filters import TrialFilter
from experiments import access
from experiments.models import Trial


class Gone(APIException):
    """The file is no longer kept."""

    status_code = 410
    default_code = "gone"


class FileRenderer(JSONRenderer):
    """Lets clients ask for the file's own type; errors are JSON all the same."""

    media_type = "application/octet-stream"
    format = "bin"


class TrialViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Trial]):
    """Trials of the experiments that the caller may see."""

    queryset = Trial.objects.select_related("experiment", "configuration", "cluster")
    lookup_value_regex = "[0-9]{1,18}"
    filter_backends = (StrictFilterBackend,)
    filterset_class = TrialFilter

    def get_queryset(self) -> Any:
        trials = access.visible_trials(self.request.user, super().get_queryset())
        if self.action == "list":
            # What only the detail shows may be long: tracebacks, tables, progress with output.
            return trials.defer("traceback", "tables", "progress", "conditions", "certificate", "command").order_by(
                "pk"
            )
        return trials

    def get_serializer_class(self) -> type[TrialSerializer]:
        return TrialSerializer if self.action == "list" else TrialDetailSerializer

    @extend_schema(responses={200: TrialSerializer(many=True), **schema.errors(400)})
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Trials in the order in which they were submitted."""
        return super().list(request, *args, **kwargs)

    @extend_schema(responses={200: TrialDetailSerializer, **schema.errors(404)})
    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """One trial with everything measured, and why the rest was not."""
        return super().retrieve(request, *args, **kwargs)

    @extend_schema(request=None, responses={200: CancelledSerializer, **schema.errors(403, 404, 409)})
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, pk: str) -> Response:
        """Cancel the trial: at once while it waits, within seconds while it runs."""
        trial = self.get_object()
        trial.experiment.require_editable()
        if not access.may_cancel(request.user, trial.experiment):
            raise PermissionDenied("Only maintainers of the project and the owner of the experiment may cancel it.")
        return Response({"cancelled": trial.cancel()})

    @extend_schema(responses={(200, "application/octet-stream"): OpenApiTypes.BINARY, **schema.errors(404, 409, 410)})
    @action(
        detail=True,
        methods=["get"],
        url_path=r"artifacts/(?P<name>[^/].{0,119}?)",
        url_name="artifact",
        renderer_classes=[JSONRenderer, FileRenderer],
    )
    def artifact(self, request: Request, pk: str, name: str) -> FileResponse:
        """Download one file of the trial by its name."""
        artifact = self.get_object().artifacts.filter(name=name).first()
        if artifact is None:
            raise NotFound(f"Trial {pk} has no such file.")
        if artifact.removed_at is not None or not artifact.file.is_file():
            raise Gone(f"{artifact.name} is no longer kept")
        return FileResponse(
            artifact.intact().open("rb"), as_attachment=True, filename=f"trial-{pk}-{artifact.name.replace('/', '-')}"
        )

    def get_object(self) -> Trial:
        if self.action == "retrieve":
            return get_object_or_404(with_everything(self.get_queryset()), pk=self.kwargs["pk"])
        return super().get_object()
