"""Serializers of experiments, trials and artifacts."""

from __future__ import annotations

from typing import Any, ClassVar, TypedDict, cast

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.reverse import reverse

from dashboard.api.rest.fields import RowSerializer, Sparse
from dashboard.api.rest.schema import dataclass_schema
from dashboard.panels.experiment.excluded_trials import why_apart
from experiments.metrics import still_absent
from experiments.models import METRIC_SOURCES, Artifact, Experiment, Kind, Measurement, Priority, Trial
from workers.testbed.certificate import Certificate

Values = dict[str, float]


class TrialCounts(TypedDict):
    """Current trials by state."""

    total: int
    queued: int
    active: int
    finished: int
    failed: int
    cancelled: int
    flagged: int


class ExperimentSerializer(Sparse, RowSerializer[Experiment]):
    """An experiment in lists; context ``progress``: key -> Progress."""

    url = serializers.HyperlinkedIdentityField(view_name="api:experiment-detail", lookup_field="slug")
    cluster = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True, allow_null=True)
    project = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True)
    owner = serializers.SlugRelatedField[Any](slug_field="username", read_only=True, allow_null=True)
    tags = serializers.ListField(child=serializers.CharField(), read_only=True)
    status = serializers.SerializerMethodField()
    trials = serializers.SerializerMethodField()

    class Meta:
        model = Experiment
        fields: ClassVar = [
            *("slug", "url", "name", "workload", "cluster", "project", "owner", "version", "tags", "published"),
            *("created_at", "status", "trials"),
        ]

    def get_status(self, experiment: Experiment) -> str:
        return str(self.context["progress"][experiment.pk].status)

    def get_trials(self, experiment: Experiment) -> TrialCounts:
        progress = self.context["progress"][experiment.pk]
        return cast(TrialCounts, {name: getattr(progress, name) for name in TrialCounts.__annotations__})


class ExperimentDetailSerializer(ExperimentSerializer):
    """All data of one experiment except its trials."""

    specification = serializers.DictField(read_only=True)
    source = serializers.DictField(read_only=True)  # type: ignore[assignment]  # a field, not the option of fields
    uid = serializers.UUIDField(read_only=True, help_text="The same in every installation.")
    origin = serializers.DictField(read_only=True, help_text="Source, time and user of an import.")

    class Meta(ExperimentSerializer.Meta):
        fields: ClassVar = [
            *ExperimentSerializer.Meta.fields,
            *("specification", "specification_hash", "source", "uid", "origin"),
        ]


class TrialSerializer(Sparse, RowSerializer[Trial]):
    """A trial in lists."""

    url = serializers.HyperlinkedIdentityField(view_name="api:trial-detail")
    experiment = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True)
    configuration = serializers.CharField(source="configuration.hash", read_only=True)
    parameters = serializers.DictField(source="configuration.parameters", read_only=True)
    hosts = serializers.IntegerField(source="configuration.hosts", read_only=True)
    ranks = serializers.IntegerField(source="configuration.ranks", read_only=True)
    cluster = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True, allow_null=True)
    in_design = serializers.BooleanField(
        source="configuration.in_design",
        read_only=True,
        help_text="Whether the current revision of the experiment contains its configuration.",
    )

    class Meta:
        model = Trial
        fields: ClassVar = [
            *("id", "url", "experiment", "configuration", "parameters", "hosts", "ranks", "cluster", "kind"),
            *("repetition", "attempt", "superseded", "in_design", "state", "trust", "message"),
            *("queued_at", "preparing_at", "running_at", "analysing_at", "ended_at"),
        ]


class ListedTrialSerializer(TrialSerializer):
    """A trial in lists; context ``metrics``: names and scope of its metrics."""

    metrics = serializers.SerializerMethodField(
        help_text="Value of each of the metrics in the query, null without one; only with `metrics`."
    )

    class Meta(TrialSerializer.Meta):
        fields: ClassVar = [*TrialSerializer.Meta.fields, "metrics"]

    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        if "metrics" in self.context and not self.context["metrics"][0]:
            fields.pop("metrics", None)
        return fields

    def get_metrics(self, trial: Trial) -> dict[str, float | None]:
        names, scope = self.context["metrics"]
        values = _values(trial, scope)
        return {name: values.get(name) for name in names}


class ArtifactSerializer(RowSerializer[Artifact]):
    """One artifact of a trial; ``url`` is null after its retention period."""

    url = serializers.SerializerMethodField()

    class Meta:
        model = Artifact
        fields: ClassVar = ["kind", "name", "size_bytes", "sha256", "created_at", "removed_at", "url"]

    def get_url(self, artifact: Artifact) -> str | None:
        if artifact.removed_at is not None:
            return None
        arguments = {"pk": artifact.trial_id, "name": artifact.name}
        return reverse("api:trial-artifact", kwargs=arguments, request=self.context.get("request"))


def _certificate() -> dict[str, Any]:
    """Return the JSON schema of a certificate; imported ones may lack fields."""
    shape = dataclass_schema(Certificate)
    rows = shape["properties"]["rows"]["items"]
    for part in (shape, rows):
        del part["required"]
    return {"anyOf": [shape, {"type": "null"}]}


@extend_schema_field(_certificate())
class CertificateField(serializers.DictField):
    """Requested and measured properties of a trial's link, in SI base units."""


class TrialDetailSerializer(TrialSerializer):
    """All data of one trial; ``mpi_metrics`` are of MPI traffic only.

    The context may have ``apart``: trial key -> reason of exclusion; and ``repeats``: keys of repeats of disturbed trials.
    """

    metrics = serializers.SerializerMethodField()
    mpi_metrics = serializers.SerializerMethodField()
    not_available = serializers.SerializerMethodField()
    trust_reasons = serializers.ListField(child=serializers.CharField(), read_only=True)
    command = serializers.ListField(child=serializers.CharField(), read_only=True)
    progress = serializers.DictField(read_only=True)
    metric_sources = serializers.SerializerMethodField(
        help_text="Of metrics from counters: the source, and its trust (measured, estimated or from calls)."
    )
    conditions = serializers.SerializerMethodField()
    certificate = CertificateField(read_only=True, allow_null=True)
    tables = serializers.DictField(read_only=True)
    environment = serializers.SerializerMethodField()
    artifacts = ArtifactSerializer(many=True, read_only=True)
    apart = serializers.SerializerMethodField(help_text="Why it is excluded from statistics; null if it is included.")
    repeats_disturbed = serializers.SerializerMethodField(
        help_text="Whether it repeats a trial that other load disturbed."
    )

    class Meta(TrialSerializer.Meta):
        fields: ClassVar = [
            *TrialSerializer.Meta.fields,
            *("apart", "metrics", "mpi_metrics", "not_available", "metric_sources", "trust_reasons", "command"),
            *("progress", "conditions", "certificate", "tables", "environment", "artifacts"),
            "repeats_disturbed",
        ]

    def get_metrics(self, trial: Trial) -> Values:
        return _values(trial, Measurement.Scope.ALL)

    def get_mpi_metrics(self, trial: Trial) -> Values:
        return _values(trial, Measurement.Scope.MPI)

    def get_not_available(self, trial: Trial) -> dict[str, str]:
        return still_absent(trial.not_available, self.get_metrics(trial))

    @extend_schema_field({"type": "object", "additionalProperties": {"type": "object", "additionalProperties": True}})
    def get_metric_sources(self, trial: Trial) -> dict[str, dict[str, str]]:
        return {
            metric: {"source": title, "trust": source["trust"]}
            for title, source in trial.conditions.get(METRIC_SOURCES, {}).items()
            for metric in source["metrics"]
        }

    def get_conditions(self, trial: Trial) -> dict[str, Any]:
        return {name: value for name, value in trial.conditions.items() if name != METRIC_SOURCES}

    def get_apart(self, trial: Trial) -> str | None:
        reasons: dict[int, str] | None = self.context.get("apart")
        return (why_apart(trial.experiment, [trial]) if reasons is None else reasons).get(trial.pk)

    def get_repeats_disturbed(self, trial: Trial) -> bool:
        repeats: set[int] | None = self.context.get("repeats")
        return trial.pk in (Trial.repeats_among([trial]) if repeats is None else repeats)

    @extend_schema_field({"type": ["object", "null"], "additionalProperties": True})
    def get_environment(self, trial: Trial) -> dict[str, Any] | None:
        return trial.environment.facts if trial.environment else None


class ResultTrialSerializer(TrialDetailSerializer):
    """A trial of a whole result, with older names of some fields."""

    warmup = serializers.SerializerMethodField()
    control = serializers.SerializerMethodField()
    environment_hash = serializers.CharField(source="environment.hash", read_only=True, default=None, allow_null=True)
    started_at = serializers.DateTimeField(source="running_at", read_only=True, allow_null=True)

    class Meta(TrialDetailSerializer.Meta):
        fields: ClassVar = [
            *TrialDetailSerializer.Meta.fields,
            *("warmup", "control", "environment_hash", "started_at"),
        ]

    def get_warmup(self, trial: Trial) -> bool:
        return trial.kind == Kind.WARMUP

    def get_control(self, trial: Trial) -> bool:
        return trial.kind == Kind.CONTROL


class QueuedSerializer(serializers.Serializer[Any]):
    """Number of queued trials."""

    queued = serializers.IntegerField()


class PrioritySerializer(serializers.Serializer[Any]):
    """Priority of an experiment within its project."""

    priority = serializers.ChoiceField(choices=[priority_level.name.lower() for priority_level in Priority])


class MovedSerializer(serializers.Serializer[Any]):
    """The new project of an experiment."""

    project = serializers.SlugField(max_length=80)


class RepetitionsSerializer(serializers.Serializer[Any]):
    """Number of additional repetitions of every configuration."""

    count = serializers.IntegerField(min_value=1, max_value=1000)


class CancelledSerializer(serializers.Serializer[Any]):
    """The answer to a cancellation."""

    cancelled = serializers.IntegerField(
        read_only=True, help_text="Queued trials that were cancelled and running trials that stop."
    )


def with_everything(trials: QuerySet[Trial]) -> QuerySet[Trial]:
    """Return trials with all rows that TrialDetailSerializer reads, in three queries."""
    # Values as arrays: 10 000 trials have a million measurements.
    related = ("experiment", "configuration", "cluster", "environment", "as_array")
    return trials.select_related(*related).prefetch_related("as_array__names", "artifacts")


def _values(trial: Trial, scope: str) -> Values:
    array = getattr(trial, "as_array", None)
    if array is None:
        return {}
    start = f"{scope} "
    named = zip(array.names.names, array.numbers, strict=True)
    return {name.removeprefix(start): value for name, value in named if name.startswith(start)}
