"""New experiment: the form, its preview, and YAML import and export."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django_htmx.http import trigger_client_event

from analysis.numbers import plural
from dashboard.background.diagnoses import share_done
from dashboard.panels.experiment.excluded_trials import Stale, stale_points
from dashboard.panels.new.draft import (
    as_yaml,
    draft_from_post,
    is_from_yaml,
    posted_draft,
    with_lines,
    without_foreign_figures,
)
from dashboard.panels.new.form import Form, drop_filled_in
from dashboard.panels.new.network_draft import network_draft
from dashboard.panels.new.preview import Preview, make_preview, notes_of_link
from dashboard.panels.new.proposal import starting_draft, with_own_sweep
from dashboard.requests.idempotency import idempotent_redirect
from dashboard.requests.lookup import query_value
from experiments import workloads
from experiments.access import (
    may_submit,
    may_submit_somewhere,
    projects_for,
    restricted_field,
    visible_clusters,
    visible_experiments,
    visible_trials,
)
from experiments.errors import FieldError, InvalidSpec
from experiments.library import built_in
from experiments.models import Cluster, Experiment, Project
from experiments.models.experiment import cluster_for, require_offered
from experiments.revision import Revision, preview_of
from experiments.selectors import quotas
from experiments.selectors.diagnosis import answers_of, cached_diagnosis, diagnosis_of
from experiments.specification import ExperimentSpec, design, parse
from experiments.specification.goal import Budget
from experiments.specification.network_study import expanded
from experiments.specification.parameters import CLUSTER_PARAMETERS, LAUNCH_PARAMETERS
from experiments.specification.yaml_lines import YamlDocument
from workers import queue

_CLUSTERS = Cluster.objects.filter(enabled=True).order_by("slug")


@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """Show the form; on POST start the experiment or show errors (422)."""
    if request.method != "POST":
        return _about_network(request) if query_value(request, "network") else _page(request, _starting_draft(request))
    try:
        _require_role(request.user)
        spec = parse(posted_draft(request.POST, max_trials=settings.MAX_TRIALS), max_trials=settings.MAX_TRIALS)
        project = _project(request, spec)
        return idempotent_redirect(request, lambda: _started(request, spec, project))
    except InvalidSpec as error:
        return _page(request, draft_from_post(request.POST), error, status=422)


def _started(request: HttpRequest, spec: ExperimentSpec, project: Project) -> HttpResponseRedirect:
    first_only = "first_only" in request.POST
    experiment = queue.submit(
        spec, project=project, owner=request.user, cloned_from=_original(request), first_only=first_only
    )
    words = f"Queued {plural(experiment.trials.count(), 'trial')}."
    if first_only:
        words = "Queued the first trial. Run the missing trials when it has finished."
    messages.success(request, words, extra_tags="ok queued")
    if "tour" in request.POST:
        return redirect(f"{experiment.get_absolute_url()}?tour=1")
    # A study of the network has its answer on the page Network what-if.
    return redirect("network", experiment.slug) if "network" in request.POST else redirect(experiment)


@require_POST
def preview(request: HttpRequest) -> HttpResponse:
    """Render the preview of the form or the YAML, whichever was edited last."""
    chosen, refused = request.POST.get("chosen", ""), None
    chosen_number = int(chosen) if chosen.isdecimal() and len(chosen) < 10 else 0
    try:
        _require_role(request.user)
        draft = posted_draft(request.POST, max_trials=settings.MAX_TRIALS)
    except InvalidSpec as error:
        draft, refused = draft_from_post(request.POST), error
    context = form_context(
        request.user, draft, refused, chosen_number, _editing(request), request.POST.get("project", "")
    )
    context["has_no_role"] = refused is not None and refused.by_path().keys() == {"project"}
    return render(request, "new/_preview.html", context | typed_yaml(request, refused, context["error"]))


@require_POST
def fields(request: HttpRequest) -> HttpResponse:
    """Render the form for another workload, with the values that the user chose."""
    clusters, post = list(_CLUSTERS.all()), request.POST.copy()
    workload, cluster, previous = (post.get(name, "") for name in ("workload", "cluster", "previous"))
    if workload == previous:  # only another version of a program
        draft = draft_from_post(post)
    else:
        proposed = starting_draft(clusters, workload=workload, cluster=cluster)
        # The form may have been filled in before the cluster was chosen, or as the first study.
        filled = [
            starting_draft(clusters, workload=name, cluster=slug) for name in (previous, "") for slug in (cluster, "")
        ]
        is_filled_in = drop_filled_in(post, [Form(draft) for draft in filled if draft["workload"] == previous])
        draft = with_own_sweep(draft_from_post(post), proposed, is_filled_in=is_filled_in)
        draft["name"] = draft["name"] or proposed["name"]
    draft = without_foreign_figures(draft)
    context = form_context(request.user, draft, _refused(request.user), editing=_editing(request))
    response = render(request, "new/_steps.html", context)
    return trigger_client_event(response, "rankwire:changed", after="settle")


@require_GET
def download_yaml(request: HttpRequest, slug: str) -> HttpResponse:
    """Download an experiment's specification as YAML for `script/run` and the client."""
    experiment = get_object_or_404(visible_experiments(request.user).select_related("project"), slug=slug)
    # A token may be limited to this project, whose name visitors and readers of a published experiment need not see.
    is_submitter = may_submit(request.user, experiment.project)
    head = f"# rankwire submit {slug}.yaml --project {experiment.project.slug}\n" if is_submitter else ""
    response = HttpResponse(head + as_yaml(experiment.specification), content_type="application/yaml; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{experiment.slug}.yaml"'
    return response


def _editing(request: HttpRequest) -> Experiment | None:
    slug = request.POST.get("editing", "")
    return visible_experiments(request.user).filter(slug=slug, published=False).first() if slug else None


def _starting_draft(request: HttpRequest) -> dict[str, Any]:
    """Return the draft of a clone, a built-in or a new experiment."""
    if experiment := _original(request):
        if query_value(request, "best"):
            return _with_best_settings(experiment)
        if query_value(request, "next"):
            return _with_next_trials(experiment)
        return {**experiment.specification, "name": f"{experiment.name}, again"[:120]}
    if name := query_value(request, "library"):
        file = next((file for file in built_in() if file.stem == name), None)
        if file is None:
            raise Http404(f"no built-in experiment {name}")
        return expanded(YamlDocument(file.read_text()).data)
    clusters, slug = list(_CLUSTERS.all()), query_value(request, "cluster")
    if slug and slug not in [cluster.slug for cluster in clusters]:
        why = "is switched off" if visible_clusters(request.user).filter(slug=slug).exists() else "does not exist"
        messages.warning(request, f"The cluster {slug[:80]} {why}. Another one is chosen.", extra_tags="warning")
    return starting_draft(clusters, workload=query_value(request, "workload"), cluster=slug)


def _with_best_settings(experiment: Experiment) -> dict[str, Any]:
    """Return a fixed design with the best settings of a search. Raise Http404."""
    answer = answers_of([experiment]).get(experiment.pk)
    best = answer.figure("times the start") if answer is not None else None
    if best is None:
        raise Http404("no settings are confirmed")
    draft = {name: value for name, value in experiment.specification.items() if name not in ("sweep", "goal", "where")}
    draft |= {"name": f"{experiment.name}, best settings"[:120], "repetitions": experiment.spec.at_least}
    for name, value in best.where.items():
        part = "link" if name.startswith("link.") else "" if name in LAUNCH_PARAMETERS else "parameters"
        if part:
            draft[part] = {**draft.get(part, {}), name.removeprefix("link."): value}
        else:
            draft[name] = value
    return draft


def _with_next_trials(experiment: Experiment) -> dict[str, Any]:
    """Return a draft with the recommended next trials. Raise Http404.

    Without a goal it is a fixed design of them alone; with one, the whole design and its goal.
    """
    # The background worker makes the diagnosis of a large experiment: here it would hold a thread.
    is_made_here = share_done(experiment) is None
    diagnosis = diagnosis_of(experiment) if is_made_here else cached_diagnosis(experiment)[0]
    suggested = diagnosis.suggested if diagnosis is not None else []
    if not suggested:
        raise Http404("no trials are recommended")
    draft, name = dict(experiment.specification), f"{experiment.name}, again"[:120]
    if "sweep" in draft and "zip" not in draft and not experiment.spec.explores:  # its rounds choose the sizes
        sizes = {name: {point[name] for point, _ in suggested if name in point} for name in CLUSTER_PARAMETERS}
        measured = experiment.spec.values() if "goal" in draft else {}
        draft["sweep"] = {
            name: sorted(more.union(measured.get(name, ()))) if (more := sizes.get(name)) else values
            for name, values in draft["sweep"].items()
        }
    if "goal" in draft:  # its question is of all sizes, and its rounds choose the repetitions in a larger budget
        extra = Budget(trials=sum(count for _, count in suggested))
        budget = Budget(**draft["goal"]["budget"]).extended(extra).model_dump(exclude_none=True)
        return {**draft, "name": name, "goal": {**draft["goal"], "budget": budget}}
    return {**draft, "name": name, "repetitions": max(count for _, count in suggested)}


def _original(request: HttpRequest) -> Experiment | None:
    """Return the original of a clone; of a sent form only if visible. Raise Http404.

    An original that was deleted since then is ignored: what the user entered is not lost.
    """
    if not (slug := request.POST.get("from") or query_value(request, "from")):
        return None
    experiments = visible_experiments(request.user).select_related("project").filter(slug=slug, published=False)
    return experiments.first() if request.method == "POST" else get_object_or_404(experiments)


def _about_network(request: HttpRequest) -> HttpResponse:
    experiment = get_object_or_404(
        visible_experiments(request.user), slug=query_value(request, "network"), published=False
    )
    try:
        draft = network_draft(experiment)
    except (InvalidSpec, ValueError) as error:
        messages.error(request, f"No study of the network can follow: {error}.", extra_tags="bad")
        return redirect(experiment)
    return _page(request, draft)


def _project(request: HttpRequest, spec: ExperimentSpec) -> Project:
    specification = spec.to_dict()
    able = projects_for(request.user, specification)
    slug = request.POST.get("project", "")
    project = next((option for option in able if slug in ("", option.slug)), None)
    if project is None:
        where = "this project" if slug else "any of your projects"
        field = restricted_field(specification) or "workload"
        raise InvalidSpec([FieldError(field, f"you may not start this {field} in {where}")])
    return project


def _over_quota(user: Any, slug: str, spec: ExperimentSpec, adding: int) -> list[str]:
    """Return why the project's quotas would refuse the trials of a preview."""
    project = next((option for option in projects_for(user, spec.to_dict()) if slug in ("", option.slug)), None)
    if project is None:
        return []
    waiting = quotas.waiting_trials(project)
    refused = quotas.problems(project, waiting=waiting, adding=adding, capturing=spec.capture.enabled)
    return [f"Start would be refused: {problem.message}." for problem in refused]


def _require_role(user: Any) -> None:
    """Check permission before parsing: parsing is expensive. Raise InvalidSpec."""
    if (refused := _refused(user)) is not None:
        raise refused


def _refused(user: Any) -> InvalidSpec | None:
    if may_submit_somewhere(user):
        return None
    return InvalidSpec([FieldError("project", "you may not start experiments in any project")])


def _page(
    request: HttpRequest, draft: dict[str, Any], error: InvalidSpec | None = None, status: int = 200
) -> HttpResponse:
    about_network = bool(query_value(request, "network")) or "network" in request.POST
    choice = project_choice(request)
    context = form_context(request.user, draft, error, project=choice["chosen_project"]) | choice
    context |= typed_yaml(request, error, context["error"])
    tour = bool(query_value(request, "tour")) or "tour" in request.POST
    context["has_no_role"] = not context["projects"]
    context |= {"place": "experiments", "about_network": about_network, "tour": tour}
    return render(request, "new/page.html", context, status=status)


def typed_yaml(request: HttpRequest, refused: InvalidSpec | None, error: InvalidSpec | None) -> dict[str, Any]:
    """Return YAML that the user typed, unchanged, with its errors.

    Without a refusal, `error` is the cluster's: the text is read again for the lines.
    """
    if not is_from_yaml(request.POST):
        return {}
    text = request.POST.get("yaml", "")
    errors = refused.errors if refused else with_lines(text, error.errors) if error else ()
    in_order = sorted(errors, key=lambda error: error.line or 0)
    return {"from_yaml": True, "yaml": text, "yaml_errors": in_order}


def project_choice(request: HttpRequest) -> dict[str, Any]:
    """Return the projects that the user may submit to and the chosen one."""
    able = projects_for(request.user)
    original = _original(request)
    project = original.project if original else None
    chosen = request.POST.get("project") or (project.slug if project in able and project else "")
    return {
        "projects": able,
        "chosen_project": chosen or (able[0].slug if able else ""),
        "original": original,
        "foreign_original": project if project not in able else None,
    }


def form_context(
    user: Any,
    draft: dict[str, Any],
    error: InvalidSpec | None = None,
    chosen: int = 0,
    editing: Experiment | None = None,
    project: str = "",
) -> dict[str, Any]:
    """Return the context of the form, its preview, and the effects of an edit."""
    clusters = list(Cluster.objects.filter(elsewhere=False).order_by("-enabled", "slug"))
    made: Preview | None = None
    change: Revision | None = None
    stale: Stale | None = None
    if error is None:
        try:
            spec = parse(draft, max_trials=settings.MAX_TRIALS)
            if editing is None or spec.workload != editing.workload:
                require_offered(spec)
            plan = design.expand(spec) if editing is None else editing.plan_of(spec)
            past = visible_trials(user, by_keys=True)
            made = make_preview(spec, plan, chosen, cluster_for(spec, plan), user, past)
            made = replace(made, notes=[*notes_of_link(draft), *made.notes])
            if editing is None:
                made = replace(made, notes=[*_over_quota(user, project, spec, made.everything), *made.notes])
            else:
                change = preview_of(editing, spec, plan)
                stale = stale_points(editing, spec, change)
        except InvalidSpec as mistake:
            error = mistake
    return {
        "form": Form(draft, error.by_path() if error else {}, clusters),
        "preview": made,
        "editing": editing,
        "error": error,
        "change": change,
        "stale": stale,
        "yaml": as_yaml(draft),
        "workloads": [
            (workload, workloads.missing_packages(workload))
            for workload in workloads.registry()
            if not workload.retired or workload.slug == draft.get("workload")
        ],
    }
