"""``/api/v1/quotas/``: what the caller's projects took of the installation, and how much they may."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from dashboard.api.rest import schema
from dashboard.api.rest.filtering import refuse_unknown
from experiments.access import visible_projects
from experiments.selectors.quotas import quotas_of


class QuotaSerializer(serializers.Serializer[Any]):
    """One limit; `most` is 0 where there is none."""

    name = serializers.CharField()
    unit = serializers.CharField()
    used = serializers.FloatField()
    most = serializers.IntegerField()


class ProjectQuotasSerializer(serializers.Serializer[Any]):
    """All limits of one project."""

    project = serializers.CharField()
    quotas = QuotaSerializer(many=True)


class QuotasView(APIView):
    """What projects may take."""

    @extend_schema(
        operation_id="quotas_list", responses={200: ProjectQuotasSerializer(many=True), **schema.errors(400)}
    )
    def get(self, request: Request) -> Response:
        """Of every project of the caller: waiting trials, machine-hours in 30 days, GiB of files and of captures."""
        refuse_unknown(request, set())
        projects = list(visible_projects(request.user).order_by("slug"))
        taken = quotas_of(projects)
        rows = [{"project": project.slug, "quotas": taken[project.pk]} for project in projects]
        return Response(ProjectQuotasSerializer(rows, many=True).data)
