"""The filters of the list of trials."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import django_filters
from django.db.models import Exists, QuerySet
from drf_spectacular.utils import extend_schema_field

from analysis.trust_level import FLAGGED, TrustLevel
from dashboard.filters.base import (
    ListFilter,
    by_choice,
    by_conditions,
    by_text,
    of_cluster,
    of_owner,
    of_project,
    of_scope,
    of_workload,
    ordered,
    since,
    until,
    with_text,
)
from dashboard.filters.fields import TruthFilter, require_metric
from dashboard.states import chip_of
from experiments.models import Configuration, Experiment, Kind, Measurement, State, Trial
from experiments.models.states import counted, excluded_as_disturbed
from experiments.selectors.conditions import condition, metric_condition
from experiments.selectors.configuration_values import measurements
from experiments.specification.expressions import Expression
from experiments.traffic import is_traffic

_MOST_HOSTS: Final = 2**31 - 1


class TrialFilter(ListFilter):
    """Filters of the list of trials."""

    text = by_text(
        "Words of the experiment or a tag", "Part of the name, the slug or a tag of the experiment.", "filter_text"
    )
    where = by_conditions(
        "hosts >= 4, link.delay = 2 ms",
        "Conditions on the configuration",
        "Conditions on the configuration, as in the explorer: `hosts >= 4, link.delay = 2 ms`; a metric is its median.",
    )
    where_metrics = by_conditions(
        "elapsed_s < 10 s, packets > 1000",
        "Conditions on the trial's metrics",
        "Conditions on the trial's own metrics: `elapsed_s < 10 s, packets > 1000`.",
        "filter_where_metrics",
        to_sql=metric_condition,
    )
    experiment = django_filters.CharFilter(
        field_name="experiment__slug", label="Experiment", help_text="Slug of the experiment."
    )
    configuration = django_filters.CharFilter(
        field_name="configuration__hash", label="Configuration", help_text="Hash of the configuration."
    )
    state = by_choice(((state.value, state.label) for state in State), "State", "State; may be repeated.")
    kind = by_choice(Kind.choices, "Kind", "Purpose of the trial.")
    trust = by_choice(((level.value, chip_of(level).word) for level in TrustLevel), "Trust", "Trust in the capture.")
    workload = of_workload(field_name="experiment__workload")
    cluster = of_cluster()
    project = of_project("experiment__project__slug")
    owner = of_owner("experiment__owner__username")
    hosts = extend_schema_field(
        {"type": "integer", "minimum": 0, "maximum": _MOST_HOSTS, "description": "Number of hosts."}
    )(django_filters.NumberFilter(field_name="configuration__hosts", min_value=0, max_value=_MOST_HOSTS, label="Hosts"))
    counted = django_filters.CharFilter(
        method="filter_counted",
        validators=[require_metric],
        label="In the statistics of",
        help_text="Name of a metric: only the trials of its statistics.",
    )
    scope = of_scope()
    superseded = TruthFilter(label="Replaced", help_text="Whether a newer attempt supersedes it.")
    ended_after = since("Ended", field_name="ended_at")
    ended_before = until("Ended", field_name="ended_at")
    ordering = ordered({"pk": "id", "ended_at": "ended_at", "queued_at": "queued_at"}, "trials")

    drawn = ("text", "where", "state", "workload", "cluster")
    page_names: ClassVar = {"text": "q"}

    class Meta:
        model = Trial
        fields: ClassVar[list[str]] = []

    def filter_text(self, trials: QuerySet[Trial], name: str, value: str) -> QuerySet[Trial]:
        return trials.filter(experiment__in=with_text(Experiment.objects.order_by(), name, value))

    def filter_where(self, trials: QuerySet[Trial], name: str, value: Expression) -> QuerySet[Trial]:
        return trials.filter(configuration__in=Configuration.objects.order_by().filter(condition(value, self._scope)))

    def filter_where_metrics(self, trials: QuerySet[Trial], name: str, value: Expression) -> QuerySet[Trial]:
        return trials.filter(metric_condition(value, self._scope))

    def filter_counted(self, trials: QuerySet[Trial], name: str, value: str) -> QuerySet[Trial]:
        """Filter as the database trigger of ``Summary`` does."""
        entered = trials.filter(counted() & ~excluded_as_disturbed(), Exists(measurements(value, self._scope)))
        return entered.exclude(trust__in=FLAGGED) if is_traffic(value, self._scope) else entered

    @property
    def _scope(self) -> str:
        return self.form.cleaned_data["scope"] or str(Measurement.Scope.ALL)


class TrialPageFilter(TrialFilter):
    """Filters of the page, whose order is parsed by `dashboard.requests.trials`."""

    ordering: Any = None
