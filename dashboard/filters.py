"""What lists can be filtered by: one set per list, for pages and REST alike."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, ClassVar

import django_filters
from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from django_filters.fields import IsoDateTimeField

from analysis.trust_level import TrustLevel
from experiments import workloads
from experiments.models import Experiment, Kind, State, Trial


class MomentField(IsoDateTimeField):  # type: ignore[misc]
    """A moment in ISO 8601, taken to UTC: PostgreSQL refuses offsets of more than 16 hours."""

    def clean(self, value: Any) -> datetime | None:
        moment: datetime | None = super().clean(value)
        try:
            return None if moment is None else moment.astimezone(UTC)
        except OverflowError:
            raise ValidationError("Enter a date and time in the years 1 to 9999.") from None


class MomentFilter(django_filters.Filter):  # type: ignore[misc]
    """Compares with a moment."""

    field_class = MomentField


def _workload_choices() -> list[tuple[str, str]]:
    return [(workload.slug, workload.title) for workload in workloads.registry()]


class ExperimentFilter(django_filters.FilterSet):  # type: ignore[misc]
    """Filters of the list of experiments."""

    text = django_filters.CharFilter(method="filter_text", label="Part of the name, the address or a tag.")
    tag = django_filters.CharFilter(method="filter_tag", label="Has this tag.")
    workload = django_filters.ChoiceFilter(choices=_workload_choices, label="Workload.")
    cluster = django_filters.CharFilter(field_name="cluster__slug", label="Cluster.")
    project = django_filters.CharFilter(field_name="project__slug", label="Project.")
    owner = django_filters.CharFilter(field_name="owner__username", label="User name of the owner.")
    published = django_filters.BooleanFilter(label="Only published results, or only own ones.")
    created_after = MomentFilter(field_name="created_at", lookup_expr="gte", label="Submitted then or later.")
    created_before = MomentFilter(field_name="created_at", lookup_expr="lt", label="Submitted earlier than that.")
    ordering = django_filters.OrderingFilter(fields=["created_at", "name"], label="Order; - for descending.")

    class Meta:
        model = Experiment
        fields: ClassVar[list[str]] = []

    def filter_text(self, experiments: QuerySet[Experiment], name: str, value: str) -> QuerySet[Experiment]:
        return experiments.filter(Q(name__icontains=value) | Q(slug__icontains=value) | Q(tags__icontains=value))

    def filter_tag(self, experiments: QuerySet[Experiment], name: str, value: str) -> QuerySet[Experiment]:
        return experiments.filter(tags__contains=[value])


class TrialFilter(django_filters.FilterSet):  # type: ignore[misc]
    """Filters of the list of trials."""

    experiment = django_filters.CharFilter(field_name="experiment__slug", label="Slug of the experiment.")
    configuration = django_filters.CharFilter(field_name="configuration__hash", label="Hash of the configuration.")
    state = django_filters.MultipleChoiceFilter(
        choices=State, distinct=False, label="State; may be given more than once."
    )
    kind = django_filters.MultipleChoiceFilter(choices=Kind, distinct=False, label="What the trial is for.")
    trust = django_filters.MultipleChoiceFilter(
        distinct=False,
        choices=[(level.value, level.value) for level in TrustLevel],
        label="Trust in the capture.",
    )
    workload = django_filters.ChoiceFilter(
        field_name="experiment__workload", choices=_workload_choices, label="Workload."
    )
    cluster = django_filters.CharFilter(field_name="cluster__slug", label="Cluster.")
    hosts = django_filters.NumberFilter(
        field_name="configuration__hosts", min_value=0, max_value=2**31 - 1, label="Number of hosts."
    )
    superseded = django_filters.BooleanFilter(label="Whether a newer attempt has replaced it.")
    ended_after = MomentFilter(field_name="ended_at", lookup_expr="gte", label="Ended then or later.")
    ended_before = MomentFilter(field_name="ended_at", lookup_expr="lt", label="Ended earlier than that.")
    ordering = django_filters.OrderingFilter(
        fields={"pk": "id", "ended_at": "ended_at", "queued_at": "queued_at"}, label="Order; - for descending."
    )

    class Meta:
        model = Trial
        fields: ClassVar[list[str]] = []


def unknown_names(given: Any, known: Any, *, besides: frozenset[str]) -> list[str]:
    """Return the names in a query string that no filter knows: a misspelt filter must not answer with everything."""
    return sorted(name for name in given if name not in known and name not in besides)
