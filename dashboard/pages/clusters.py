"""Clusters: list, page, facts, settings and tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from analysis import numbers
from dashboard.panels.cluster.form import ClusterForm
from dashboard.panels.cluster.measurable import measurable
from dashboard.panels.cluster.rows import ClusterRow, cluster_rows
from dashboard.panels.new.form import Field
from dashboard.states import chip_of
from experiments import cluster_kinds
from experiments.access import (
    may_describe_clusters,
    may_set_up_clusters,
    may_test_clusters,
    visible_clusters,
    visible_deleted,
    visible_experiments,
)
from experiments.cluster_kinds import facts as cluster_facts
from experiments.cluster_kinds.form import form_of, texts_of
from experiments.errors import ClusterInUse, InvalidSpec
from experiments.files import MPI_PROFILE_NAME
from experiments.models import Artifact, Cluster, ClusterTest, State, Trial
from experiments.models.cluster_check import PROBLEM, SKIPPED, WARNING, without_details
from experiments.selectors.queue_forecast import outlooks
from workers import queue

_FACT_GROUPS: Final = (
    ("Processors", "Theoretical peak is clock × cores × operations per cycle.", 4),
    ("Price and power", "For the price per GFLOP/s and MFLOP/s per watt; nothing is converted.", 4),
    ("Price of a run", "For the cost of waiting: rent, or the price over the years of use.", 3),
    ("Network", "For comparing loads with limits of real hosts.", 3),
)
"""Headings of the form, each with its number of facts."""


@require_GET
def clusters(request: HttpRequest) -> HttpResponse:
    """Show the list of clusters."""
    context = {
        "place": "clusters",
        "rows": cluster_rows(visible_clusters(request.user)),
        "may_describe": may_describe_clusters(request.user),
        "may_set_up": may_set_up_clusters(request.user),
    }
    return render(request, "clusters/page.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def facts(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the form of a cluster's facts; on POST save them or show errors (422)."""
    if not may_describe_clusters(request.user):
        raise PermissionDenied
    cluster = get_object_or_404(visible_clusters(request.user), slug=slug)
    fields = cluster_facts.fields()
    if request.method != "POST":
        written = {name: cluster_facts.written(name, value) for name, value in cluster.facts.items() if name in fields}
        return _facts_form(request, cluster, written)
    texts = {name: request.POST.get(name, "") for name in fields}
    try:
        stated = cluster_facts.parse_facts(texts)
    except InvalidSpec as error:
        return _facts_form(request, cluster, texts, error)
    # Facts that the form does not show stay.
    cluster.describe({name: value for name, value in cluster.facts.items() if name not in fields} | stated)
    messages.success(request, f"The facts of {cluster.name} are saved.", extra_tags="ok")
    return redirect("cluster", slug)


def _facts_form(
    request: HttpRequest, cluster: Cluster, texts: Mapping[str, str], error: InvalidSpec | None = None
) -> HttpResponse:
    errors = error.by_path() if error else {}
    fields = [
        Field(name, info.title or name, texts.get(name, ""), hint=info.description or "", errors=errors.get(name, ()))
        for name, info in cluster_facts.fields().items()
    ]
    groups, rest = [], iter(fields)
    for title, purpose, count in _FACT_GROUPS:
        groups.append((title, purpose, [next(rest) for _ in range(count)]))
    context = {"place": "clusters", "cluster": cluster, "groups": groups, "processor": _processor(cluster)}
    context["is_filled_in"] = not cluster.traits.on_this_machine
    context["refused_fields"] = [field for field in fields if field.errors]
    return render(request, "clusters/facts.html", context, status=422 if error else 200)


def _processor(cluster: Cluster) -> str:
    latest = Trial.objects.filter(cluster=cluster, environment__isnull=False).select_related("environment")
    trial = latest.only("environment").order_by("-pk").first()
    cpu = trial.environment.facts.get("cpu", {}) if trial and trial.environment else {}
    return f"{cpu['model']}, {numbers.plural(cpu['cores'], 'core')}" if {"model", "cores"} <= cpu.keys() else ""


@require_GET
def page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show a cluster with its facts; its settings to users who can change them."""
    cluster = get_object_or_404(visible_clusters(request.user), slug=slug)
    (row,) = cluster_rows(Cluster.objects.filter(pk=cluster.pk))
    test_context = _test_of(request, cluster)
    may_set_up = test_context["may_set_up"]
    context = {
        **test_context,
        "place": "clusters",
        "row": row,
        "may_describe": may_describe_clusters(request.user),
        "reason_to_keep": cluster.reason_to_keep(visible_deleted(request.user)) if may_set_up else "",
        "settings": _settings(row) if may_set_up else None,
    }
    return render(request, "clusters/cluster.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def test(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the last check; on POST request one, or ``cancel`` the waiting one."""
    cluster = get_object_or_404(visible_clusters(request.user), slug=slug)
    if request.method != "POST":
        return render(request, "clusters/_test.html", {**_test_of(request, cluster), "is_update": True})
    if not may_test_clusters(request.user) or cluster.elsewhere:
        raise PermissionDenied
    if "cancel" in request.POST:
        if not queue.cancel_check(cluster):
            messages.info(request, "The check is no longer waiting.")
    elif not queue.request_check(cluster):
        messages.info(request, "A check already waits or runs.")
    return redirect("cluster", cluster.slug)


@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """Show the form of a new cluster; on POST store it or show errors (422).

    ``test`` stores it switched off and tests it, as workers test only stored clusters.
    """
    if not may_set_up_clusters(request.user):
        raise PermissionDenied
    kinds = cluster_kinds.registry()
    name = request.POST.get("kind") or request.GET.get("kind")
    kind = next((option for option in kinds if option.name == name), None)
    if kind is None:
        kind = next(option for option in kinds if not option.exists_everywhere)
    return _form(request, ClusterForm(kind, texts=_texts(request)))


@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the form of an existing cluster; on POST save it or show errors (422)."""
    cluster = _set_up(request, slug)
    form = ClusterForm(cluster.traits, cluster=cluster, texts=_texts(request))
    form.note_stored_errors()
    return _form(request, form)


@require_POST
def switch(request: HttpRequest, slug: str) -> HttpResponse:
    """Enable (``on``) or disable the cluster for new experiments."""
    cluster, on = _set_up(request, slug), "on" in request.POST
    if on and cluster.settings_errors:
        messages.error(request, "Not switched on: the settings are wrong. Fix them first.", extra_tags="bad")
        return redirect("cluster", cluster.slug)
    cluster.switch(on=on)
    words = "accepts experiments now." if on else "accepts no new experiments; running trials finish."
    if not on and (queued := _queued(cluster)):
        waits = "wait" if queued > 1 else "waits"
        words += f" {numbers.plural(queued, 'queued trial')} {waits} until it is switched on."
    messages.success(request, f"{cluster.name} {words}", extra_tags="ok")
    return redirect("cluster", cluster.slug)


@require_POST
def remove(request: HttpRequest, slug: str) -> HttpResponse:
    """Delete a cluster without trials."""
    cluster = _set_up(request, slug)
    try:
        cluster.remove()
    except ClusterInUse as error:
        messages.error(request, f"{error} Switch it off instead.", extra_tags="bad")
        return redirect("cluster", slug)
    messages.success(request, f"{cluster.name} is deleted.", extra_tags="ok")
    return redirect("clusters")


def _set_up(request: HttpRequest, slug: str) -> Cluster:
    if not may_set_up_clusters(request.user):
        raise PermissionDenied
    return get_object_or_404(Cluster, slug=slug, elsewhere=False)


def _test_of(request: HttpRequest, cluster: Cluster) -> dict[str, Any]:
    last, may_test = ClusterTest.objects.filter(cluster=cluster).first(), may_test_clusters(request.user)
    if last and not may_test:
        last.steps = without_details(last.steps)
    counts = last.counts.items() if last else ()
    running = last.running_trial if last and last.is_waiting else None
    return {
        "cluster": cluster,
        "test": last,
        "counts": [(state, _counted(state, count)) for state, count in counts],
        "took": (last.ended_at - last.begun_at).total_seconds() if last and last.begun_at and last.ended_at else None,
        "measurable": measurable(last, {} if last and last.steps else _recorded(cluster)),
        "running": running,
        "running_is_visible": running and visible_experiments(request.user).filter(pk=running.experiment_id).exists(),
        "running_left_s": outlooks([], [running])[running.experiment_id].left_s if running else None,
        "may_test": may_test and not cluster.elsewhere,
        "sees_details": may_test,
        "steps": _steps(last.steps if last else ()),
        "may_set_up": may_set_up_clusters(request.user) and not cluster.elsewhere,
        "failure": ClusterTest.failure_of(cluster),
        "queued": _queued(cluster),
    }


def _queued(cluster: Cluster) -> int:
    return Trial.objects.filter(cluster=cluster, state=State.QUEUED).count()


def _recorded(cluster: Cluster) -> dict[str, int]:
    """Count the trials of a cluster that recorded each source."""
    files = {
        "packets": Q(kind=Artifact.Kind.CAPTURE),
        "calls": Q(name=MPI_PROFILE_NAME),
        "counters": Q(kind=Artifact.Kind.SAMPLES),
    }
    of_cluster = Artifact.objects.filter(trial__cluster=cluster).order_by()
    return of_cluster.aggregate(**{name: Count("trial", distinct=True, filter=of) for name, of in files.items()})


def _counted(state: str, count: int) -> str:
    """Return '3 problems', '2 ok', '3 without result'."""
    word = "without result" if state == SKIPPED else chip_of(state).word.lower()
    return numbers.plural(count, word) if state in (WARNING, PROBLEM) else f"{count} {word}"


def _steps(steps: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the steps of a check, those not tried for one reason as one."""
    rows: list[dict[str, Any]] = []
    for step in steps:
        last = rows[-1] if rows else None
        if last and step["state"] == last["state"] == SKIPPED and step["seen"] == last["seen"]:
            last["name"] += f", {step['name']}"
        else:
            rows.append(dict(step))
    return rows


def _texts(request: HttpRequest) -> dict[str, str] | None:
    return {name: str(text) for name, text in request.POST.items()} if request.method == "POST" else None


def _form(request: HttpRequest, form: ClusterForm) -> HttpResponse:
    status = 200
    if request.method == "POST":
        try:
            cluster = form.save()
        except InvalidSpec:
            status = 422
        else:
            words = "is saved"
            if "test" in request.POST:
                queue.request_check(cluster)
                words += (
                    "; its check is below" if form.cluster else " but switched off. Switch it on to run experiments"
                )
            messages.success(request, f"{cluster.name} {words}.", extra_tags="ok")
            return redirect("cluster", cluster.slug)
    failure = ClusterTest.failure_of(form.cluster) if form.cluster else ""
    context = {"place": "clusters", "form": form, "cluster": form.cluster, "failure": failure}
    context["kinds"] = cluster_kinds.registry()
    return render(request, "clusters/form.html", context, status=status)


def _settings(row: ClusterRow) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return the settings by heading, with defaults of those not set."""
    kind = row.cluster.traits
    texts = texts_of(kind, row.cluster.settings)
    groups: dict[str, list[dict[str, Any]]] = {}
    for setting in form_of(kind):
        text = texts.get(setting.path, "")
        value = dict(setting.choices).get(text, text) if setting.shape != "check" else text and "yes"
        usual = dict(setting.choices).get(setting.usual, setting.usual)
        if value or usual:
            groups.setdefault(setting.group, []).append(
                {"title": setting.title, "value": value, "usual": usual, "hint": setting.hint}
            )
    return list(groups.items())
