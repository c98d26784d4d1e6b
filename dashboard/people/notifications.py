"""Mails to the reader: which, and a test."""

from __future__ import annotations

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from dashboard.people.account import account_page
from dashboard.people.notification_settings import ChoicesForm, say
from workers.notifications import outbox


@require_POST
def choose(request: HttpRequest) -> HttpResponse:
    """Keep what the reader wants mail of."""
    form = ChoicesForm(request.user, request.POST)
    if not form.is_valid():
        return account_page(request, status=422, notices=form)
    with transaction.atomic():
        form.save()
    messages.success(request, "Your choice of mails is kept.", extra_tags="ok")
    return redirect(f"{reverse('account')}#notices")


@require_POST
def test(request: HttpRequest) -> HttpResponse:
    """Send the reader a mail now, and say how that went."""
    say(request, outbox.test(user=request.user))
    return redirect(f"{reverse('account')}#notices")
