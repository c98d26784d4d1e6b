"""Metrics in the rows of a list, and lists sorted by them."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ValidationError

from dashboard.api.rest.filtering import clean
from dashboard.filters.fields import metric_order
from dashboard.requests.columns import names_in
from dashboard.requests.keyset import Listing
from experiments.metrics import is_metric, why_not_metric
from experiments.models import Measurement

METRICS: Final = "metrics"
MOST_METRICS: Final = 100
PARAMETER: Final = OpenApiParameter(
    METRICS,
    {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": MOST_METRICS},
    explode=False,
    style="form",
    description="Names of metrics, separated by commas: each row has their values (of the traffic `scope`).",
)


class MetricRows:
    """View of a list with ``metrics`` in its rows and ``metric:NAME`` as its order."""

    request: Any

    def by_metric(self, rows: Any, metric: str, *, descending: bool, scope: str) -> Listing:
        """Return the rows by the value of a metric, those without one last."""
        raise NotImplementedError

    def paginate_queryset(self, queryset: Any) -> Any:
        """Return the rows of a page, perhaps by a metric. Raise ValidationError."""
        order = clean(self.request, "ordering")
        is_metric_order, metric, descending = metric_order(order)
        if any(metric_order(part)[0] for part in order.split(",")):
            if not is_metric_order or not is_metric(metric):
                raise ValidationError({"ordering": ["metric:NAME cannot be combined with another order"]})
            queryset = self.by_metric(queryset, metric, descending=descending, scope=self.scope)
        return super().paginate_queryset(queryset)  # type: ignore[misc]  # of GenericViewSet

    @property
    def scope(self) -> str:
        return clean(self.request, "scope") or str(Measurement.Scope.ALL)

    def requested_metrics(self) -> tuple[str, ...]:
        """Return the metrics of ``metrics``. Raise ValidationError."""
        names = names_in(self.request.query_params.getlist(METRICS))
        if METRICS in self.request.query_params and not names:
            raise ValidationError({METRICS: ["names no metric"]})
        if wrong := [name for name in names if not is_metric(name)]:
            raise ValidationError({METRICS: [why_not_metric(wrong[0])]})
        if len(names) > MOST_METRICS:
            raise ValidationError({METRICS: [f"at most {MOST_METRICS} metrics fit in one row"]})
        return names
