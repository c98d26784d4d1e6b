"""Share links: making and ending them, and coming in by one."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from dashboard.middleware.visitors import OPENED
from dashboard.pages.compare import members_asked
from dashboard.requests.lookup import asked, find_experiment
from experiments.access import may_manage, may_share
from experiments.errors import CannotCompare
from experiments.models import Experiment, ShareLink
from experiments.models.people.share import DAYS
from experiments.selectors.comparison import compare

_MOST_KEPT: Final = 20


class ShareForm(forms.Form):
    """A link to be made."""

    days = forms.TypedChoiceField(
        label="Lasts", coerce=int, choices=[(days, f"{days} days") for days in DAYS], initial=DAYS[0]
    )


@login_not_required
@require_GET
def come(request: HttpRequest, key: str) -> HttpResponse:
    """Remember in the session what the link opens, and show it under its own address."""
    link = ShareLink.find(key)
    if link is None:
        raise Http404("This link was ended, is over, or never was.")
    opened = [pk for pk in request.session.get(OPENED, []) if pk != link.pk]
    request.session[OPENED] = [*opened, link.pk][-_MOST_KEPT:]
    if link.query:
        return redirect(f"{reverse('compare')}?{link.query}")
    return redirect(link.experiments.get())


@require_http_methods(["GET", "HEAD", "POST"])
def experiment(request: HttpRequest, slug: str) -> HttpResponse:
    """The links of one experiment; on POST one more."""
    shared = find_experiment(request, slug)
    return _share(request, [shared], title=shared.name, back=shared.get_absolute_url())


@require_http_methods(["GET", "HEAD", "POST"])
def comparison(request: HttpRequest) -> HttpResponse:
    """The links of one comparison, exactly as its address asks for it; on POST one more."""
    scope, query = "mpi" if asked(request, "scope") == "mpi" else "all", request.GET.urlencode()
    try:
        compared = compare(
            request.user,
            members_asked(request),
            baseline=asked(request, "baseline"),
            at=asked(request, "at"),
            scope=scope,
        )
    except CannotCompare as error:
        return render(request, "compare/none.html", {"place": "experiments", "why": str(error)}, status=400)
    shared = list({member.experiment.pk: member.experiment for member in compared.members}.values())
    title = ", ".join(member.name for member in compared.members)
    return _share(request, shared, title=title, back=f"{reverse('compare')}?{query}", query=query)


@require_POST
def end(request: HttpRequest, pk: int) -> HttpResponse:
    """End a link: its maker, and maintainers of a project that it shows."""
    link = get_object_or_404(ShareLink.objects.prefetch_related("experiments__project"), pk=pk)
    shown = list(link.experiments.all())
    if link.made_by != request.user and not any(may_manage(request.user, each.project) for each in shown):
        raise Http404
    link.delete()
    messages.success(request, "The link is ended: it opens nothing any more.", extra_tags="ok")
    return redirect("experiment-share", shown[0].slug) if not link.query else redirect("experiments")


@sensitive_variables("key")
def _share(request: HttpRequest, shared: list[Experiment], *, title: str, back: str, query: str = "") -> HttpResponse:
    if not all(may_share(request.user, each) for each in shared):
        raise PermissionDenied
    form, address = ShareForm(request.POST or None), ""
    if request.method == "POST" and form.is_valid():
        _, key = ShareLink.issue(shared, by=request.user, days=form.cleaned_data["days"], query=query)
        address = request.build_absolute_uri(reverse("shared", args=[key]))
    links: Any = ShareLink.objects.filter(query=query, experiments__in=shared).distinct().select_related("made_by")
    context = {
        "place": "experiments",
        "title": title,
        "back": back,
        "form": form if form.is_bound and not form.is_valid() else ShareForm(),
        "address": address,
        "links": links.order_by("-created_at"),
    }
    response = render(request, "people/share.html", context)
    response["Cache-Control"] = "private, no-store"
    return response
