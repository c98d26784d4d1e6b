"""Webhooks of a project, for its maintainers."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from dashboard.people.notification_settings import WebhookForm, say
from dashboard.people.projects import managed, project_page
from experiments.models import Webhook
from experiments.models.people.notifications import MOST_WEBHOOKS
from workers.notifications import outbox


@require_POST
def new(request: HttpRequest, slug: str) -> HttpResponse:
    """Set one up. Its secret stands in this one answer and nowhere else, which is why no redirect follows."""
    project, form = managed(request, slug), WebhookForm(request.POST, prefix="webhook")
    if form.is_valid() and project.webhooks.count() >= MOST_WEBHOOKS:
        form.add_error("url", f"A project has at most {MOST_WEBHOOKS} webhooks.")
    if not form.is_valid():
        return project_page(request, project, status=422, webhook_form=form)
    webhook = form.save(commit=False)
    webhook.project, webhook.made_by = project, request.user
    webhook.save()
    response = project_page(request, project, new_webhook=webhook, secret=webhook.secret)
    response["Cache-Control"] = "private, no-store"
    return response


@require_POST
def test(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Send a test now, and say how that went."""
    say(request, outbox.test(webhook=_webhook(request, slug, pk)))
    return redirect(f"{reverse('project', args=[slug])}#webhooks")


@require_POST
def end(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Remove one, and what still waits for it."""
    _webhook(request, slug, pk).delete()
    messages.success(request, "The webhook is removed.", extra_tags="ok")
    return redirect(f"{reverse('project', args=[slug])}#webhooks")


def _webhook(request: HttpRequest, slug: str, pk: int) -> Webhook:
    return get_object_or_404(managed(request, slug).webhooks, pk=pk)
