"""What the pages of accounts need to know of the installation."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest

from experiments.models import Preferences


def accounts(request: HttpRequest) -> dict[str, Any]:
    """Whether this installation sends mail, lets people make accounts by themselves, and has an identity provider; the theme
    that the reader keeps with the account ("": none is signed in).
    """
    reader: Any = getattr(request, "user", None)
    has_account = reader is not None and reader.is_authenticated and reader.pk
    return {
        "sends_mail": settings.SENDS_MAIL,
        "signup_is_open": settings.SIGN_UP,
        "theme": Preferences.of_user(reader).theme if has_account else "",
        "has_identity_provider": bool(settings.IDENTITY_PROVIDERS),
    }
