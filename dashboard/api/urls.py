"""URLs of REST, version 1."""

from __future__ import annotations

import threading
from typing import Any, ClassVar

from django.urls import include, path, re_path, resolve
from drf_spectacular.views import SpectacularJSONAPIView
from rest_framework.exceptions import NotFound
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import DefaultRouter
from rest_framework.views import APIView

from dashboard.api.activity import ChangeViewSet, EventViewSet
from dashboard.api.background import BackgroundTaskViewSet
from dashboard.api.bundles import BundlesView, ImportsView
from dashboard.api.clusters import ClusterViewSet, ProgramViewSet, WorkloadViewSet
from dashboard.api.configurations import ConfigurationViewSet
from dashboard.api.credentials import ShareLinkViewSet, TokenViewSet
from dashboard.api.experiments.published import PublishedViewSet
from dashboard.api.experiments.rows import ExperimentViewSet
from dashboard.api.explore import CompareView, ExploreExportView, ExploreView
from dashboard.api.history import HistoriesView, HistoryView
from dashboard.api.installation import MetricsView, QuotasView, StatusView
from dashboard.api.people import PersonViewSet
from dashboard.api.predictions import NetworksView, PredictionViewSet
from dashboard.api.projects import ProjectViewSet
from dashboard.api.reports import ReportViewSet
from dashboard.api.trials.rows import TrialViewSet
from dashboard.api.validate import ValidateView


class SchemaView(SpectacularJSONAPIView):
    """The OpenAPI document, made by one thread at a time.

    The library loads its extensions in the first request, without a lock.
    """

    schema = None
    permission_classes = (IsAuthenticated,)
    _making: ClassVar = threading.Lock()

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        with self._making:
            response: Response = super().get(request, *args, **kwargs)  # type: ignore[no-untyped-call]
        return response


class NotFoundView(APIView):
    """Unknown URLs below /api/ answer 404 in JSON."""

    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        sentence = f"There is nothing at {request.path}."
        view = resolve(f"{request.path_info}/").func
        if not request.path.endswith("/") and getattr(view, "view_class", None) is not NotFoundView:
            sentence += f" The URL is {request.path}/."
        raise NotFound(sentence)


router = DefaultRouter()
router.include_format_suffixes = False
router.register("experiments", ExperimentViewSet, basename="experiment")
router.register("configurations", ConfigurationViewSet, basename="configuration")
router.register("clusters", ClusterViewSet, basename="cluster")
router.register("workloads", WorkloadViewSet, basename="workload")
router.register("programs", ProgramViewSet, basename="program")
router.register("trials", TrialViewSet, basename="trial")
router.register("people", PersonViewSet, basename="person")
router.register("predictions", PredictionViewSet, basename="prediction")
router.register("published", PublishedViewSet, basename="published")
router.register("events", EventViewSet, basename="event")
router.register("changes", ChangeViewSet, basename="change")
router.register("projects", ProjectViewSet, basename="project")
router.register("reports", ReportViewSet, basename="report")
router.register("shares", ShareLinkViewSet, basename="share")
router.register("tasks", BackgroundTaskViewSet, basename="task")
router.register("tokens", TokenViewSet, basename="token")

app_name = "api"
urlpatterns = [
    path("", include(router.urls)),
    path("bundles/", BundlesView.as_view(), name="bundles"),
    path("imports/", ImportsView.as_view(), name="imports"),
    path("compare/", CompareView.as_view(), name="compare"),
    path("explore/", ExploreView.as_view(), name="explore"),
    path("explore/export/<slug:form>/", ExploreExportView.as_view(), name="explore-export"),
    path("history/", HistoriesView.as_view(), name="histories"),
    path("history/<slug:configuration>/<slug:cluster>/", HistoryView.as_view(), name="history"),
    path("metrics/", MetricsView.as_view(), name="metrics"),
    path("networks/", NetworksView.as_view(), name="networks"),
    path("quotas/", QuotasView.as_view(), name="quotas"),
    path("schema/", SchemaView.as_view(), name="schema"),
    path("status/", StatusView.as_view(), name="status"),
    path("validate/", ValidateView.as_view(), name="validate"),
    re_path(r"^", NotFoundView.as_view()),  # any rest, including line feeds
]
