"""The named networks of Network what-if: everybody sees them, maintainers edit them."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from analysis.numbers import plural
from dashboard.panels.network.form import read, rows_from, rows_of
from experiments.access import may_describe_clusters
from experiments.models import Network


@require_http_methods(["GET", "HEAD", "POST"])
def networks(request: HttpRequest) -> HttpResponse:
    """The table; on POST keep it, or show the errors at their rows with status 422."""
    may_edit = may_describe_clusters(request.user)
    context = {"place": "network", "may_edit": may_edit}
    if request.method != "POST":
        return render(request, "network/networks.html", context | {"rows": rows_of(Network.objects.all())})
    if not may_edit:
        raise PermissionDenied
    rows = rows_from(*(request.POST.getlist(name) for name in ("name", "delay", "rate")))
    kept = read(rows)
    if kept is None:
        return render(request, "network/networks.html", context | {"rows": rows}, status=422)
    Network.replace_all(kept)
    messages.success(request, f"Saved: {plural(len(kept), 'network')}.", extra_tags="ok")
    return redirect("networks")
