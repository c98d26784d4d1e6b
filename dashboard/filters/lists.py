"""The filters of each list."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import django_filters
from django import forms
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import QueryDict

from analysis.trust_level import TrustLevel
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
)
from dashboard.filters.fields import AnyOfFilter, Order, TickBox, TruthFilter, TruthSelect
from dashboard.states import chip_of
from experiments.access import visible_experiments
from experiments.models import (
    FAILED,
    UNFINISHED,
    Configuration,
    Experiment,
    Prediction,
    Report,
    ReportVersion,
    Round,
    State,
    Trial,
)
from experiments.selectors.conditions import condition
from experiments.selectors.history_list import SORTS
from experiments.specification.expressions import Expression


class ExperimentFilter(ListFilter):
    """Filters of the list of experiments."""

    text = by_text("Name or tag", "Part of the name, the slug or a tag.")
    tag = django_filters.CharFilter(method="filter_tag", label="Tag", help_text="Has this tag.")
    workload = of_workload()
    cluster = of_cluster()
    project = of_project()
    owner = of_owner()
    state = django_filters.ChoiceFilter(
        method="filter_state",
        choices=[("unfinished", "Running or queued"), ("failed", "With failed trials"), ("over", "Finished")],
        empty_label="Any state",
        label="State",
        help_text="How far its trials are.",
    )
    published = TruthFilter(
        widget=TruthSelect("Measured and published", ("published", "Published"), ("own", "Measured here")),
        label="Source",
        help_text="Only published results, or only own ones.",
    )
    created_after = since("Submitted", field_name="created_at")
    created_before = until("Submitted", field_name="created_at")
    archived = TruthFilter(
        field_name="archived_at",
        lookup_expr="isnull",
        exclude=True,
        widget=TickBox,
        label="Archived",
        help_text="Only archived experiments, or only those that are not.",
    )
    ordering = Order(fields=["created_at", "name"], label="Order", help_text="Order; - for descending.")

    drawn = ("text", "workload", "state", "published", "archived")
    page_names: ClassVar = {"text": "q", "published": "source"}

    class Meta:
        model = Experiment
        fields: ClassVar[list[str]] = []

    @property
    def matching(self) -> QuerySet[Experiment]:
        """The matching experiments, without archived ones by default."""
        rows: QuerySet[Experiment] = super().matching
        is_requested = self.is_valid() and self.form.cleaned_data["archived"] is not None
        return rows if is_requested else rows.filter(archived_at=None)

    def filter_tag(self, experiments: QuerySet[Experiment], name: str, value: str) -> QuerySet[Experiment]:
        return experiments.filter(tags__contains=[value])

    def filter_state(self, experiments: QuerySet[Experiment], name: str, value: str) -> QuerySet[Experiment]:
        states = FAILED if value == "failed" else UNFINISHED
        having = Q(pk__in=Trial.objects.current().filter(state__in=states).values("experiment_id"))
        if value != "failed":  # between two rounds no trial is unfinished
            having |= Q(pk__in=Round.objects.filter(outcome="").values("experiment_id"))
        return experiments.filter(~having if value == "over" else having)


class ReportFilter(ListFilter):
    """Filters of the list of reports."""

    text = by_text("Title or text", "Part of the title or of the newest text.", "filter_text")
    project = of_project()
    owner = of_owner()

    drawn = ("text",)
    page_names: ClassVar = {"text": "q"}

    class Meta:
        model = Report
        fields: ClassVar[list[str]] = []

    def filter_text(self, reports: QuerySet[Report], name: str, value: str) -> QuerySet[Report]:
        newest = ReportVersion.objects.filter(report=OuterRef("pk"), number=OuterRef("version"))
        return reports.filter(Q(title__icontains=value) | Exists(newest.filter(text__icontains=value)))


class PredictionFilter(ListFilter):
    """Filters of the list of predictions."""

    experiment = django_filters.CharFilter(field_name="experiment__slug", label="Slug of the experiment.")
    workload = of_workload(field_name="experiment__workload")

    class Meta:
        model = Prediction
        fields: ClassVar[list[str]] = []


class HistoryFilter(ListFilter):
    """Filters of the list of histories, by their experiments."""

    text = by_text("Experiment or tag", "Part of an experiment's name, slug or tag.")
    workload = of_workload()
    cluster = of_cluster()
    flagged = TruthFilter(
        method="filter_later",
        widget=TickBox,
        label="Flagged",
        help_text="Of the histories of this page (`limit`, `offset`), only flagged ones.",
    )
    ordering = django_filters.ChoiceFilter(
        method="filter_later",
        choices=[(f"{sign}{name}", f"{sign}{name}") for name in SORTS for sign in ("", "-")],
        widget=forms.HiddenInput,
        label="Order",
        help_text="Order; - for descending. `-newest` by default.",
    )

    drawn = ("text", "workload", "cluster", "flagged")

    class Meta:
        model = Experiment
        fields: ClassVar[list[str]] = []

    @property
    def only_flagged(self) -> bool:
        """Return whether only flagged histories are requested."""
        return self.is_valid() and bool(self.form.cleaned_data["flagged"])

    @property
    def order(self) -> str:
        """The order of the histories, not of their experiments."""
        return (self.is_valid() and self.form.cleaned_data["ordering"]) or "-newest"

    def filter_later(self, experiments: QuerySet[Experiment], name: str, value: Any) -> QuerySet[Experiment]:
        return experiments


class ConfigurationFilter(ListFilter):
    """Filters of configurations by experiments, trials and conditions."""

    text = by_text("Name or tag", "Part of an experiment's name, slug or tag.")
    where = by_conditions(
        "hosts >= 4, elapsed_s < 10",
        "Conditions",
        "Conditions such as `hosts >= 4, link.delay = 2 ms` or `elapsed_s < 10 and not ranks > 2 * hosts`.",
    )
    experiment = AnyOfFilter(field_name="slug", label="Experiment", help_text="Slug of the experiment.")
    workload = AnyOfFilter(label="Workload", help_text="Workload.")
    cluster = AnyOfFilter(field_name="cluster__slug", label="Cluster", help_text="Cluster.")
    project = AnyOfFilter(field_name="project__slug", label="Project", help_text="Project.")
    tag = AnyOfFilter(method="filter_tags", label="Tag", help_text="Has each of these tags.")
    state = by_choice(
        ((state.value, state.label) for state in State),
        "Has a trial that is",
        "Has a trial in this state.",
        method="filter_trial",
    )
    trust = by_choice(
        ((level.value, chip_of(level).word) for level in TrustLevel),
        "Trust of a capture",
        "Has a trial with this trust in its capture.",
        method="filter_trial",
    )
    after = since("Ended", method="filter_ended")
    before = until("Ended", method="filter_ended")

    _BUT_WORKLOAD: ClassVar = ("text", "experiment", "cluster", "project", "tag")
    OF_EXPERIMENTS: ClassVar = (*_BUT_WORKLOAD, "workload")

    class Meta:
        model = Configuration
        fields: ClassVar[list[str]] = []

    def __init__(self, params: QueryDict, experiments: QuerySet[Experiment], *, scope: str = "all") -> None:
        """Filter the configurations of ``experiments``."""
        filled = params.copy()
        for name, texts in params.lists():  # a form sends its empty fields too
            filled.setlist(name, [text for text in texts if text.strip()])
        super().__init__(filled, Configuration.objects.filter(in_design=True))
        self._experiments = experiments
        self._scope = scope

    def filter_queryset(self, queryset: QuerySet[Configuration]) -> QuerySet[Configuration]:
        return self._filtered(queryset, self._left_experiments(self.OF_EXPERIMENTS))

    @property
    def of_any_workload(self) -> QuerySet[Configuration]:
        """The configurations that match all filters but the workload."""
        return self._filtered(self.queryset, self._left_experiments(self._BUT_WORKLOAD))

    def _filtered(self, rows: QuerySet[Configuration], experiments: QuerySet[Experiment]) -> QuerySet[Configuration]:
        values = self.form.cleaned_data
        # No subquery without filters of experiments.
        if experiments.query.where:
            rows = rows.filter(experiment__in=experiments)
        for name, value in values.items():
            if name not in self.OF_EXPERIMENTS:
                rows = self.filters[name].filter(rows, value)
        return rows

    def _left_experiments(self, names: Iterable[str]) -> QuerySet[Experiment]:
        experiments = self._experiments
        for name in names:
            experiments = self.filters[name].filter(experiments, self.form.cleaned_data[name])
        return experiments

    @property
    def whole_designs(self) -> QuerySet[Experiment] | None:
        """The experiments of any workload whose whole designs match, or None."""
        choosing = (value for name, value in self.form.cleaned_data.items() if name not in self.OF_EXPERIMENTS)
        return None if any(choosing) else self._left_experiments(self._BUT_WORKLOAD)

    def filter_tags(self, experiments: QuerySet[Experiment], name: str, value: list[str]) -> QuerySet[Experiment]:
        return experiments.filter(tags__contains=value)

    def filter_trial(self, rows: QuerySet[Configuration], name: str, value: list[str]) -> QuerySet[Configuration]:
        return rows.filter(Exists(_trials().filter(**{f"{name}__in": value})))

    def filter_ended(self, rows: QuerySet[Configuration], name: str, value: Any) -> QuerySet[Configuration]:
        """Filter by both bounds on one trial, with the second of the two names."""
        after, before = self.form.cleaned_data["after"], self.form.cleaned_data["before"]
        if name == "after" and before:
            return rows
        ended = {"ended_at__gte": after, "ended_at__lt": before}
        return rows.filter(Exists(_trials().filter(**{end: moment for end, moment in ended.items() if moment})))

    def filter_where(self, rows: QuerySet[Configuration], name: str, value: Expression) -> QuerySet[Configuration]:
        return rows.filter(condition(value, self._scope))


class ConfigurationListFilter(ConfigurationFilter):
    """Filters and order of REST's list of configurations."""

    scope = of_scope()
    ordering = ordered({"pk": "id", "hosts": "hosts"}, "configurations")

    def __init__(self, data: QueryDict, queryset: Any = None, *, request: Any) -> None:
        super().__init__(data, visible_experiments(request.user, by_keys=True), scope=data.get("scope") or "all")


def _trials() -> QuerySet[Trial]:
    return Trial.objects.filter(configuration=OuterRef("pk"), superseded=False)
