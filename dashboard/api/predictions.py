"""``/api/v1/predictions/`` and ``networks/``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Final

from django.db import transaction
from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import mixins, serializers, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import PermissionDenied
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from analysis.sensitivity import Link
from dashboard.api.background import BackgroundTaskSerializer, accepted
from dashboard.api.rest import schema
from dashboard.api.rest.fields import RowSerializer
from dashboard.api.rest.filtering import StrictFilterBackend, refuse_unknown
from dashboard.api.rest.parsers import validated
from dashboard.api.trials.rows import FileRenderer
from dashboard.background import replays
from dashboard.filters import PredictionFilter
from dashboard.panels.network.form import LONGEST_DELAY_S, LONGEST_NAME, MOST, RATES
from dashboard.panels.network.table import as_file
from dashboard.requests.idempotency import PARAMETER, idempotent_response
from experiments import access
from experiments.errors import FieldError, InvalidSpec
from experiments.models import Experiment, Network, Prediction
from experiments.selectors.network import DELAYS_S, LOSSES, RATES_BPS, make_prediction
from experiments.selectors.predictions import PredictionCheck, checks_of, visible_predictions
from workers import queue

_FIELDS: Final = {"delay": "delay_s", "rate": "rate_bps"}


class CheckSerializer(serializers.Serializer[PredictionCheck]):
    """Trials on the predicted link that ended after the prediction."""

    trials = serializers.ListField(child=serializers.IntegerField(), help_text="All of them, in any state.")
    waiting = serializers.IntegerField(help_text="Unfinished trials.")
    seconds = serializers.ListField(child=serializers.FloatField())
    other_link = serializers.IntegerField(
        help_text="Trials on another link according to their certificate; they check nothing."
    )
    disturbed = serializers.IntegerField(help_text="Trials on the link that other load slowed; they check nothing.")
    measured_s = serializers.FloatField(allow_null=True, help_text="Median.")
    error = serializers.FloatField(allow_null=True, help_text="Predicted / measured - 1.")
    inside = serializers.BooleanField(allow_null=True, help_text="Whether the median is in the interval.")


class PredictionSerializer(RowSerializer[Prediction]):
    """A prediction; the context holds ``checks``: its key -> Check."""

    url = serializers.HyperlinkedIdentityField(view_name="api:prediction-detail")
    page = serializers.CharField(source="get_absolute_url", read_only=True, help_text="Its permanent address.")
    experiment = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True)
    workload = serializers.CharField(source="experiment.workload", read_only=True)
    author = serializers.SlugRelatedField[Any](slug_field="username", read_only=True, allow_null=True)
    parameters = serializers.DictField(read_only=True)
    evidence = serializers.ListField(child=serializers.IntegerField(), read_only=True)
    calibration = serializers.DictField(read_only=True)
    check = serializers.SerializerMethodField()

    class Meta:
        model = Prediction
        fields: ClassVar = [
            *("id", "url", "page", "experiment", "workload", "version", "predictor", "metric", "at", "hosts"),
            *("delay_s", "rate_bps", "loss", "value_s", "low_s", "high_s", "level", "extended"),
            *("parameters", "configuration_hash", "obstacle", "evidence", "evidence_hash", "calibration", "author"),
            *("created_at", "check"),
        ]

    @extend_schema_field(CheckSerializer)
    def get_check(self, prediction: Prediction) -> Any:
        return CheckSerializer(self.context["checks"][prediction.pk]).data


class WantedSerializer(serializers.Serializer[Any]):
    """The link of a prediction."""

    experiment = serializers.SlugField(max_length=100)
    delay_s = serializers.FloatField(min_value=DELAYS_S[0], max_value=DELAYS_S[1], help_text="One way.")
    rate_bps = serializers.FloatField(min_value=RATES_BPS[0], max_value=RATES_BPS[1])
    loss = serializers.FloatField(min_value=LOSSES[0], max_value=LOSSES[1], default=0.0, help_text="Share of packets.")
    at = serializers.CharField(
        default="", allow_blank=True, max_length=200, help_text="Combination of the other factors: `4 hosts`."
    )
    predictor = serializers.ChoiceField(
        choices=Prediction.Predictor.choices,
        default=Prediction.Predictor.FIT,
        help_text="`replay` simulates the calls of a traced trial, in the background (202).",
    )
    check = serializers.BooleanField(default=False, help_text="Queue the trials that check it, or store nothing.")


def as_data(predictions: list[Prediction], request: Request | None = None) -> Any:
    """Return predictions as REST data."""
    context = {"request": request, "checks": checks_of(predictions)}
    return PredictionSerializer(predictions, many=True, context=context).data


@contextmanager
def _at_fields() -> Iterator[None]:
    """Rename the fields of InvalidSpec to those of REST."""
    try:
        yield
    except InvalidSpec as error:
        raise InvalidSpec(
            FieldError(_FIELDS.get(field_error.path, field_error.path), field_error.message)
            for field_error in error.errors
        ) from None


class PredictionViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Prediction]):
    """Predictions of visible experiments."""

    serializer_class = PredictionSerializer
    queryset = Prediction.objects.none()
    lookup_value_regex = "[0-9]{1,18}"
    filter_backends = (StrictFilterBackend,)
    filterset_class = PredictionFilter

    def get_queryset(self) -> QuerySet[Prediction]:
        return visible_predictions(self.request.user).select_related("experiment__project")

    @extend_schema(responses={200: PredictionSerializer(many=True), **schema.errors(400)})
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """List predictions, newest first, each with the trials that check it."""
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        assert page is not None  # noqa: S101 (pagination is never off)
        return self.get_paginated_response(as_data(list(page), request))

    @extend_schema(responses={(200, "text/csv"): OpenApiTypes.BINARY, **schema.errors(400)}, filters=True)
    @action(detail=False, renderer_classes=[JSONRenderer, FileRenderer], pagination_class=None)
    def export(self, request: Request) -> StreamingHttpResponse:
        """Export predictions as CSV with base units in the column names."""
        return as_file(self.filter_queryset(self.get_queryset()), "predictions")

    @extend_schema(responses={200: PredictionSerializer, **schema.errors(404)})
    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return one prediction."""
        return Response(as_data([self.get_object()], request)[0])

    @extend_schema(
        parameters=[PARAMETER],
        request=WantedSerializer,
        responses={201: PredictionSerializer, 202: BackgroundTaskSerializer, **schema.errors(400, 403, 409, 415)},
    )
    def create(self, request: Request) -> Response:
        """Store a prediction from the current trials, or return the same stored one.

        `check` also queues two trials on its link. A replay is made in the background (202).
        """
        values = validated(WantedSerializer, request)
        experiment = self._experiment(request, values["experiment"])
        if values["check"]:
            self._require_run(request, experiment)
        link = Link(values["delay_s"], values["rate_bps"], values["loss"])
        if values["predictor"] == Prediction.Predictor.REPLAY:
            with _at_fields():
                task = replays.ask(request.user, experiment, link, values["at"], check=values["check"])
            return accepted(task, request)

        def keep() -> Response:
            with _at_fields(), transaction.atomic():
                prediction = make_prediction(experiment, link, values["at"], author=request.user).keep()
                if values["check"]:
                    queue.check_prediction(prediction, author=request.user)
            data = as_data([prediction], request)[0]
            return Response(data, status=201, headers={"Location": str(data["url"])})

        return idempotent_response(request, keep)

    @schema.row_action("post", PredictionSerializer, (400, 403, 404, 409), parameters=[PARAMETER])
    def check(self, request: Request, pk: str) -> Response:
        """Queue two more trials on the link of a prediction."""
        prediction = self.get_object()
        self._require_run(request, prediction.experiment)

        def check() -> Response:
            queue.check_prediction(prediction, author=request.user)
            return Response(as_data([prediction], request)[0])

        return idempotent_response(request, check)

    def _experiment(self, request: Request, slug: str) -> Experiment:
        visible = access.visible_experiments(request.user).select_related("project", "cluster")
        experiment = visible.filter(slug=slug).first()
        if experiment is None:
            raise InvalidSpec([FieldError("experiment", f"there is no experiment {slug!r} that you may see")])
        if not access.may_predict(request.user, experiment):
            raise PermissionDenied("Only submitters and maintainers of the project store predictions.")
        return experiment

    def _require_run(self, request: Request, experiment: Experiment) -> None:
        if not (access.may_predict(request.user, experiment) and access.may_run_more(request.user, experiment)):
            raise PermissionDenied(
                "Only maintainers of the project and the owner of the experiment may run more trials."
            )


class NetworkSerializer(serializers.Serializer[Any]):
    """A network as one link between two hosts."""

    name = serializers.CharField(max_length=LONGEST_NAME)
    delay_s = serializers.FloatField(min_value=0.0, max_value=LONGEST_DELAY_S, help_text="One way.")
    rate_bps = serializers.FloatField(min_value=RATES[0], max_value=RATES[1])


_NETWORKS: Final = {
    "type": "array",
    "maxItems": MOST,
    "items": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": LONGEST_NAME, "pattern": r"\S"},
            "delay_s": {"type": "number", "minimum": 0, "maximum": LONGEST_DELAY_S, "description": "One way."},
            "rate_bps": {"type": "number", "minimum": RATES[0], "maximum": RATES[1]},
        },
        "required": ["name", "delay_s", "rate_bps"],
    },
}


class NetworksView(APIView):
    """Named networks for maps and answers."""

    @extend_schema(operation_id="networks_list", responses={200: NetworkSerializer(many=True), **schema.errors(400)})
    def get(self, request: Request) -> Response:
        """List the named networks by ascending rate."""
        refuse_unknown(request, set())
        return Response(NetworkSerializer(Network.objects.all(), many=True).data)

    @extend_schema(
        operation_id="networks_replace",
        request={"application/json": _NETWORKS},
        responses={200: NetworkSerializer(many=True), **schema.errors(400, 403, 415)},
    )
    def put(self, request: Request) -> Response:
        """Replace the named networks (maintainers of any project)."""
        refuse_unknown(request, set())
        if not access.may_describe_clusters(request.user):
            raise PermissionDenied("Only maintainers edit the named networks.")
        networks = validated(NetworkSerializer, request, many=True, max_length=MOST)
        names = [network["name"].casefold() for network in networks]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise InvalidSpec([FieldError(f"{names.index(twice)}.name", "the name is used twice")])
        Network.replace_all([Network(**network) for network in networks])
        return self.get(request)
