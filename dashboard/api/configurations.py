"""``/api/v1/configurations/``: points of designs with summaries of metrics."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, ClassVar, TypedDict

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api.rest import fields, schema
from dashboard.api.rest.fields import RowSerializer, Sparse
from dashboard.api.rest.filtering import StrictFilterBackend
from dashboard.api.rest.metrics import METRICS, PARAMETER, MetricRows
from dashboard.filters import ConfigurationListFilter
from dashboard.requests.keyset import Listing
from dashboard.requests.trials import by_value
from experiments.models import Configuration, Summary
from experiments.selectors.configuration_values import medians


class MetricSummary(TypedDict):
    """A metric of the counted trials of a configuration."""

    n: int
    median: float
    minimum: float
    maximum: float


class ConfigurationSerializer(Sparse, RowSerializer[Configuration]):
    """A point of a design; context ``metrics``: names, and summaries by configuration."""

    experiment = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True)
    workload = serializers.CharField(source="experiment.workload", read_only=True)
    cluster = serializers.CharField(source="experiment.cluster.slug", read_only=True, allow_null=True, default=None)
    parameters = serializers.DictField(read_only=True)
    metrics = serializers.SerializerMethodField(
        help_text="Summary of each of the metrics in the query, null without counted trials; only with `metrics`."
    )

    class Meta:
        model = Configuration
        fields: ClassVar = [
            *("id", "experiment", "workload", "cluster", "hash", "parameters", "hosts", "ranks", "metrics")
        ]

    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        if METRICS in self.context and not self.context[METRICS][0]:
            fields.pop(METRICS, None)
        return fields

    def get_metrics(self, configuration: Configuration) -> dict[str, MetricSummary | None]:
        names, summaries = self.context[METRICS]
        return {name: summaries[configuration.pk].get(name) for name in names}


class ConfigurationViewSet(MetricRows, mixins.ListModelMixin, viewsets.GenericViewSet[Configuration]):
    """Configurations of the designs of visible experiments."""

    queryset = Configuration.objects.all()
    serializer_class = ConfigurationSerializer
    filter_backends = (StrictFilterBackend,)
    filterset_class = ConfigurationListFilter
    more_parameters = (fields.NAME, METRICS)
    cursor_ordering = "pk"
    _page: Sequence[Configuration] = ()

    def filter_queryset(self, queryset: Any) -> Any:
        rows = super().filter_queryset(queryset).select_related("experiment__cluster")
        return rows if "ordering" in self.request.query_params else rows.order_by("pk")

    def by_metric(self, rows: Any, metric: str, *, descending: bool, scope: str) -> Listing:
        return by_value(rows, "summaries__median", medians, metric, descending=descending, scope=scope)

    def paginate_queryset(self, queryset: Any) -> Any:
        self._page = super().paginate_queryset(queryset)
        return self._page

    def get_serializer_context(self) -> dict[str, Any]:
        names = self.requested_metrics()
        summaries = _summaries(self._page, names, self.scope) if names else {}
        chosen = fields.chosen(self.request, ConfigurationSerializer)
        context = {**super().get_serializer_context(), fields.NAME: chosen}
        is_schema = getattr(self, "swagger_fake_view", False)
        return context if is_schema else {**context, METRICS: (names, summaries)}

    @extend_schema(
        parameters=[fields.parameter(ConfigurationSerializer), PARAMETER],
        responses={200: ConfigurationSerializer(many=True), **schema.errors(400)},
    )
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """List configurations, those of the oldest experiment first."""
        return super().list(request, *args, **kwargs)


def _summaries(
    page: Sequence[Configuration], names: Sequence[str], scope: str
) -> defaultdict[int, dict[str, MetricSummary]]:
    """Return configuration -> metric -> summary, in one query without samples."""
    summaries: defaultdict[int, dict[str, MetricSummary]] = defaultdict(dict)
    rows: QuerySet[Summary] = Summary.objects.filter(configuration__in=page, metric__in=names, scope=scope)
    columns = ("configuration_id", "metric", "n", "median", "minimum", "maximum")
    for configuration, metric, n, median, minimum, maximum in rows.values_list(*columns):
        summaries[configuration][metric] = {"n": n, "median": median, "minimum": minimum, "maximum": maximum}
    return summaries
