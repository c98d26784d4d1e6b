"""Share links: create, revoke and open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from dashboard.middleware.visitors import OPENED
from dashboard.reports.markdown import parts_of
from dashboard.reports.parts import pinned_in
from dashboard.reports.views import find_report
from dashboard.requests import share_links
from dashboard.requests.lookup import find_experiment, requested_comparison
from experiments.access import may_manage, may_write_reports, visible_reports
from experiments.errors import CannotCompare
from experiments.models import Experiment, Report, ShareLink
from experiments.models.people.share_link import DAYS

_MOST_KEPT: Final = 20


class ShareForm(forms.Form):
    """Form of a new link."""

    days = forms.TypedChoiceField(
        label="Valid for", coerce=int, choices=[(days, f"{days} days") for days in DAYS], initial=DAYS[0]
    )


@login_not_required
@require_GET
def open_link(request: HttpRequest, key: str) -> HttpResponse:
    """Store the link in the session and redirect to its page."""
    link = ShareLink.find(key)
    if link is None:
        why = "It was revoked, it has expired, or its URL is incomplete."
        return render(request, "people/link_over.html", {"why": why}, status=404)
    opened = [pk for pk in request.session.get(OPENED, []) if pk != link.pk]
    request.session[OPENED] = [*opened, link.pk][-_MOST_KEPT:]
    if link.query:
        return redirect(f"{reverse('compare')}?{link.query}")
    if link.report is not None:
        return redirect(link.report)
    return redirect(link.experiments.get())


@require_http_methods(["GET", "HEAD", "POST"])
def experiment(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the links of one experiment; on POST create one."""
    shared = find_experiment(request, slug)
    return _share(request, [shared], title=shared.name, back=shared.get_absolute_url())


@require_http_methods(["GET", "HEAD", "POST"])
def comparison(request: HttpRequest) -> HttpResponse:
    """Show the links of one comparison by its query string; on POST create one."""
    query = request.GET.urlencode()
    try:
        compared = requested_comparison(request.user, request.GET)
    except CannotCompare as error:
        return render(request, "compare/none.html", {"place": "experiments", "why": str(error)}, status=400)
    title = ", ".join(member.name for member in compared.members)
    back = f"{reverse('compare')}?{query}"
    return _share(request, share_links.experiments_of(compared), title=title, back=back, query=query)


@require_http_methods(["GET", "HEAD", "POST"])
def report(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the links of one report; on POST create one."""
    shared_report = find_report(request, pk)
    if not may_write_reports(request.user, shared_report.project):
        raise PermissionDenied
    shared = [
        experiment
        for experiment in pinned_in(shared_report, request.user)
        if share_links.may_share_here(request.user, experiment)
    ]
    slugs = {slug for part in parts_of(shared_report.current.text) for slug in part.slugs}
    left_out = sorted(slugs - {experiment.slug for experiment in shared})
    return _share(
        request,
        shared,
        title=shared_report.title,
        back=shared_report.get_absolute_url(),
        report=shared_report,
        left_out=left_out,
    )


@require_POST
def end(request: HttpRequest, pk: int) -> HttpResponse:
    """Revoke a link, as its creator or as a maintainer of a project that it shows."""
    links = ShareLink.objects.select_related("report__project").prefetch_related("experiments__project")
    link = get_object_or_404(links, pk=pk)
    experiments = list(link.experiments.all())
    projects = [item.project for item in (*experiments, link.report) if item is not None]
    if link.made_by != request.user and not any(may_manage(request.user, project) for project in projects):
        raise Http404
    link.delete()
    messages.success(request, "The link is revoked.", extra_tags="ok")
    if link.report is not None:
        is_visible = visible_reports(request.user).filter(pk=link.report.pk).exists()
        return redirect("report-share", link.report.pk) if is_visible else redirect("reports")
    if link.query or not experiments:  # an experiment may be in the trash
        return redirect("experiments")
    may_share = share_links.may_share_here(request.user, experiments[0])
    return redirect("experiment-share", experiments[0].slug) if may_share else redirect(experiments[0])


def _share(
    request: HttpRequest,
    shared: list[Experiment],
    *,
    title: str,
    back: str,
    query: str = "",
    report: Report | None = None,
    left_out: Sequence[str] = (),
) -> HttpResponse:
    of_this = Q(report=report) if report else Q(report=None, experiments__in=shared)
    links: Any = ShareLink.objects.filter(of_this, query=query).distinct().select_related("made_by")
    may_create = all(share_links.may_share_here(request.user, item) for item in shared)
    if not may_create:  # members who lost the role still revoke their links
        links = links.filter(made_by=request.user)
    if not may_create and (request.method == "POST" or not links.exists()):
        share_links.require_may_share(request.user, shared)
    form, address = ShareForm(request.POST or None), ""
    if request.method == "POST" and form.is_valid():
        days = form.cleaned_data["days"]
        _, address = share_links.issue(request, shared, days=days, query=query, report=report)
    context = {
        "may_create": may_create,
        "place": "reports" if report else "experiments",
        "left_out": left_out,
        "title": title,
        "back": back,
        "form": form if form.is_bound and not form.is_valid() else ShareForm(),
        "address": address,
        "links": links.order_by("-created_at"),
    }
    response = render(request, "people/share.html", context)
    response["Cache-Control"] = "private, no-store"
    return response
