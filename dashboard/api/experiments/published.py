"""``/api/v1/published/``: published studies with their printed figures."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import Count, Prefetch, QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api.rest import schema
from dashboard.api.rest.fields import RowSerializer
from dashboard.api.rest.filtering import RowsViewSet, refuse_unknown
from experiments.metrics import find
from experiments.models import Configuration, Experiment, Measurement, Trial


class CitationSerializer(serializers.Serializer[Any]):
    """Source of a published study."""

    title = serializers.CharField()
    authors = serializers.CharField()
    year = serializers.CharField(allow_blank=True, help_text="A year, or years, as text.")
    program = serializers.CharField(allow_blank=True)
    conditions = serializers.CharField()
    facts = serializers.DictField(help_text="Of the cluster, in base units.")


class PublishedSerializer(RowSerializer[Experiment]):
    """A published study; `experiment` has its trials, findings and diagnosis."""

    url = serializers.HyperlinkedIdentityField(view_name="api:published-detail", lookup_field="slug")
    experiment = serializers.HyperlinkedIdentityField(view_name="api:experiment-detail", lookup_field="slug")
    citation = CitationSerializer(source="specification.source")
    configurations = serializers.IntegerField(source="points", help_text="How many.")

    class Meta:
        model = Experiment
        fields: ClassVar = ["slug", "url", "experiment", "name", "workload", "citation", "configurations"]


class PrintedTableSerializer(serializers.Serializer[Any]):
    """A printed table; `printed_as` maps metrics to the printed column names."""

    name = serializers.CharField()
    constants = serializers.DictField(help_text="Parameters of all its rows.")
    printed_as = serializers.DictField(child=serializers.CharField())


class PrintedSerializer(RowSerializer[Configuration]):
    """One configuration; `hosts` and `ranks` are 0 if they are not printed."""

    configuration = serializers.CharField(source="hash")
    parameters = serializers.DictField()
    figures = serializers.SerializerMethodField(help_text="Printed values by metric, in base units.")
    conditions = serializers.SerializerMethodField(help_text="Printed remarks on the numbers, by table.")

    class Meta:
        model = Configuration
        fields: ClassVar = ["configuration", "parameters", "hosts", "ranks", "figures", "conditions"]

    def get_figures(self, configuration: Configuration) -> dict[str, float]:
        return {row.metric: row.value for trial in configuration.trials.all() for row in trial.measurements.all()}

    def get_conditions(self, configuration: Configuration) -> dict[str, dict[str, str]]:
        return {table: remarks for trial in configuration.trials.all() for table, remarks in trial.conditions.items()}


class PublishedDetailSerializer(PublishedSerializer):
    """A published study with all printed values."""

    notes = serializers.ListField(
        child=serializers.CharField(), source="specification.notes", help_text="About the quality of the numbers."
    )
    statements = serializers.ListField(
        child=serializers.CharField(), source="specification.statements", help_text="Other statements of the study."
    )
    tables = PrintedTableSerializer(many=True, source="specification.tables")
    units = serializers.SerializerMethodField(help_text="By metric.")
    configurations = PrintedSerializer(many=True)  # type: ignore[assignment]  # listed for one study, counted for many

    class Meta(PublishedSerializer.Meta):
        fields: ClassVar = [*PublishedSerializer.Meta.fields, "notes", "statements", "tables", "units"]

    def get_units(self, study: Experiment) -> dict[str, str]:
        printed = {metric for table in study.specification["tables"] for metric in table["printed_as"]}
        return {metric: find(metric).unit for metric in sorted(printed)}


class PublishedViewSet(RowsViewSet[Experiment]):
    """Published studies, visible to all users."""

    queryset = Experiment.objects.filter(published=True)
    lookup_field = "slug"
    lookup_value_regex = "[-a-zA-Z0-9_]+"
    cursor_ordering = ""  # they are few

    def get_queryset(self) -> QuerySet[Experiment]:
        studies = super().get_queryset().order_by("slug")
        if self.action == "list":
            return studies.annotate(points=Count("configurations"))
        values = Prefetch("measurements", Measurement.objects.filter(scope=Measurement.Scope.ALL).order_by("metric"))
        trials = Prefetch("trials", Trial.objects.only("configuration_id", "conditions").prefetch_related(values))
        points = Configuration.objects.order_by("position", "pk").prefetch_related(trials)
        return studies.prefetch_related(Prefetch("configurations", points))

    def get_serializer_class(self) -> type[PublishedSerializer]:
        return PublishedSerializer if self.action == "list" else PublishedDetailSerializer

    @extend_schema(responses={200: PublishedDetailSerializer, **schema.errors(400, 404)})
    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return one study with its printed figures, tables and notes."""
        refuse_unknown(request, set())
        return super().retrieve(request, *args, **kwargs)
