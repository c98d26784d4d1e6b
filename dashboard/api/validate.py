"""``/api/v1/validate/``: dry run of a specification."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from django.conf import settings
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from dashboard.api.rest import schema
from dashboard.api.rest.parsers import StrictJsonParser, YamlParser, YamlText
from dashboard.panels.new.preview import cautions, program_notes
from experiments import access
from experiments.errors import InvalidSpec
from experiments.models import Project
from experiments.models.experiment import cluster_for, require_offered
from experiments.selectors import quotas
from experiments.specification import ExperimentSpec, design, parse, parse_yaml
from workers import preview as launch
from workers.errors import ClusterUnavailable


def project_of(request: Request) -> Project:
    """Return the named or default project. Raise PermissionDenied."""
    slug = request.query_params.get("project", default := access.default_slug(request.user))
    project = next((p for p in access.visible_projects(request.user) if p.slug == slug), None)
    if project is None and access.only_project(request.user):
        raise PermissionDenied(f"This token is limited to the project {default!r}.")
    if project is None:
        raise PermissionDenied(f"There is no project {slug!r}, or you are not a member of it.")
    if not access.may_submit(request.user, project):
        raise PermissionDenied(f"You may view project {slug!r} but not submit to it.")
    return project


def specification_of(request: Request, project: Project) -> ExperimentSpec:
    """Return the specification in the body. Raise InvalidSpec, PermissionDenied."""
    read = parse_yaml if isinstance(request.data, YamlText) else parse
    spec = read(request.data, max_trials=settings.MAX_TRIALS)
    if not access.may_submit(request.user, project, specification := spec.to_dict()):
        field = access.restricted_field(specification)
        raise PermissionDenied(f"Only maintainers of this project may submit this {field}: it names what is executed.")
    return spec


MOST_POINTS: Final = 200


class PointSerializer(serializers.Serializer[Any]):
    """One configuration with its parameters and the expected time of a trial."""

    parameters = serializers.DictField()
    hosts = serializers.IntegerField()
    ranks = serializers.IntegerField()
    seconds = serializers.FloatField()
    basis = serializers.CharField(help_text="Basis of the estimate.")


class ForecastSerializer(serializers.Serializer[Any]):
    """Least and most that simulated rounds of a goal take."""

    rounds = serializers.ListField(child=serializers.IntegerField())
    trials = serializers.ListField(child=serializers.IntegerField())
    seconds = serializers.ListField(child=serializers.FloatField())
    host_seconds = serializers.ListField(child=serializers.FloatField())


class ValidationSerializer(serializers.Serializer[Any]):
    """Effects of a specification; `points` has the first 200 `configurations`."""

    valid = serializers.BooleanField(help_text="Always true: an invalid specification is refused as on submission.")
    configurations = serializers.IntegerField()
    trials = serializers.IntegerField()
    kinds = serializers.DictField(child=serializers.IntegerField(), help_text="Trials by kind.")
    seconds = serializers.FloatField(help_text="Expected time of all trials, one after another.")
    capture_bytes = serializers.FloatField(allow_null=True, help_text="Null without past trials.")
    forecast = ForecastSerializer(allow_null=True, help_text="All rounds of a goal; null if it is not known.")
    points = PointSerializer(many=True)
    command = serializers.ListField(child=serializers.CharField(), help_text="Of the first configuration.")
    notes = serializers.ListField(child=serializers.CharField())


class ValidateView(APIView):
    """A dry run."""

    parser_classes = (StrictJsonParser, YamlParser)

    @extend_schema(
        operation_id="validate",
        parameters=[schema.PROJECT],
        request={"application/json": schema.specification(), "application/yaml": OpenApiTypes.STR},
        responses={200: ValidationSerializer, **schema.errors(400, 403, 415)},
    )
    def post(self, request: Request) -> Response:
        """Validate a specification and estimate its effects; nothing is stored."""
        project = project_of(request)
        spec = specification_of(request, project)
        require_offered(spec)
        plan = design.expand(spec)
        cluster = cluster_for(spec, plan)
        waiting, adding = quotas.waiting_trials(project), len(plan.trials)
        if refused := quotas.problems(project, waiting=waiting, adding=adding, capturing=spec.capture.enabled):
            raise InvalidSpec(refused)
        past = access.visible_trials(request.user, by_keys=True)
        times = launch.estimates(spec, plan, past)
        command: list[str] = []
        notes = [*cautions(spec, plan, cluster, times, request.user), *program_notes(spec, plan, cluster, request.user)]
        try:
            command = launch.dry_run(spec, plan, 0).argv
        except ClusterUnavailable as error:
            notes.insert(0, str(error))
        keeps = spec.capture.enabled and spec.capture.keep
        data = {
            "valid": True,
            "configurations": len(plan.configurations),
            "trials": adding,
            "kinds": Counter(str(trial.kind) for trial in plan.trials),
            "seconds": launch.total_s(plan, times),
            "capture_bytes": launch.capture_bytes(spec, plan, times, past) if keeps else 0.0,
            "forecast": launch.forecast_of(spec, plan, times, past),
            "points": [
                {
                    "parameters": point.parameters,
                    "hosts": point.hosts,
                    "ranks": point.ranks,
                    "seconds": estimate.elapsed_s,
                    "basis": estimate.basis,
                }
                for point, estimate in zip(plan.configurations[:MOST_POINTS], times, strict=False)
            ],
            "command": command,
            "notes": notes,
        }
        return Response(ValidationSerializer(data).data)
