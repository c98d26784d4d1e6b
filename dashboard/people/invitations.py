"""Invitations: from the link to the membership."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods

from experiments.models import Invitation

_SESSION_KEY: Final = "invitation"
"""Key of the session with the key of the link, during sign-in or sign-up."""


def invitation_of(request: HttpRequest) -> Invitation | None:
    """Return the open invitation of this session."""
    key = request.session.get(_SESSION_KEY)
    return Invitation.find(key) if isinstance(key, str) else None


@login_not_required
@require_GET
def come(request: HttpRequest, key: str) -> HttpResponse:
    """Move the key from the URL to the session, to keep it out of Referer headers.

    Only of open invitations: a session is a row that any visitor could fill. Another link ends the session's invitation.
    """
    if Invitation.find(key) is not None:
        request.session[_SESSION_KEY] = key
    else:
        request.session.pop(_SESSION_KEY, None)
    return redirect("invitation")


@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
def invitation(request: HttpRequest) -> HttpResponse:
    """Show the invitation; on POST make the signed-in user a member."""
    opened = invitation_of(request)
    if opened is None:
        return expired(request)
    if request.method == "POST" and request.user.is_authenticated:
        return redirect("experiments") if accept(request, request.user) else expired(request)
    is_member = request.user.is_authenticated and not opened.raises_role_of(request.user)
    return render(request, "people/invitation.html", {"invitation": opened, "is_member": is_member})


def accept(request: HttpRequest, user: Any) -> bool:
    """Accept this session's invitation; return False if it has ended."""
    opened = invitation_of(request)
    request.session.pop(_SESSION_KEY, None)
    if opened is None or not opened.take(user):
        return False
    messages.success(request, f"You are now a {opened.role} of {opened.project.name}.", extra_tags="ok")
    return True


def expired(request: HttpRequest) -> HttpResponse:
    why = "The invitation was used or has expired, or its address is incomplete."
    return render(request, "people/link_over.html", {"why": why}, status=404)
