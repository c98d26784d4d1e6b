"""An invitation, from the link that somebody was given to the membership."""

from __future__ import annotations

from typing import Final

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods

from experiments.models import Invitation

_KEPT: Final = "invitation"
"""In the session: the key of the link, while its owner signs in or up."""


def invitation_of(request: HttpRequest) -> Invitation | None:
    """Return the invitation that this browser came with, while it can be taken."""
    key = request.session.get(_KEPT)
    return Invitation.find(key) if isinstance(key, str) else None


@login_not_required
@require_GET
def come(request: HttpRequest, key: str) -> HttpResponse:
    """Keep the key out of addresses and Referer headers: it goes to the session, and the reader on to the page without it."""
    request.session[_KEPT] = key
    return redirect("invitation")


@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
def invitation(request: HttpRequest) -> HttpResponse:
    """Show what the invitation is to; on POST the reader, who is signed in, becomes a member."""
    found = invitation_of(request)
    if found is None:
        return _over(request)
    if request.method == "POST" and request.user.is_authenticated:
        del request.session[_KEPT]
        if not found.take(request.user):
            return _over(request)  # somebody else took it a moment ago
        messages.success(request, f"You are a {found.role} of {found.project.name} now.", extra_tags="ok")
        return redirect("experiments")
    return render(request, "people/invitation.html", {"invitation": found})


def _over(request: HttpRequest) -> HttpResponse:
    why = "The invitation was taken, its time is over, or some of its address is missing."
    return render(request, "people/link_over.html", {"why": why}, status=404)
