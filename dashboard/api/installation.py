"""``/api/v1/metrics/``, ``quotas/`` and ``status/``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, get_args

from django.db.models import Count, Q
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from analysis.catalogue import METRICS, Direction, Section, Shape
from dashboard.api.rest import schema
from dashboard.api.rest.filtering import refuse_unknown
from experiments import access
from experiments.access import visible_projects
from experiments.models import ACTIVE, LastSeen, State, Trial
from experiments.selectors.quotas import quotas_of


class MetricSerializer(serializers.Serializer[Any]):
    """One metric; `unit` is `1` for factors, `share` for ratios."""

    id = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # a field, not the option of fields
    unit = serializers.CharField()
    direction = serializers.ChoiceField(choices=get_args(Direction), help_text="Which is better.")
    definition = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]  # a field, not the option of fields
    section = serializers.ChoiceField(choices=get_args(Section))
    headline = serializers.BooleanField()
    shape = serializers.ChoiceField(choices=get_args(Shape), help_text="Curves and tables are in `trials/ID/wire/`.")


class MetricsView(APIView):
    """The catalogue."""

    @extend_schema(operation_id="metrics_list", responses={200: MetricSerializer(many=True), **schema.errors(400)})
    def get(self, request: Request) -> Response:
        """List the metrics of the catalogue; figures of programs are with their workloads."""
        refuse_unknown(request, set())
        return Response(MetricSerializer([asdict(metric) for metric in METRICS.values()], many=True).data)


class QuotaSerializer(serializers.Serializer[Any]):
    """One limit; `most` is 0 if unlimited."""

    name = serializers.CharField()
    unit = serializers.CharField()
    used = serializers.FloatField()
    most = serializers.IntegerField()


class ProjectQuotasSerializer(serializers.Serializer[Any]):
    """All limits of one project."""

    project = serializers.CharField()
    quotas = QuotaSerializer(many=True)


class QuotasView(APIView):
    """Quotas of projects."""

    @extend_schema(
        operation_id="quotas_list", responses={200: ProjectQuotasSerializer(many=True), **schema.errors(400)}
    )
    def get(self, request: Request) -> Response:
        """List limits and use of the caller's projects."""
        refuse_unknown(request, set())
        projects = list(visible_projects(request.user).order_by("slug"))
        taken = quotas_of(projects)
        rows = [{"project": project.slug, "quotas": taken[project.pk]} for project in projects]
        return Response(ProjectQuotasSerializer(rows, many=True).data)


class ProcessSerializer(serializers.Serializer[Any]):
    """A permanent process and its last heartbeat."""

    role = serializers.ChoiceField(choices=["beat", "worker", "background"])
    alive = serializers.BooleanField(source="is_alive", help_text="Whether its last heartbeat is at most 60 s old.")
    seen_at = serializers.DateTimeField(allow_null=True, help_text="Of its last heartbeat; null if there was none.")
    age_s = serializers.FloatField(allow_null=True, help_text="Seconds since then, by the clock of the database.")


class StatusSerializer(serializers.Serializer[Any]):
    """Running and queued trials of the caller's projects, and of clusters in total."""

    time = serializers.DateTimeField(help_text="The server's clock.")
    running = serializers.IntegerField(help_text="Trials that are prepared, run or are analysed.")
    queued = serializers.IntegerField()
    clusters = serializers.DictField(
        child=serializers.DictField(child=serializers.IntegerField()), help_text="By slug: `running` and `queued`."
    )
    processes = ProcessSerializer(many=True, help_text="Processes behind the pages: trials wait while they do not run.")


class StatusView(APIView):
    """Load of the installation."""

    @extend_schema(operation_id="status", responses={200: StatusSerializer, **schema.errors(400)})
    def get(self, request: Request) -> Response:
        """Count running and queued trials of the caller's projects and of clusters."""
        refuse_unknown(request, set())
        running, queued = Q(state__in=ACTIVE), Q(state=State.QUEUED)
        trials = access.visible_trials(request.user, Trial.objects.unfinished())
        counts = trials.aggregate(running=Count("pk", filter=running), queued=Count("pk", filter=queued))
        by_cluster = (
            Trial.objects.unfinished()
            .order_by()
            .values("cluster__slug")
            .annotate(running=Count("pk", filter=running), queued=Count("pk", filter=queued))
        )
        visible = access.visible_clusters(request.user)
        busy = {row["cluster__slug"]: {name: row[name] for name in ("running", "queued")} for row in by_cluster}
        idle = {"running": 0, "queued": 0}
        data = {
            "time": timezone.now(),
            **counts,
            "clusters": {slug: busy.get(slug, idle) for slug in visible.values_list("slug", flat=True)},
            "processes": LastSeen.of_roles().values(),
        }
        return Response(StatusSerializer(data).data)
