"""Addresses of the pages."""

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import URLPattern, URLResolver, path

from dashboard.pages import (
    change,
    clusters,
    compare,
    diagnosis,
    experiment,
    experiments,
    explore,
    histories,
    history,
    home,
    new,
    packets,
    trial,
    workloads,
)
from dashboard.pages.gallery import run as run_study
from dashboard.pages.gallery import studies
from dashboard.pages.parts import parts

urlpatterns: list[URLPattern | URLResolver] = [
    path("", home.home, name="home"),
    path("pulse/", home.pulse, name="pulse"),
    path("sign-in/", LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("sign-out/", LogoutView.as_view(), name="logout"),
    path("search/", experiments.search, name="search"),
    path("experiments/", experiments.experiments, name="experiments"),
    path("experiments/new/", new.new, name="new"),
    path("experiments/new/preview/", new.preview, name="new-preview"),
    path("experiments/new/fields/", new.fields, name="new-fields"),
    path("experiments/new/apply/", new.apply_yaml, name="new-apply"),
    path("experiments/<slug:slug>/", experiment.experiment, name="experiment"),
    path("experiments/<slug:slug>/live/", experiment.live, name="experiment-live"),
    path("experiments/<slug:slug>/parts/", parts, name="experiment-parts"),
    path("experiments/<slug:slug>/diagnosis/", diagnosis.diagnosis, name="experiment-diagnosis"),
    path("experiments/<slug:slug>/edit/", change.edit, name="experiment-edit"),
    path("experiments/<slug:slug>/rerun/", change.rerun, name="experiment-rerun"),
    path("experiments/<slug:slug>/repeat/", change.repeat, name="experiment-repeat"),
    path("experiments/<slug:slug>/next/", change.next_points, name="experiment-next"),
    path("experiments/<slug:slug>/cancel/", experiment.cancel, name="experiment-cancel"),
    path("experiments/<slug:slug>/specification.yaml", new.download_yaml, name="experiment-yaml"),
    path("trials/<int:pk>/", trial.trial, name="trial"),
    path("trials/<int:pk>/live/", trial.live, name="trial-live"),
    path("trials/<int:pk>/packets/", packets.packets, name="trial-packets"),
    path("trials/<int:pk>/packets/<int:number>/", packets.packet, name="trial-packet"),
    path("trials/<int:pk>/environment/", trial.environment, name="trial-environment"),
    path("trials/<int:pk>/again/", trial.again, name="trial-again"),
    path("trials/<int:pk>/cancel/", trial.cancel, name="trial-cancel"),
    path("trials/<int:pk>/files/<str:name>", trial.download, name="artifact"),
    path("compare/", compare.compare_page, name="compare"),
    path("explore/", explore.explore, name="explore"),
    path("explore/export.<str:form>", explore.export, name="explore-export"),
    path("explore/views/", explore.save_view, name="explore-save"),
    path("explore/views/<int:pk>/", explore.view, name="explore-view"),
    path("explore/views/<int:pk>/delete/", explore.delete_view, name="explore-delete"),
    path("history/", histories.index, name="histories"),
    path("history/<slug:configuration>/<slug:cluster>/", history.history, name="history"),
    path("history/<slug:configuration>/<slug:cluster>/mark/", history.mark, name="history-mark"),
    path("studies/", studies, name="studies"),
    path("studies/<slug:stem>/run/", run_study, name="study-run"),
    path("clusters/", clusters.clusters, name="clusters"),
    path("clusters/<slug:slug>/facts/", clusters.facts, name="cluster-facts"),
    path("workloads/", workloads.workloads, name="workloads"),
]
