"""Asking for a bundle of experiments, configurations and trials, by the names that comparisons have."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from dashboard.background.bundles import ask_bundle
from dashboard.exchange.forms import BundleForm
from dashboard.requests.lookup import members_asked
from experiments.access import visible_experiments
from experiments.errors import CannotExport
from experiments.exchange.choice import chosen_by


@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """The form; on POST the task that makes it."""
    names = members_asked(request.GET)
    context = {"place": "experiments"}
    try:
        chosen = chosen_by(names, visible_experiments(request.user))
    except CannotExport as error:
        return render(request, "exchange/bundle.html", {**context, "why": str(error)}, status=400)
    form = BundleForm(request.POST or None)
    status = 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            return redirect(ask_bundle(request.user, names, **form.cleaned_data))
    counts = [(each.experiment, each.rows().count(), bool(each.trials)) for each in chosen]
    shown = {**context, "form": form, "chosen": counts, "trials": sum(count for _, count, _ in counts)}
    return render(request, "exchange/bundle.html", shown, status=status)
