"""``/api/v1/trials/``: list, look at, cancel, download files."""

from __future__ import annotations

from typing import Any, Final

from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import mixins, serializers, viewsets
from rest_framework.exceptions import APIException, NotFound, PermissionDenied, ValidationError
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api.rest import etag, fields, schema
from dashboard.api.rest.filtering import StrictFilterBackend, clean, one_of, refuse_unknown
from dashboard.api.rest.metrics import METRICS, PARAMETER, MetricRows
from dashboard.api.serializers import (
    CancelledSerializer,
    ListedTrialSerializer,
    TrialDetailSerializer,
    TrialSerializer,
    with_everything,
)
from dashboard.api.trials.parts import PartActions
from dashboard.filters import TrialFilter
from dashboard.panels.trial.siblings import around, differing
from dashboard.requests import ranges
from dashboard.requests.keyset import Listing
from dashboard.requests.trials import by_metric
from experiments import access
from experiments.files import read_analysis, read_mpi_profile
from experiments.models import Measurement, Trial

_NUMBER: Final = {"type": "integer", "minimum": 0, "maximum": 10**18 - 1}
_FROM_OTHER_TABLES: Final = {"metrics", "mpi_metrics", "not_available", "artifacts", "environment"}


class Gone(APIException):
    """The object was removed after its retention period (410)."""

    status_code = 410
    default_code = "gone"


class WireSerializer(serializers.Serializer[Any]):
    """Curves and tables of a capture; null if missing or changed."""

    scope = serializers.ChoiceField(choices=Measurement.Scope.choices)
    series = serializers.DictField(allow_null=True, help_text="Packets and bytes per bin of `bin_s` from `start_s`.")
    size_histogram = serializers.DictField(allow_null=True, help_text="Packets by length on the wire, bytes.")
    interarrival = serializers.DictField(allow_null=True, help_text="Gaps: distribution, dispersion, fits.")
    matrices = serializers.DictField(allow_null=True, help_text="Of all traffic: hosts, and ranks if known.")
    flows = serializers.ListField(child=serializers.DictField(), help_text="Connections of all traffic, largest first.")


class ProfileSerializer(serializers.Serializer[Any]):
    """The tables of an MPI profile; null if missing or changed."""

    profile = serializers.DictField(allow_null=True)


class DifferenceSerializer(serializers.Serializer[Any]):
    """One fact that differs between two trials."""

    fact = serializers.CharField()
    this = serializers.CharField(allow_blank=True)
    other = serializers.CharField(allow_blank=True)


_LISTED: Final = (
    *("kind", "repetition", "attempt", "superseded", "state", "trust", "message"),
    *("queued_at", "preparing_at", "running_at", "analysing_at", "ended_at", "experiment__slug", "cluster__slug"),
    *(f"configuration__{name}" for name in ("hash", "parameters", "hosts", "ranks", "in_design")),
)
"""Columns of the list; reading all columns took 25 % of the time."""


class FileRenderer(JSONRenderer):
    """Renderer that accepts the media type of files; errors are JSON."""

    media_type = "application/octet-stream"
    format = "bin"


class TrialViewSet(
    MetricRows, PartActions, mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Trial]
):
    """Trials of visible experiments."""

    queryset = Trial.objects.select_related("experiment", "configuration", "cluster")
    lookup_value_regex = "[0-9]{1,18}"
    filter_backends = (StrictFilterBackend,)
    filterset_class = TrialFilter
    more_parameters = (fields.NAME, METRICS)
    cursor_ordering = "pk"

    def get_queryset(self) -> Any:
        is_list = self.action == "list"
        trials = access.visible_trials(self.request.user, super().get_queryset(), by_keys=is_list)
        if is_list:
            listed = trials.only(*_LISTED).order_by("pk")
            return listed.prefetch_related("as_array__names") if METRICS in self.request.query_params else listed
        return trials

    def get_serializer_class(self) -> type[TrialSerializer]:
        return ListedTrialSerializer if self.action == "list" else TrialDetailSerializer

    def get_serializer_context(self) -> dict[str, Any]:
        context = dict(super().get_serializer_context())
        if self.action in ("list", "retrieve"):
            context[fields.NAME] = fields.chosen(self.request, self.get_serializer_class())
        if self.action == "list":
            context[METRICS] = self.requested_metrics(), self.scope
        return context

    def by_metric(self, rows: Any, metric: str, *, descending: bool, scope: str) -> Listing:
        return by_metric(rows, metric, descending=descending, scope=scope)

    @extend_schema(
        parameters=[fields.parameter(ListedTrialSerializer), PARAMETER],
        responses={200: ListedTrialSerializer(many=True), **schema.errors(400)},
    )
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """List trials in the order of submission."""
        return super().list(request, *args, **kwargs)

    @extend_schema(
        parameters=[fields.parameter(TrialDetailSerializer), etag.PARAMETER],
        responses={200: TrialDetailSerializer, **etag.NOT_MODIFIED, **schema.errors(400, 404)},
    )
    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponseBase:  # type: ignore[override]
        """Return one trial with all metrics, and the reasons for missing ones."""
        fields.refuse_others(request)
        return etag.answer(request, self.get_serializer(self.get_object()).data)

    @etag.row_action(
        WireSerializer,
        OpenApiParameter("scope", enum=Measurement.Scope.values, description="`all` by default."),
    )
    def wire(self, request: Request, pk: str) -> HttpResponseBase:
        """Return the curves and tables of its capture."""
        trial = self.get_object()
        refuse_unknown(request, {"scope"})
        scope = one_of(request, "scope", Measurement.Scope.values)
        analysis = read_analysis(trial) or {}
        curves = analysis if scope == Measurement.Scope.ALL else analysis.get("mpi") or {}
        selected = {name: curves.get(name) for name in ("series", "size_histogram", "interarrival")}
        rest = {"scope": scope, "matrices": analysis.get("matrices"), "flows": analysis.get("flows", [])}
        return etag.answer(request, {**selected, **rest})

    @etag.row_action(ProfileSerializer, codes=(404,))
    def profile(self, request: Request, pk: str) -> HttpResponseBase:
        """Return its MPI profile: time by rank, function, message size and pair."""
        return etag.answer(request, {"profile": read_mpi_profile(self.get_object())})

    @schema.row_action(
        "get",
        DifferenceSerializer(many=True),
        (400, 404),
        parameters=[OpenApiParameter("against", _NUMBER, required=True, description="Number of another trial.")],
        **schema.UNFILTERED,
    )
    def environment(self, request: Request, pk: str) -> Response:
        """Return the differences of environment to another trial."""
        here = self.get_object()
        refuse_unknown(request, {"against"})
        text = clean(request, "against")
        if not (text.isascii() and text.isdecimal() and len(text) <= 18):
            raise ValidationError({"against": ["must be the number of a trial"]})
        other = get_object_or_404(self.get_queryset().select_related("environment"), pk=int(text))
        rows = differing(around(here), around(other))
        return Response([{"fact": fact, "this": this, "other": its} for fact, this, its in rows])

    @schema.row_action("post", CancelledSerializer, (403, 404, 409))
    def cancel(self, request: Request, pk: str) -> Response:
        """Cancel the trial: at once while it waits, within seconds while it runs."""
        trial = self.get_object()
        trial.experiment.require_editable()
        if not access.may_cancel(request.user, trial.experiment):
            raise PermissionDenied("Only maintainers of the project and the owner of the experiment may cancel it.")
        return Response({"cancelled": trial.cancel()})

    @schema.row_action(
        "get",
        {
            (200, "application/octet-stream"): OpenApiTypes.BINARY,
            (206, "application/octet-stream"): OpenApiTypes.BINARY,
            **etag.NOT_MODIFIED,
        },
        (404, 409, 410, 416),
        parameters=[etag.PARAMETER, schema.RANGE],
        url_path=r"artifacts/(?P<name>[^/].{0,119}?)",
        url_name="artifact",
        renderer_classes=[JSONRenderer, FileRenderer],
    )
    def artifact(self, request: Request, pk: str, name: str) -> HttpResponseBase:
        """Download one file of the trial by its name."""
        artifact = self.get_object().artifacts.filter(name=name).first()
        if artifact is None:
            raise NotFound(f"Trial {pk} has no such file.")
        if artifact.removed_at is not None:
            raise Gone(f"{artifact.name} is no longer kept")
        # The hash is the ETag: 304 needs no access to the file.
        digest = f'"{artifact.sha256}"'
        same = etag.not_modified(request, digest)
        if same is not None:
            return same
        try:
            return ranges.artifact(request, artifact, f"trial-{pk}-{artifact.name.replace('/', '-')}")
        except FileNotFoundError:
            raise Gone(f"{artifact.name} is no longer kept") from None

    def get_object(self) -> Trial:
        names = fields.chosen(self.request, TrialDetailSerializer) if self.action == "retrieve" else []
        if names is None or _FROM_OTHER_TABLES & set(names):
            return get_object_or_404(with_everything(self.get_queryset()), pk=self.kwargs["pk"])
        return super().get_object()
