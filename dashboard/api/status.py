"""``/api/v1/status/``: what runs and waits now."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, Q
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from dashboard.api.rest import schema
from dashboard.api.rest.filtering import refuse_unknown
from experiments import access
from experiments.models import ACTIVE, Cluster, LastSeen, State, Trial


class ProcessSerializer(serializers.Serializer[Any]):
    """A kind of process that runs all the time, and its last heartbeat."""

    role = serializers.ChoiceField(choices=["beat", "worker", "background"])
    alive = serializers.BooleanField(source="is_alive", help_text="Whether its last heartbeat is at most 60 s old.")
    seen_at = serializers.DateTimeField(allow_null=True, help_text="Of its last heartbeat; null if there was none.")
    age_s = serializers.FloatField(allow_null=True, help_text="Seconds since then, by the clock of the database.")


class StatusSerializer(serializers.Serializer[Any]):
    """What runs and waits, of what the caller may see; of clusters all of it."""

    time = serializers.DateTimeField(help_text="The server's clock.")
    running = serializers.IntegerField(help_text="Trials that are prepared, run or are analysed.")
    queued = serializers.IntegerField()
    clusters = serializers.DictField(
        child=serializers.DictField(child=serializers.IntegerField()), help_text="By slug: `running` and `queued`."
    )
    processes = ProcessSerializer(many=True, help_text="Processes behind the pages: trials wait while they do not run.")


class StatusView(APIView):
    """What there is to do."""

    @extend_schema(operation_id="status", responses={200: StatusSerializer, **schema.errors(400)})
    def get(self, request: Request) -> Response:
        """Trials that run and wait, of the caller's projects and by cluster."""
        refuse_unknown(request, set())
        running, queued = Q(state__in=ACTIVE), Q(state=State.QUEUED)
        own = access.visible_trials(request.user, Trial.objects.unfinished())
        counts = own.aggregate(running=Count("pk", filter=running), queued=Count("pk", filter=queued))
        by_cluster = (
            Trial.objects.unfinished()
            .order_by()
            .values("cluster__slug")
            .annotate(running=Count("pk", filter=running), queued=Count("pk", filter=queued))
        )
        busy = {row["cluster__slug"]: {name: row[name] for name in ("running", "queued")} for row in by_cluster}
        idle = {"running": 0, "queued": 0}
        told = {
            "time": timezone.now(),
            **counts,
            "clusters": {slug: busy.get(slug, idle) for slug in Cluster.objects.values_list("slug", flat=True)},
            "processes": LastSeen.of_roles().values(),
        }
        return Response(StatusSerializer(told).data)
