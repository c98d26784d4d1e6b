"""Time zones of users, the time of their last request, and whose it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone

from experiments.models import Preferences


class PreferencesMiddleware:
    """Shows times of pages in the user's zone, and of REST in the installation's."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        try:
            response = self.get_response(request)
        finally:
            timezone.deactivate()  # the thread serves other users next
        if response.status_code < 500:  # an outage of the database hides the user
            request.META["rankwire.user"] = request.user.pk  # config/front.py bounds what one user does at once
        return response

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> None:
        if request.path_info.startswith("/api/") or not request.user.is_authenticated or not request.user.pk:
            return
        Preferences.note_seen(request.user)
        if zone := Preferences.of_user(request.user).zone:
            timezone.activate(zone)
