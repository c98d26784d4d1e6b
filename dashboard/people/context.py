"""What the pages of accounts need to know of the installation."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest


def accounts(request: HttpRequest) -> dict[str, bool]:
    """Whether this installation sends mail, lets people make accounts by themselves, and has an identity provider."""
    return {
        "sends_mail": settings.SENDS_MAIL,
        "signup_is_open": settings.SIGN_UP,
        "has_identity_provider": bool(settings.IDENTITY_PROVIDERS),
    }
