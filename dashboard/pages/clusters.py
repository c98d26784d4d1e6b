"""Clusters: where trials run, whether they do now, and what is stated about them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods

from analysis import numbers
from dashboard.panels.cluster.rows import cluster_rows
from dashboard.panels.new.form import Field
from experiments.access import may_describe_clusters, may_set_up_clusters
from experiments.cluster_kinds import facts as cluster_facts
from experiments.errors import InvalidSpec
from experiments.models import Cluster, Trial

_GROUPS: Final = (
    ("Processors", "Theoretical peak is clock × cores × operations per cycle.", 4),
    ("Price and power", "For the price per GFLOP/s and MFLOP/s per watt; nothing is converted.", 3),
    ("Price of a run", "For what waiting costs: rent, or the price over the years of use.", 3),
    ("Network", "What loads are held against on real hosts. A test of the cluster fills in what is not known.", 3),
)
"""Headings of the form, each with so many facts in their order."""


@require_GET
def clusters(request: HttpRequest) -> HttpResponse:
    """The list of clusters."""
    shown = {
        "place": "clusters",
        "rows": cluster_rows(),
        "may_describe": may_describe_clusters(request.user),
        "may_set_up": may_set_up_clusters(request.user),
    }
    return render(request, "clusters/page.html", shown)


@require_http_methods(["GET", "HEAD", "POST"])
def facts(request: HttpRequest, slug: str) -> HttpResponse:
    """The form of a cluster's facts; on POST keep them, or show the errors at their fields with status 422."""
    if not may_describe_clusters(request.user):
        raise PermissionDenied
    cluster = get_object_or_404(Cluster, slug=slug)
    known = cluster_facts.fields()
    if request.method != "POST":
        written = {name: cluster_facts.written(name, value) for name, value in cluster.facts.items() if name in known}
        return _form(request, cluster, written)
    texts = {name: request.POST.get(name, "") for name in known}
    try:
        stated = cluster_facts.parse_facts(texts)
    except InvalidSpec as error:
        return _form(request, cluster, texts, error)
    # What the administration holds besides stays.
    cluster.describe({name: value for name, value in cluster.facts.items() if name not in known} | stated)
    messages.success(request, f"The facts of {cluster.name} are saved.", extra_tags="ok")
    return redirect("clusters")


def _form(
    request: HttpRequest, cluster: Cluster, texts: Mapping[str, str], error: InvalidSpec | None = None
) -> HttpResponse:
    errors = error.by_path() if error else {}
    fields = [
        Field(name, info.title or name, texts.get(name, ""), hint=info.description or "", errors=errors.get(name, ()))
        for name, info in cluster_facts.fields().items()
    ]
    groups, rest = [], iter(fields)
    for title, purpose, count in _GROUPS:
        groups.append((title, purpose, [next(rest) for _ in range(count)]))
    shown = {"place": "clusters", "cluster": cluster, "groups": groups, "processor": _processor(cluster)}
    return render(request, "clusters/facts.html", shown, status=422 if error else 200)


def _processor(cluster: Cluster) -> str:
    """What the latest trial found of the processor; '' before there is one."""
    latest = Trial.objects.filter(cluster=cluster, environment__isnull=False).select_related("environment")
    trial = latest.only("environment").order_by("-pk").first()
    cpu = trial.environment.facts.get("cpu", {}) if trial and trial.environment else {}
    return f"{cpu['model']}, {numbers.plural(cpu['cores'], 'core')}" if {"model", "cores"} <= cpu.keys() else ""
