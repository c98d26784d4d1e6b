"""``/api/v1/experiments/``: list, submit, look at, cancel, take the full result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, viewsets
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api.background import BackgroundTaskSerializer, accepted
from dashboard.api.experiments.result import result_answer
from dashboard.api.experiments.rounds import RoundActions
from dashboard.api.experiments.serializers import (
    DiagnosisSerializer,
    FindingsSerializer,
    ResultSerializer,
)
from dashboard.api.rest import chart_tables, fields, schema
from dashboard.api.rest.filtering import StrictFilterBackend
from dashboard.api.rest.parsers import StrictJsonParser, YamlParser, validated
from dashboard.api.serializers import (
    CancelledSerializer,
    ExperimentDetailSerializer,
    ExperimentSerializer,
    MovedSerializer,
    PrioritySerializer,
    QueuedSerializer,
    RepetitionsSerializer,
)
from dashboard.api.validate import project_of, specification_of
from dashboard.background import changes
from dashboard.filters import ExperimentFilter
from dashboard.panels.parts.chart_tables import charts_of
from dashboard.panels.parts.efficiencies import efficiency_trees
from dashboard.panels.parts.measured import Measured
from dashboard.requests.idempotency import PARAMETER, idempotent_response
from experiments import access, selectors
from experiments.models import BackgroundTask, Experiment, Priority, Project
from experiments.selectors.diagnosis import diagnosis_of
from experiments.specification import ExperimentSpec
from workers import queue

_QUEUED: Final = {200: QueuedSerializer, 202: BackgroundTaskSerializer}


class ExperimentViewSet(
    RoundActions, mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Experiment]
):
    """Experiments of the caller's projects, and published results."""

    queryset = Experiment.objects.select_related("cluster", "owner", "project")
    lookup_field = "slug"
    lookup_value_regex = "[-a-zA-Z0-9_]+"
    parser_classes = (StrictJsonParser, YamlParser)
    filter_backends = (StrictFilterBackend,)
    filterset_class = ExperimentFilter
    more_parameters = (fields.NAME,)

    def get_queryset(self) -> Any:
        return access.visible_experiments(self.request.user, super().get_queryset())

    def get_serializer_class(self) -> type[ExperimentSerializer]:
        return ExperimentSerializer if self.action == "list" else ExperimentDetailSerializer

    @extend_schema(
        parameters=[fields.parameter(ExperimentSerializer)],
        responses={200: ExperimentSerializer(many=True), **schema.errors(400)},
    )
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """List experiments, newest first."""
        names = fields.chosen(request, ExperimentSerializer)
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        assert page is not None  # noqa: S101 (pagination is never off)
        return self.get_paginated_response(self._data_of(page, many=True, names=names))

    @extend_schema(
        parameters=[fields.parameter(ExperimentDetailSerializer)],
        responses={200: ExperimentDetailSerializer, **schema.errors(400, 404)},
    )
    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return one experiment with its specification."""
        fields.refuse_others(request)
        names = fields.chosen(request, ExperimentDetailSerializer)
        return Response(self._data_of(self.get_object(), names=names))

    @extend_schema(
        parameters=[schema.PROJECT, PARAMETER],
        request={"application/json": schema.specification(), "application/yaml": OpenApiTypes.STR},
        responses={201: ExperimentDetailSerializer, **schema.errors(400, 403, 409, 415)},
    )
    def create(self, request: Request) -> Response:
        """Submit a specification: all its trials are queued at once, or nothing is stored."""
        project = project_of(request)
        spec = specification_of(request, project)
        return idempotent_response(request, lambda: self._submitted(request, spec, project))

    @schema.row_action("post", CancelledSerializer, (403, 404, 409))
    def cancel(self, request: Request, slug: str) -> Response:
        """Cancel all unfinished trials; running ones stop within seconds."""
        return Response({"cancelled": self._editable(request).cancel()})

    @schema.row_action("post", QueuedSerializer, (403, 404, 409), url_path="go-on")
    def go_on(self, request: Request, slug: str) -> Response:
        """Release a held experiment although its first trial failed."""
        return Response({"queued": queue.resume(self._repeatable(request))})

    @extend_schema(
        request={"application/json": schema.specification(), "application/yaml": OpenApiTypes.STR},
        responses={200: QueuedSerializer, **schema.errors(400, 403, 404, 409, 415)},
    )
    def update(self, request: Request, slug: str) -> Response:
        """Save a new version of the specification; only new trials are queued."""
        experiment = self._repeatable(request)
        spec = specification_of(request, experiment.project)
        return Response({"queued": queue.revise(experiment, spec, author=request.user)})

    @schema.row_action(
        "post",
        ExperimentDetailSerializer,
        (400, 403, 404, 409, 415),
        request=MovedSerializer,
        parser_classes=[StrictJsonParser],
    )
    def move(self, request: Request, slug: str) -> Response:
        """Move the experiment to another project; none of its trials may wait or run."""
        experiment = self._repeatable(request)
        slug = validated(MovedSerializer, request)["project"]
        able = access.projects_for(request.user, experiment.specification)
        project = next((option for option in able if option.slug == slug), None)
        if project is None:
            raise PermissionDenied("There is no such project, or you may not start this experiment in it.")
        experiment.move_to(project)
        return Response(self._data_of(self.get_object()))

    @schema.row_action("post", _QUEUED, (400, 403, 404, 409, 429), parameters=[PARAMETER], url_path="rerun-failed")
    def rerun_failed(self, request: Request, slug: str) -> Response:
        """Queue every trial without a result again; many in the background (202)."""
        experiment = self._repeatable(request)
        return idempotent_response(request, lambda: _queued(changes.rerun_failed(request.user, experiment), request))

    @schema.row_action(
        "post",
        _QUEUED,
        (400, 403, 404, 409, 415, 429),
        request=RepetitionsSerializer,
        parameters=[PARAMETER],
        parser_classes=[StrictJsonParser],
    )
    def repetitions(self, request: Request, slug: str) -> Response:
        """Queue more repetitions as a new version; many in the background (202)."""
        experiment = self._repeatable(request)
        count = validated(RepetitionsSerializer, request)["count"]
        return idempotent_response(request, lambda: _queued(changes.repeat(request.user, experiment, count), request))

    @schema.row_action(
        "post",
        PrioritySerializer,
        (400, 403, 404, 409, 415),
        request=PrioritySerializer,
        parser_classes=[StrictJsonParser],
    )
    def priority(self, request: Request, slug: str) -> Response:
        """Set the priority of queued trials within the project (maintainers)."""
        experiment = self._editable(request)
        if not access.may_prioritise(request.user, experiment):
            raise PermissionDenied("Only maintainers of this project may set priorities.")
        priority = validated(PrioritySerializer, request)["priority"]
        experiment.prioritise(Priority[priority.upper()])
        return Response({"priority": priority})

    @schema.row_action("get", FindingsSerializer, (404,))
    def findings(self, request: Request, slug: str) -> Response:
        """Return answer, ranked facts, verdict, findings and limitations."""
        return Response(diagnosis_of(self.get_object()).findings())

    @schema.row_action("get", DiagnosisSerializer, (404,))
    def diagnosis(self, request: Request, slug: str) -> Response:
        """Return speed-up, models, recommended trials and capture overhead."""
        return Response(diagnosis_of(self.get_object()).to_dict())

    @schema.row_action("get", OpenApiTypes.OBJECT, (404,))
    def efficiencies(self, request: Request, slug: str) -> Response:
        """Return POP efficiencies and time shares by size."""
        trees = efficiency_trees(Measured.alone(self.get_object()))
        return Response({"tables": [tree.to_dict() for tree in trees]})

    @schema.row_action(
        "get",
        chart_tables.ChartSerializer(many=True),
        (404,),
        operation_id="experiments_charts_list",
        **schema.UNFILTERED,
    )
    def charts(self, request: Request, slug: str) -> Response:
        """List the charts of the experiment's page."""
        return Response(charts_of(self.get_object()).listed())

    @schema.row_action(
        "get",
        chart_tables.RESPONSES,
        (),
        parameters=[*chart_tables.PARAMETERS],
        url_path=chart_tables.NAME,
        filter_backends=[],
    )
    def chart(self, request: Request, slug: str, name: str) -> HttpResponse:
        """Return the table behind a chart, in the units of its column names."""
        return chart_tables.table_answer(request, charts_of(self.get_object()), name)

    @schema.row_action("get", ResultSerializer, (404,))
    def result(self, request: Request, slug: str) -> HttpResponseBase:
        """Return the experiment with all current trials and results."""
        return result_answer(self.get_object(), request)

    def _editable(self, request: Request) -> Experiment:
        """Return the experiment for a change. Raise ReadOnly, PermissionDenied."""
        experiment: Experiment = self.get_object()
        experiment.require_editable()
        if not access.may_cancel(request.user, experiment):
            raise PermissionDenied("Only maintainers of the project and the owner of the experiment may change it.")
        return experiment

    def _repeatable(self, request: Request) -> Experiment:
        """Return the experiment for more trials. Raise ReadOnly, PermissionDenied."""
        experiment = self._editable(request)
        if not access.may_run_more(request.user, experiment):
            raise PermissionDenied("Only maintainers of this project may run this workload or transport.")
        return experiment

    def _submitted(self, request: Request, spec: ExperimentSpec, project: Project) -> Response:
        data = self._data_of(queue.submit(spec, project=project, owner=request.user))
        return Response(data, status=201, headers={"Location": str(data["url"])})

    def _data_of(self, experiments: Any, *, many: bool = False, names: Sequence[str] | None = None) -> Any:
        rows: Iterable[Experiment] = experiments if many else [experiments]
        context = {**self.get_serializer_context(), fields.NAME: names}
        if names is None or {"status", "trials"} & set(names):
            context["progress"] = selectors.progress_of(rows)
        return self.get_serializer_class()(experiments, many=many, context=context).data


def _queued(made: int | BackgroundTask, request: Request) -> Response:
    return accepted(made, request) if isinstance(made, BackgroundTask) else Response({"queued": made})
